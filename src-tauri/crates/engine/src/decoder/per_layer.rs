//! Narrow embeddings of each layer: made once for all layers, and added by each through a gate.

use kernels::{Columns, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{PerLayerEmbedding, PerLayerInput, Role};

/// A layer's own input: its structure and value. (tokens, width)
pub(super) type LayerInput<'a> = (&'a PerLayerInput, ValueId);

impl Decoder<'_> {
    /// Builds the inputs of all layers from the embedding. (tokens, n_layers · width)
    pub(super) fn per_layer_embedding(&mut self, x: ValueId, spec: &PerLayerEmbedding) -> Result<ValueId> {
        let table = self.weight(Role::PerLayerEmbedding)?;
        let rows = match spec.n_rows {
            None => self.graph.embed("embed.per_layer", &table, spec.table_scale)?,
            Some(_) => self.graph.embed_or_first("embed.per_layer", &table, spec.table_scale)?,
        };
        let projected = self.matmul("embed.projection", x, Role::PerLayerProjection, None)?;
        let projected = self.graph.scale("embed.projection_scale", projected, spec.projection_scale)?;
        let role = Role::PerLayerProjectionNorm;
        let normed = self.norm_groups("embed.projection_norm", projected, spec.norm, role, spec.width)?;
        let sum = self.graph.add("embed.per_layer_add", normed, rows)?;
        Ok(self.graph.scale("embed.per_layer_scale", sum, spec.input_scale)?)
    }

    /// Selects the layer's own input of `all`. (tokens, width)
    pub(super) fn per_layer_columns(
        &mut self,
        all: ValueId,
        spec: &PerLayerInput,
        index: usize,
        n_layers: usize,
    ) -> Result<ValueId> {
        let all = self.graph.copy(self.name("input.copy"), all)?;
        let width = spec.width;
        let columns = Columns { n_groups: 1, stride: n_layers * width, start: index * width, width };
        Ok(self.graph.columns(self.name("input.columns"), all, columns)?)
    }

    /// Adds what the layer's own input gives. x (tokens, d_model) → same shape
    pub(super) fn add_per_layer_input(&mut self, x: ValueId, input: LayerInput<'_>) -> Result<ValueId> {
        let more = self.per_layer_input(x, input)?;
        Ok(self.graph.add(self.name("input.add"), x, more)?)
    }

    /// Builds what the layer's own input gives for x. (tokens, d_model)
    pub(super) fn per_layer_input(&mut self, x: ValueId, (spec, input): LayerInput<'_>) -> Result<ValueId> {
        let gate = self.matmul("input.gate", x, Role::LayerInputGate, None)?; // (tokens, width)
        let gated = self.graph.glu(self.name("input.glu"), gate, input, spec.activation)?;
        let projected = self.matmul("input.projection", gated, Role::LayerInputProjection, None)?;
        self.post_norm("input.norm", projected, Some(spec.norm), Role::LayerInputNorm)
    }
}
