//! The draft block of a model: beside the layers it writes its keys and values for every token, and on its own it
//! drafts.
//!
//! A row of the block is of a token and of the hidden state before it. That of a run's first token comes from a
//! recurrent state, so that what the block knows of a sequence is forked, rewound and stored with it.

use kernels::{Activation, ConvShape, Graph, KvLayerLayout, KvLayout, KvPrecision, ValueId};

use super::{Decoder, KvUse};
use crate::error::Result;
use crate::spec::{DraftBlock, ModelSpec, Role, TensorOwner};

/// Adds the block's keys and values, and the hidden state after a sequence's last token. Both come last.
pub(super) fn extend_layout(
    layout: &mut KvLayout,
    draft: &DraftBlock,
    d_model: usize,
    precision: KvPrecision,
) {
    let attention = draft.layer.mixer.attention();
    layout.layers.extend(attention.map(|attention| KvLayerLayout {
        n_kv_heads: attention.n_kv_heads,
        head_dim: attention.head_dim,
        precision,
        window: attention.window,
    }));
    layout.states.push(d_model);
}

impl Decoder<'_> {
    /// Builds the output and the draft block, from the tokens' embeddings and what the last layer gave: both
    /// (tokens, d_model). The block's output is (outputs, d_model + n_common_tokens): its hidden state, then
    /// logits.
    pub(super) fn finish_with_draft(
        mut self,
        spec: &ModelSpec,
        draft: &DraftBlock,
        [embedded, x]: [ValueId; 2],
    ) -> Result<Graph> {
        let hidden = self.hidden(x, spec)?;
        self.write_draft_keys(draft, embedded, hidden)?;
        self.layer = None;
        let hidden = self.graph.output_rows("output.rows", hidden)?; // (outputs, d_model)
        let logits = self.output(hidden, spec)?;
        self.graph.begin_draft();
        self.kv_use = KvUse::Same(self.n_kv_layers - 1);
        let drafted = self.draft(spec, draft)?;
        Ok(self.graph.finish_with_draft(logits, hidden, drafted)?)
    }

    /// Writes the block's keys and values of all tokens of a run. `hidden` is of the same rows: (tokens, d_model)
    fn write_draft_keys(&mut self, draft: &DraftBlock, embedded: ValueId, hidden: ValueId) -> Result<()> {
        self.layer = Some(draft.layer_number);
        let embedded = self.graph.copy(self.name("draft.copy"), embedded)?;
        // Moves every row down by one.
        let taps = [1.0, 0.0].repeat(self.d_model).into();
        let state = self.take_state();
        let conv = ConvShape { state, weight: taps, kernel: 2, bias: None, act: Activation::Identity };
        let before = self.graph.short_conv(self.name("draft.before"), hidden, conv)?;
        let x = self.draft_input(draft, embedded, before)?;
        let normed = self.mixer_norm(x, &draft.layer)?;
        let attention = draft.layer.mixer.attention().expect("a draft block attends");
        self.keys_and_values(normed, attention)?;
        Ok(())
    }

    /// Builds the part that runs on its own. A batch gives the hidden state before each token.
    fn draft(&mut self, spec: &ModelSpec, draft: &DraftBlock) -> Result<ValueId> {
        let own = Some(draft.layer_number);
        self.layer = own.filter(|_| draft.embedding == TensorOwner::Block);
        let role = match draft.embedding {
            TensorOwner::Model => Role::TokenEmbedding,
            TensorOwner::Block => Role::DraftEmbedding,
        };
        let table = self.weight(role)?;
        self.layer = own;
        let embedded = self.graph.embed(self.name("draft.embed"), &table, spec.embedding.scale)?;
        let hidden = self.graph.given(self.name("draft.given"), 0, self.d_model)?;
        let x = self.draft_input(draft, embedded, hidden)?;
        let x = self.layer(x, &draft.layer)?;
        let x = self.graph.output_rows(self.name("draft.rows"), x)?; // (outputs, d_model)
        self.layer = own.filter(|_| draft.output_norm == TensorOwner::Block);
        let role = match draft.output_norm {
            TensorOwner::Model => Role::OutputNorm,
            TensorOwner::Block => Role::DraftOutputNorm,
        };
        let y = self.norm("draft.norm", x, draft.norm, role, role)?;
        let logits = self.draft_logits(y, spec, draft)?; // (outputs, n_common_tokens)
        Ok(self.graph.join_columns("draft.join", y, logits, 1)?)
    }

    /// Logits of the common tokens.
    fn draft_logits(&mut self, y: ValueId, spec: &ModelSpec, draft: &DraftBlock) -> Result<ValueId> {
        self.layer = Some(draft.layer_number).filter(|_| draft.output == TensorOwner::Block);
        let weight = self.weight(draft.output_role(spec))?;
        let bias = match draft.output {
            TensorOwner::Model if spec.output_bias => Some(self.weight(Role::OutputBias)?),
            TensorOwner::Model | TensorOwner::Block => None,
        };
        let weight = weight.first_rows(draft.n_common_tokens);
        let logits = self.graph.matmul(self.name("draft.output"), y, &weight, bias.as_ref())?;
        match draft.output {
            TensorOwner::Model => self.capped_logits(logits, spec),
            TensorOwner::Block => Ok(logits),
        }
    }

    /// Joins embeddings and hidden states: both (tokens, d_model) → same shape
    fn draft_input(&mut self, draft: &DraftBlock, embedded: ValueId, hidden: ValueId) -> Result<ValueId> {
        let role = Role::DraftEmbeddingNorm;
        let embedded = self.norm("draft.embedding_norm", embedded, draft.norm, role, role)?;
        let role = Role::DraftHiddenNorm;
        let hidden = self.norm("draft.hidden_norm", hidden, draft.norm, role, role)?;
        let joined = self.graph.join_columns(self.name("draft.both"), embedded, hidden, 1)?; // (tokens, 2 · d_model)
        self.matmul("draft.projection", joined, Role::DraftProjection, None)
    }
}
