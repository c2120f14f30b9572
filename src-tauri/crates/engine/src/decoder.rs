//! `ModelSpec` → `Graph`: the only forward pass there is.
//!
//! Requests weights by role; where they come from and what they are called is unknown here. Each layer runs on the
//! device of the placement, with explicit copies between devices.

use std::sync::Arc;

use kernels::{
    DeviceId, Graph, GraphBuilder, KvLayerLayout, KvLayout, KvPrecision, Mask, PAGE_LEN, Tensor, ValueId,
};

use weights::{DType, SharedBytes, TensorView};

use crate::error::Result;
use crate::spec::{ASSISTANT_LAYERS, Ffn, KvSource, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, Role};

mod altup;
mod assistant;
mod attention;
mod draft;
mod experts;
mod ffn;
mod latent;
mod per_layer;
mod recurrent;
mod ssm;
mod tower;

pub(crate) use assistant::assistant_device;
pub use tower::build_tower;

/// Uploaded weights by role. `layer` is `None` outside the layers.
pub trait WeightSource {
    /// Returns the tensor of a role on a device.
    ///
    /// Errors: missing, wrong shape, unsupported dtype.
    fn get(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Tensor>;

    /// Returns the matrices of an expert role, one per expert.
    fn experts(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Vec<Tensor>>;

    /// Returns the adapters of a product.
    fn adapters(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Vec<LowRankUpdate>>;

    /// Returns the bounds of a product's input and output. `None`: it has none.
    fn bounds(&self, _role: Role, _layer: Option<usize>) -> Option<ProductBounds> {
        None
    }
}

/// Bounds that a product was trained with: lowest and highest number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProductBounds {
    /// Of what is multiplied.
    pub input: (f32, f32),
    /// Of the result.
    pub output: (f32, f32),
}

/// An adapter's update of one product (LoRA): y += b · (a · x) · scale.
#[derive(Debug, Clone)]
pub struct LowRankUpdate {
    /// [rank, in]
    pub a: Tensor,
    /// [out, rank]
    pub b: Tensor,
    /// Factor on the update: the adapter's alpha / rank and strength.
    pub scale: f32,
}

/// Where each part of a model runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Device of each layer. (n_layers)
    pub layers: Vec<DeviceId>,
}

impl Placement {
    /// Places all layers on the first device.
    pub fn single(n_layers: usize) -> Self {
        Self { layers: vec![DeviceId(0); n_layers] }
    }

    /// Returns the device of the first layer and the embedding.
    pub fn first(&self) -> DeviceId {
        self.layers.first().copied().unwrap_or(DeviceId(0))
    }

