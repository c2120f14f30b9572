//! `ModelSpec` → `Graph`: the only forward pass there is.
//!
//! Weights are asked for by role; where they come from and how they are named is not known here. Every
//! layer runs on the device the placement gives it, with explicit copies between devices.

use kernels::{DeviceId, Graph, GraphBuilder, KvDType, KvLayerLayout, KvLayout, PAGE_LEN, Tensor, ValueId};

use crate::error::Result;
use crate::spec::{ModelSpec, Norm, Role};

mod attention;
mod ffn;

/// Uploaded weights by role. `layer` is None for the model's own tensors.
pub trait Weights {
    /// The tensor of a role on a device. Errors: missing, wrong shape, a dtype that nothing computes with.
    fn get(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Tensor>;
}

/// Where each part of a model runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Device of each layer. (n_layers)
    pub layers: Vec<DeviceId>,
}

impl Placement {
    pub fn single(n_layers: usize) -> Self {
        Self { layers: vec![DeviceId(0); n_layers] }
    }

    /// The embedding lives with the first layer, the output with the last.
    pub fn first(&self) -> DeviceId {
        self.layers.first().copied().unwrap_or(DeviceId(0))
    }

    pub fn last(&self) -> DeviceId {
        self.layers.last().copied().unwrap_or(DeviceId(0))
    }
}

/// What one page of the key-value store holds of each layer.
pub fn kv_layout(spec: &ModelSpec, dtype: KvDType) -> KvLayout {
    let layer = |attention: &crate::spec::Attention| KvLayerLayout {
        n_kv_heads: attention.n_kv_heads,
        head_dim: attention.head_dim,
        dtype,
        window: None,
    };
    let layers = spec.layers.iter().map(|l| layer(&l.attention)).collect();
    KvLayout { page_len: PAGE_LEN, layers, states: Vec::new() }
}

/// The graph of a model: token ids in, logits (outputs, n_vocab) out.
pub fn build(
    spec: &ModelSpec,
    placement: &Placement,
    kv: KvDType,
    weights: &mut dyn Weights,
) -> Result<Graph> {
    assert_eq!(placement.layers.len(), spec.layers.len(), "every layer has its device");
    let mut decoder = Decoder { graph: GraphBuilder::new(kv_layout(spec, kv))?, weights, layer: None };
    decoder.graph.on(placement.first());
    let table = decoder.weight(Role::TokenEmbedding)?;
    let mut x = decoder.graph.embed("embed", &table, 1.0)?; // (tokens, d_model)
    for (index, (layer, &device)) in spec.layers.iter().zip(&placement.layers).enumerate() {
        decoder.layer = Some(index);
        decoder.graph.on(device);
        x = decoder.graph.copy(decoder.name("copy"), x)?;
        let normed = decoder.norm("attention.norm", x, layer.attention_norm, Role::AttentionNorm)?;
        let attended = decoder.attention(normed, &layer.attention, index)?;
        x = decoder.graph.add(decoder.name("attention.add"), x, attended)?;
        let normed = decoder.norm("ffn.norm", x, layer.ffn_norm, Role::FfnNorm)?;
        let fed = decoder.ffn(normed, &layer.ffn)?;
        x = decoder.graph.add(decoder.name("ffn.add"), x, fed)?;
    }
    decoder.layer = None;
    decoder.graph.on(placement.last());
    let x = decoder.graph.output_rows("output.rows", x)?; // (outputs, d_model)
    let x = decoder.norm("output.norm", x, spec.output_norm, Role::OutputNorm)?;
    let role = if spec.tied_embeddings { Role::TokenEmbedding } else { Role::Output };
    let weight = decoder.weight(role)?;
    let logits = decoder.graph.matmul("output", x, &weight, None)?; // (outputs, n_vocab)
    Ok(decoder.graph.finish(logits)?)
}

/// A graph in the making.
struct Decoder<'a> {
    graph: GraphBuilder,
    weights: &'a mut dyn Weights,
    /// The layer being built; None outside of layers.
    layer: Option<usize>,
}

impl Decoder<'_> {
    fn name(&self, part: &str) -> String {
        match self.layer {
            Some(layer) => format!("layers.{layer}.{part}"),
            None => part.to_owned(),
        }
    }

    fn weight(&mut self, role: Role) -> Result<Tensor> {
        self.weights.get(role, self.layer, self.graph.device())
    }

    fn norm(&mut self, part: &str, x: ValueId, norm: Norm, role: Role) -> Result<ValueId> {
        let weight = self.weight(role)?;
        let name = self.name(part);
        match norm {
            Norm::Rms { eps } => Ok(self.graph.rms_norm(name, x, &weight, eps)?),
        }
    }

    /// weight (out, width of x), with the bias of another role where the layer has one
    fn matmul(&mut self, part: &str, x: ValueId, weight: Role, bias: Option<Role>) -> Result<ValueId> {
        let weight = self.weight(weight)?;
        let bias = bias.map(|role| self.weight(role)).transpose()?;
        let name = self.name(part);
        Ok(self.graph.matmul(name, x, &weight, bias.as_ref())?)
    }
}
