//! `TowerSpec` → `Graph`: patches of an image in, embeddings out. The layers are those of the language models.

use kernels::{Activation, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, RowMerge, ValueId};

use super::{Decoder, KvUse, WeightSource};
use crate::error::Result;
use crate::spec::{Attention, Norm, PatchGrid, Projector, ProjectorHidden, Role, TowerSpec};

/// Builds the graph of a tower → (outputs, row_width). A batch gives the samples of each patch. Where embeddings of
/// places are computed before, a patch's follows its samples; else the kind of a row is its patch's place, row by row in
/// the image. The patches of a block follow one another, and the first of each is an output.
///
/// Errors: those of `WeightSource`.
pub fn build_tower(spec: &TowerSpec, weights: &mut dyn WeightSource) -> Result<Graph> {
    let mut decoder = Decoder {
        graph: GraphBuilder::new(kv_layout(spec))?,
        weights,
        layer: None,
        d_model: spec.d_model,
        kv_layers: Vec::with_capacity(spec.layers.len()),
        n_kv_layers: 0,
        n_states: 0,
        kv_use: KvUse::Same(0),
        kv: KvDType::F32.both(),
    };
    let mut x = decoder.patches(spec)?; // (tokens, d_model)
    let mut deep = Vec::with_capacity(spec.deepstack.taps.len());
    for (index, layer) in spec.layers.iter().enumerate() {
        decoder.layer = Some(index);
        x = decoder.layer(x, layer)?;
        if let Some(tap) = spec.deepstack.taps.iter().position(|tap| tap.layer == index) {
            decoder.layer = Some(tap);
            deep.push(decoder.project_deep(x, spec)?);
        }
    }
    decoder.layer = None;
    let x = decoder.norm("output.norm", x, spec.output_norm, Role::OutputNorm, Role::OutputNormBias)?;
    let mut x = decoder.project(x, &spec.projector)?;
    for (index, rows) in deep.into_iter().enumerate() {
        x = decoder.graph.join_columns(format!("output.join{index}"), x, rows, 1)?;
    }
    Ok(decoder.graph.finish(x)?)
}

/// One layer, which all layers of the tower overwrite in turn. Keys and values stay exact.
fn kv_layout(spec: &TowerSpec) -> KvLayout {
    let first: Option<&Attention> = spec.layers.iter().find_map(|layer| layer.mixer.attention());
    let layer = first.map(|attention| KvLayerLayout {
        n_kv_heads: attention.n_kv_heads,
        head_dim: attention.head_dim,
        precision: KvDType::F32.both(),
        window: None,
    });
    KvLayout { layers: layer.into_iter().collect(), page_len: kernels::PAGE_LEN, states: Vec::new() }
}

impl Decoder<'_> {
    /// Builds the first value of the residual stream: (tokens, d_model)
    fn patches(&mut self, spec: &TowerSpec) -> Result<ValueId> {
        let patches = self.graph.given("patches", 0, spec.patch_len())?;
        let roles = (Role::PatchSampleNorm, Role::PatchSampleNormBias);
        let patches = self.norm("patches.samples", patches, spec.patches.sample_norm, roles.0, roles.1)?;
        let weight = self.weight(Role::PatchEmbedding)?.flattened()?; // (d_model, samples)
        let bias = spec
            .patches
            .bias
            .then_some(Role::PatchEmbeddingBias)
            .map(|role| self.weight(role))
            .transpose()?;
        let x = self.graph.matmul("patches.embed", patches, &weight, bias.as_ref())?;
        let x = match spec.patches.n_frames {
            1 => x,
            _ => {
                let weight = self.weight(Role::PatchEmbeddingNext)?.flattened()?;
                let next = self.graph.matmul("patches.embed_next", patches, &weight, None)?;
                self.graph.add("patches.add_next", x, next)?
            }
        };
        let roles = (Role::PatchEmbeddingNorm, Role::PatchEmbeddingNormBias);
        let x = self.norm("patches.embedding_norm", x, spec.patches.embedding_norm, roles.0, roles.1)?;
        let places = match spec.patches.grid {
            PatchGrid::Square { .. } => {
                let table = self.weight(Role::PositionEmbedding)?;
                Some(self.graph.embed_kind("patches.place", &table)?)
            }
            PatchGrid::Resampled { .. } | PatchGrid::Axes { .. } => {
                Some(self.graph.given("patches.place", spec.patch_len(), spec.d_model)?)
            }
            PatchGrid::Plain => None,
        };
        let x = match places {
            Some(places) => self.graph.add("patches.add", x, places)?,
            None => x,
        };
        self.norm("patches.norm", x, spec.patches.norm, Role::PatchNorm, Role::PatchNormBias)
    }

    /// x (tokens, d_model) → (outputs, d_out)
    fn project(&mut self, x: ValueId, spec: &Projector) -> Result<ValueId> {
        let mut x = x;
        if spec.scale != 1.0 {
            x = self.graph.scale("projector.scale", x, spec.scale)?;
        }
        if spec.is_standardized {
            x = self.standardize(x)?;
        }
        let n = spec.block_side * spec.block_side;
        x = self.graph.merge_rows("projector.merge", x, n, spec.merge)?;
        if spec.is_joined {
            x = self.matmul("projector.join", x, Role::ProjectorMerge, None)?;
        }
        x = self.norm("projector.norm", x, spec.norm, Role::ProjectorNorm, Role::ProjectorNormBias)?;
        let has_bias = spec.hidden.is_some_and(|hidden| hidden.bias);
        let bias = |role| has_bias.then_some(role);
        if let Some(hidden) = &spec.hidden {
            let role = Role::ProjectorHidden;
            x = self.matmul("projector.hidden", x, role, bias(Role::ProjectorHiddenBias))?;
            x = self.graph.activate("projector.act", x, hidden.activation)?;
        }
        self.matmul("projector.out", x, Role::ProjectorOut, bias(Role::ProjectorOutBias))
    }

    /// (x − bias) · scale; x (tokens, d_model) → same shape. The tables have a row for the kind that all patches are of.
    fn standardize(&mut self, x: ValueId) -> Result<ValueId> {
        let [bias, scale] = [self.weight(Role::StandardBias)?, self.weight(Role::StandardScale)?];
        let bias = self.graph.embed_kind("projector.bias_rows", &bias)?; // (tokens, d_model)
        let bias = self.graph.scale("projector.bias_sign", bias, -1.0)?;
        let x = self.graph.add("projector.centre", x, bias)?;
        let scale = self.graph.embed_kind("projector.scale_rows", &scale)?; // (tokens, d_model)
        Ok(self.graph.glu("projector.standardize", x, scale, Activation::Identity)?)
    }

    /// Rows of an inner layer: x (tokens, d_model) → (outputs, d_out)
    fn project_deep(&mut self, x: ValueId, spec: &TowerSpec) -> Result<ValueId> {
        let n = spec.patches_per_embedding();
        let x = self.graph.merge_rows(self.name("deep.merge"), x, n, RowMerge::Concat)?;
        let norm = Norm::Layer { eps: spec.deepstack.eps, bias: true };
        let x = self.norm("deep.norm", x, norm, Role::DeepNorm, Role::DeepNormBias)?;
        let x = self.matmul("deep.hidden", x, Role::DeepHidden, Some(Role::DeepHiddenBias))?;
        let activation =
            spec.projector.hidden.map_or(Activation::Gelu, |hidden: ProjectorHidden| hidden.activation);
        let x = self.graph.activate(self.name("deep.act"), x, activation)?;
        self.matmul("deep.out", x, Role::DeepOut, Some(Role::DeepOutBias))
    }
}