    /// Returns the device of the last layer and the output.
    pub fn last(&self) -> DeviceId {
        self.layers.last().copied().unwrap_or(DeviceId(0))
    }
}

/// Returns what a sequence stores: keys and values of attention layers, states of recurrent ones.
pub fn kv_layout(spec: &ModelSpec, precision: KvPrecision) -> KvLayout {
    let mut layout = KvLayout { page_len: PAGE_LEN, layers: Vec::new(), states: Vec::new() };
    for layer in &spec.layers {
        if let Some(a) = layer.mixer.attention() {
            match a.keys {
                KvSource::OfLayer(_) | KvSource::OfTarget { .. } => {}
                KvSource::Projected | KvSource::SharedByValues => layout.layers.push(KvLayerLayout {
                    n_kv_heads: a.n_kv_heads,
                    head_dim: a.head_dim,
                    precision,
                    // Bidirectional layers are computed at once, and nothing of them is kept.
                    window: a.window.filter(|_| a.mask != Mask::Bidirectional),
                }),
            }
        }
        match &layer.mixer {
            Mixer::Attention(_) | Mixer::Latent(_) | Mixer::None => {}
            Mixer::ShortConv(conv) => layout.states.push((conv.kernel - 1) * spec.d_model),
            Mixer::DeltaNet(delta) => {
                layout.states.push((delta.kernel - 1) * delta.qkv_width());
                layout.states.push(delta.n_v_heads * delta.k_dim * delta.v_dim);
            }
            Mixer::Ssm(ssm) | Mixer::AttentionAndSsm { ssm: (ssm, _), .. } => {
                layout.states.push((ssm.kernel - 1) * ssm.xbc_width());
                layout.states.push(ssm.inner() * ssm.d_state);
            }
        }
    }
    if let Some(draft) = &spec.draft {
        draft::extend_layout(&mut layout, draft, spec.d_model, precision);
    }
    layout
}

/// Builds the graph of a model: token ids in, logits (outputs, n_vocab) or embeddings (outputs, output_width) out.
///
/// Errors: those of `WeightSource`.
pub fn build(
    spec: &ModelSpec,
    placement: &Placement,
    kv: KvPrecision,
    weights: &mut dyn WeightSource,
) -> Result<Graph> {
    assert_eq!(placement.layers.len(), spec.layers.len(), "every layer has a device");
    let mut decoder = Decoder {
        graph: GraphBuilder::new(kv_layout(spec, kv))?,
        weights,
        layer: None,
        d_model: spec.d_model,
        kv_layers: Vec::with_capacity(spec.layers.len()),
        n_kv_layers: 0,
        n_states: 0,
        kv_use: KvUse::PerLayer,
        kv,
    };
    decoder.graph.on(placement.first());
    let (embedded, per_layer) = decoder.embed(spec)?; // (tokens, d_model), (tokens, n_layers · width)
    let mut x = match &spec.streams {
        Some(altup) => decoder.begin_streams(embedded, altup)?, // (tokens, n_streams · d_model)
        None => embedded,
    };
    for (index, (layer, &device)) in spec.layers.iter().zip(&placement.layers).enumerate() {
        decoder.layer = Some(index);
        decoder.graph.on(device);
        x = decoder.graph.copy(decoder.name("copy"), x)?;
        let input = match (&layer.per_layer_input, per_layer) {
            (Some(input), Some(all)) => {
                Some((input, decoder.per_layer_columns(all, input, index, spec.layers.len())?))
            }
            _ => None,
        };
        x = match &spec.streams {
            Some(altup) => decoder.streams_layer(x, layer, altup, input)?,
            None => {
                let x = decoder.layer(x, layer)?;
                match input {
                    Some(input) => decoder.add_per_layer_input(x, input)?,
                    None => x,
                }
            }
        };
        x = decoder.layer_scale(x, layer)?;
        if index < spec.embedding.n_image_layers {
            let name = decoder.name("image");
            let rows = decoder.graph.given(name, (index + 1) * spec.d_model, spec.d_model)?;
            x = decoder.graph.add(decoder.name("image_add"), x, rows)?;
        }
    }
    decoder.layer = None;
    decoder.graph.on(placement.last());
    if let Some(draft) = &spec.draft {
        return decoder.finish_with_draft(spec, draft, [embedded, x]);
    }
    if let Some(assistant) = spec.assistant()
        && let Some(device) = assistant_device(assistant, placement)
    {
        return decoder.finish_with_assistant((spec, assistant), device, x);
    }
    let x = decoder.graph.output_rows("output.rows", x)?; // (outputs, d_model), or that of all streams
    let x = decoder.hidden(x, spec)?;
    let x = decoder.output(x, spec)?;
    Ok(decoder.graph.finish(x)?)
}

/// A graph under construction.
struct Decoder<'a> {
    graph: GraphBuilder,
    weights: &'a mut dyn WeightSource,
    /// Layer under construction. `None` outside of layers.
    layer: Option<usize>,
    d_model: usize,
    /// For each layer so far its index in the key-value cache, if it has its own.
    kv_layers: Vec<Option<usize>>,
    n_kv_layers: usize,
    /// Recurrent states used so far, in the order of `kv_layout`.
    n_states: usize,
    kv_use: KvUse,
    /// How keys and values are stored.
    kv: KvPrecision,
}

/// Where the layers of a graph store keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KvUse {
    /// Each in its own layer of the cache.
    PerLayer,
    /// All in this one: nothing that they wrote before is needed.
    Same(usize),
}

