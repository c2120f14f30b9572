//! The assistant of a model: the part of its graph that drafts.
//!
//! It writes no keys and values. A row of it attends what the last token before its draft attends.

use kernels::{DeviceId, Graph, ValueId};

use super::{Decoder, Placement};
use crate::error::Result;
use crate::spec::{ASSISTANT_LAYERS, KvSource, ModelSpec, Role};

/// Returns the device of the layers whose keys and values an assistant attends. `None`: they are on several.
pub(crate) fn assistant_device(assistant: &ModelSpec, placement: &Placement) -> Option<DeviceId> {
    let attentions = assistant.layers.iter().filter_map(|layer| layer.mixer.attention());
    let mut devices = attentions.filter_map(|attention| match attention.keys {
        KvSource::OfLayer(layer) => placement.layers.get(layer).copied(),
        KvSource::Projected | KvSource::SharedByValues | KvSource::OfTarget { .. } => None,
    });
    let first = devices.next()?;
    devices.all(|device| device == first).then_some(first)
}

impl Decoder<'_> {
    /// Builds the output and the assistant, from what the last layer gave: (tokens, d_model). The assistant's output is
    /// (outputs, d_model + n_vocab): the hidden state for the next draft, then logits. With token clusters the logits'
    /// place is taken by the assistant's own hidden state and the scores of the clusters.
    pub(super) fn finish_with_assistant(
        mut self,
        (spec, assistant): (&ModelSpec, &ModelSpec),
        device: DeviceId,
        x: ValueId,
    ) -> Result<Graph> {
        let x = self.graph.output_rows("output.rows", x)?; // (outputs, d_model)
        let hidden = self.hidden(x, spec)?;
        let logits = self.output(hidden, spec)?;
        self.graph.on(device);
        self.graph.begin_draft();
        let drafted = self.assistant(spec, assistant)?;
        Ok(self.graph.finish_with_draft(logits, hidden, drafted)?)
    }

    /// Builds the part that runs on its own. A batch gives the hidden state before each token.
    fn assistant(&mut self, spec: &ModelSpec, assistant: &ModelSpec) -> Result<ValueId> {
        let table = self.weight(Role::TokenEmbedding)?;
        self.layer = Some(ASSISTANT_LAYERS);
        let embedded = self.graph.embed(self.name("embed"), &table, spec.embedding.scale)?;
        let hidden = self.graph.given(self.name("given"), 0, self.d_model)?;
        let joined = self.graph.join_columns(self.name("both"), embedded, hidden, 1)?; // (tokens, 2 · d_model)
        let mut x = self.matmul("projection", joined, Role::DraftProjection, None)?; // (tokens, assistant's d_model)
        for (index, layer) in assistant.layers.iter().enumerate() {
            self.layer = Some(ASSISTANT_LAYERS + index);
            x = self.layer(x, layer)?;
            x = self.layer_scale(x, layer)?;
        }
        self.layer = Some(ASSISTANT_LAYERS);
        let x = self.graph.output_rows(self.name("rows"), x)?; // (outputs, assistant's d_model)
        let y = self.norm("norm", x, assistant.output_norm, Role::OutputNorm, Role::OutputNormBias)?;
        let next = self.matmul("next", y, Role::DraftNextProjection, None)?; // (outputs, d_model)
        let scores = match assistant.assistant_head().and_then(|head| head.clusters) {
            Some(_) => {
                let clusters = self.matmul("clusters", y, Role::DraftClusters, None)?;
                self.graph.join_columns(self.name("scores"), y, clusters, 1)?
            }
            None => {
                let role = if assistant.tied_embeddings { Role::TokenEmbedding } else { Role::Output };
                self.matmul("output", y, role, None)?
            }
        };
        Ok(self.graph.join_columns(self.name("join"), next, scores, 1)?)
    }
}