impl Decoder<'_> {
    /// Builds the first value of the residual stream, and the per-layer inputs if there are any.
    fn embed(&mut self, spec: &ModelSpec) -> Result<(ValueId, Option<ValueId>)> {
        let table = self.weight(Role::TokenEmbedding)?;
        let mut x = self.graph.embed("embed", &table, spec.embedding.scale)?;
        if spec.embedding.n_positions.is_some() {
            let table = self.weight(Role::PositionEmbedding)?;
            let positions = self.graph.embed_position("embed.position", &table)?;
            x = self.graph.add("embed.add", x, positions)?;
        }
        if spec.embedding.n_kinds.is_some() {
            let table = self.weight(Role::TokenTypes)?;
            let kind = self.graph.embed_kind("embed.kind", &table)?;
            x = self.graph.add("embed.kind_add", x, kind)?;
        }
        if let Some(norm) = spec.embedding.norm {
            x = self.norm("embed.norm", x, norm, Role::EmbeddingNorm, Role::EmbeddingNormBias)?;
        }
        if spec.embedding.takes_images {
            x = self.graph.replace_given("embed.images", x, 0)?;
        }
        let per_layer = match &spec.embedding.per_layer {
            Some(per_layer) => Some(self.per_layer_embedding(x, per_layer)?),
            None => None,
        };
        Ok((x, per_layer))
    }

    /// Builds the hidden state that the output matrix multiplies, of what the last layer gave. (rows, d_model)
    fn hidden(&mut self, x: ValueId, spec: &ModelSpec) -> Result<ValueId> {
        let x = match &spec.streams {
            Some(altup) => self.join_streams(x, altup)?,
            None => x,
        };
        self.norm("output.norm", x, spec.output_norm, Role::OutputNorm, Role::OutputNormBias)
    }

    /// x (outputs, d_model) → (outputs, output_width)
    fn output(&mut self, x: ValueId, spec: &ModelSpec) -> Result<ValueId> {
        if let Some(embeds) = &spec.embeds {
            let mut x = x;
            if embeds.rank.is_some() {
                x = self.matmul("output.rank_dense", x, Role::RankDense, Some(Role::RankDenseBias))?;
                // tanh: a soft cap of 1
                x = self.graph.softcap("output.rank_tanh", x, 1.0)?;
                return self.matmul("output.rank", x, Role::RankOut, Some(Role::RankOutBias)); // (outputs, 1)
            }
            for (role, _) in embeds.layers() {
                x = self.matmul(&format!("output.{role:?}"), x, role, None)?;
            }
            return Ok(x);
        }
        let role = if spec.tied_embeddings { Role::TokenEmbedding } else { Role::Output };
        let bias = spec.output_bias.then_some(Role::OutputBias);
        let logits = self.matmul("output", x, role, bias)?; // (outputs, n_vocab)
        self.capped_logits(logits, spec)
    }

    fn capped_logits(&mut self, mut logits: ValueId, spec: &ModelSpec) -> Result<ValueId> {
        if let Some(factor) = spec.output_scale {
            logits = self.graph.scale("output.scale", logits, factor)?;
        }
        match spec.output_softcap {
            Some(cap) => Ok(self.graph.softcap("output.softcap", logits, cap)?),
            None => Ok(logits),
        }
    }

    /// x (tokens, d_model) → same shape
    fn layer(&mut self, x: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        match layer.norms {
            NormPosition::Before => {
                let x = match layer.mixer {
                    Mixer::None => self.without_cache(x),
                    _ => {
                        let normed = self.mixer_norm(x, layer)?;
                        let mixed = self.mixed(normed, layer)?;
                        let x = self.graph.add(self.name("mixer.add"), x, mixed)?;
                        self.laurel(x, normed, layer)?
                    }
                };
                if layer.ffn == Ffn::None {
                    return Ok(x);
                }
                let normed = self.ffn_norm(x, layer)?;
                let out = self.fed(x, normed, layer)?;
                Ok(self.graph.add(self.name("ffn.add"), x, out)?)
            }
            NormPosition::After => {
                let mixed = self.mixed(x, layer)?;
                let x = self.graph.add(self.name("mixer.add"), x, mixed)?;
                let x = self.mixer_norm(x, layer)?;
                let out = self.fed(x, x, layer)?;
                let x = self.graph.add(self.name("ffn.add"), x, out)?;
                self.ffn_norm(x, layer)
            }
            NormPosition::Parallel => {
                let normed = self.mixer_norm(x, layer)?;
                let mixed = self.mixed(normed, layer)?;
                let out = self.fed(x, normed, layer)?;
                let x = self.graph.add(self.name("mixer.add"), x, mixed)?;
                Ok(self.graph.add(self.name("ffn.add"), x, out)?)
            }
        }
    }

    /// Multiplies a layer's output by the number of the file, if there is one.
    fn layer_scale(&mut self, x: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        if !layer.output_scale {
            return Ok(x);
        }
        let factor = self.vector(Role::LayerScale)?[0];
        Ok(self.graph.scale(self.name("scale"), x, factor)?)
    }

    /// Builds what the mixer adds to the residual stream.
    fn mixed(&mut self, x: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        let mixed = self.mixer(x, &layer.mixer)?;
        let mixed = self.post_norm("mixer.post_norm", mixed, layer.mixer_post_norm, Role::MixerPostNorm)?;
        self.scaled("mixer.scale", mixed, layer.residual_scale)
    }

    /// Builds what the feed-forward part adds to the residual stream.
    fn fed(&mut self, residual: ValueId, x: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        let out = self.ffn(residual, x, &layer.ffn)?;
        let out = self.post_norm("ffn.post_norm", out, layer.ffn_post_norm, Role::FfnPostNorm)?;
        self.scaled("ffn.scale", out, layer.residual_scale)
    }

    fn scaled(&mut self, part: &str, x: ValueId, factor: Option<f32>) -> Result<ValueId> {
        match factor {
            Some(factor) => Ok(self.graph.scale(self.name(part), x, factor)?),
            None => Ok(x),
        }
    }

    /// Notes that the layer has no keys and values. Returns `x`.
    fn without_cache(&mut self, x: ValueId) -> ValueId {
        self.kv_layers.push(None);
        x
    }

    fn mixer(&mut self, x: ValueId, mixer: &Mixer) -> Result<ValueId> {
        match mixer {
            Mixer::Attention(attention) => self.attention(x, attention),
            Mixer::ShortConv(conv) => self.short_conv(x, conv),
            Mixer::DeltaNet(delta) => self.delta_net(x, delta),
            Mixer::Latent(latent) => self.latent_attention(x, latent),
            Mixer::Ssm(ssm) => self.ssm(x, ssm),
            Mixer::AttentionAndSsm { attention, ssm } => self.attention_and_ssm(x, attention, ssm),
            Mixer::None => unreachable!("a layer without a mixer has no such part"),
        }
    }

    fn mixer_norm(&mut self, x: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        self.norm("mixer.norm", x, layer.mixer_norm, Role::MixerNorm, Role::MixerNormBias)
    }

    fn ffn_norm(&mut self, x: ValueId, layer: &LayerSpec) -> Result<ValueId> {
        self.norm("ffn.norm", x, layer.ffn_norm, Role::FfnNorm, Role::FfnNormBias)
    }

    fn name(&self, part: &str) -> String {
        match self.layer {
            Some(layer) => match layer.checked_sub(ASSISTANT_LAYERS) {
                Some(of_assistant) => format!("assistant.{of_assistant}.{part}"),
                None => format!("layers.{layer}.{part}"),
            },
            None => part.to_owned(),
        }
    }

    fn weight(&mut self, role: Role) -> Result<Tensor> {
        self.weights.get(role, self.layer, self.graph.device())
    }

    /// Reads a small tensor as numbers.
    fn vector(&mut self, role: Role) -> Result<Arc<[f32]>> {
        Ok(self.weight(role)?.decode().into())
    }

    fn norm(&mut self, part: &str, x: ValueId, norm: Norm, weight: Role, bias: Role) -> Result<ValueId> {
        let name = self.name(part);
        let width = self.graph.width(x);
        match norm {
            Norm::None | Norm::Rms { .. } | Norm::PlainRms { .. } => {
                self.norm_groups(part, x, norm, weight, width)
            }
            Norm::Layer { eps, bias: has_bias } => {
                let weight = self.weight(weight)?;
                let bias = has_bias.then(|| self.weight(bias)).transpose()?;
                Ok(self.graph.layer_norm(name, x, &weight, bias.as_ref(), eps)?)
            }
        }
    }

    fn post_norm(&mut self, part: &str, x: ValueId, norm: Option<Norm>, role: Role) -> Result<ValueId> {
        match norm {
            Some(norm) => self.norm(part, x, norm, role, role),
            None => Ok(x),
        }
    }

    /// Norms every group of `width` columns. Layer norms have weights of their own for each group.
    fn norm_groups(
        &mut self,
        part: &str,
        x: ValueId,
        norm: Norm,
        weight: Role,
        width: usize,
    ) -> Result<ValueId> {
        let name = self.name(part);
        match norm {
            Norm::None => Ok(x),
            Norm::Rms { eps, offset } => {
                let weight = self.weight(weight)?;
                Ok(self.graph.rms_norm_groups(name, x, Some(&weight), offset, eps, width)?)
            }
            Norm::PlainRms { eps } => Ok(self.graph.rms_norm_groups(name, x, None, 0.0, eps, width)?),
            Norm::Layer { eps, .. } => {
                let weight = flattened(&self.weight(weight)?)?;
                Ok(self.graph.layer_norm_groups(name, x, &weight, None, eps, width)?)
            }
        }
    }

    /// weight (out, width of x), with an optional bias and the adapters of the role
    fn matmul(&mut self, part: &str, x: ValueId, role: Role, bias: Option<Role>) -> Result<ValueId> {
        let bias = bias.map(|role| self.weight(role)).transpose()?;
        self.matmul_and_shift(part, x, role, bias.as_ref())
    }

    /// As `matmul`, with a bias that need not be of the file.
    fn matmul_and_shift(
        &mut self,
        part: &str,
        x: ValueId,
        role: Role,
        bias: Option<&Tensor>,
    ) -> Result<ValueId> {
        let weight = self.weight(role)?;
        let name = self.name(part);
        let bounds = self.weights.bounds(role, self.layer);
        let x = match bounds.map(|bounds| bounds.input) {
            Some((low, high)) => self.graph.clamp(format!("{name}.input"), x, low, high)?,
            None => x,
        };
        let mut y = self.graph.matmul(name.clone(), x, &weight, bias)?;
        if let Some((low, high)) = bounds.map(|bounds| bounds.output) {
            y = self.graph.clamp(format!("{name}.output"), y, low, high)?;
        }
        let adapters = self.weights.adapters(role, self.layer, self.graph.device())?;
        for (i, LowRankUpdate { a, b, scale }) in adapters.iter().enumerate() {
            let low = self.graph.matmul(format!("{name}.adapter{i}.a"), x, a, None)?; // (tokens, rank)
            let low = self.graph.scale(format!("{name}.adapter{i}.scale"), low, *scale)?;
            let high = self.graph.matmul(format!("{name}.adapter{i}.b"), low, b, None)?; // like y
            y = self.graph.add(format!("{name}.adapter{i}.add"), y, high)?;
        }
        Ok(y)
    }
}

/// The same values as a vector.
fn flattened(weight: &Tensor) -> Result<Tensor> {
    vector(&weight.decode())
}

/// A vector of numbers that no file has.
fn vector(values: &[f32]) -> Result<Tensor> {
    let data = SharedBytes::from_vec(values.iter().flat_map(|x| x.to_le_bytes()).collect());
    let view = TensorView { name: "numbers", dtype: DType::F32, shape: &[values.len()], data };
    Ok(Tensor::host(&view)?)
}
