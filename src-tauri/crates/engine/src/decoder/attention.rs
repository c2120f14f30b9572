//! Attention of one layer: projections, norms, rotary embedding, cache write, softmax attention, output projection.

use kernels::{Activation, AttentionShape, Columns, RopeShape, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{Attention, KvSource, Role, Rope};

impl Decoder<'_> {
    /// x (tokens, d_model) → same shape
    pub(super) fn attention(&mut self, x: ValueId, spec: &Attention) -> Result<ValueId> {
        let (q, gate) = self.queries(x, spec)?; // both (tokens, n_heads · head_dim)
        let kv_layer = match spec.keys {
            KvSource::OfLayer(layer) => {
                self.kv_layers.push(None);
                self.kv_layers[layer].expect("shared keys come from a layer that projects its own")
            }
            KvSource::Projected | KvSource::SharedByValues => self.keys_and_values(x, spec)?,
        };
        let sinks = spec.sinks.then(|| self.vector(Role::Sinks)).transpose()?;
        let shape = AttentionShape {
            layer: kv_layer,
            n_heads: spec.n_heads,
            n_kv_heads: spec.n_kv_heads,
            head_dim: spec.head_dim,
            scale: spec.scale,
            mask: spec.mask,
            window: spec.window,
            softcap: spec.softcap,
            sinks,
        };
        let mut attended = self.graph.attention(self.name("attention.softmax"), q, shape)?; // like q
        if let Some(gate) = gate {
            let name = self.name("attention.gated");
            attended = self.graph.glu(name, gate, attended, Activation::Sigmoid)?;
        }
        let bias = spec.out_bias.then_some(Role::AttentionOutBias);
        self.matmul("attention.out", attended, Role::AttentionOut, bias)
    }

    /// Builds queries, normed, rotated and scaled, and the output gate.
    fn queries(&mut self, x: ValueId, spec: &Attention) -> Result<(ValueId, Option<ValueId>)> {
        let (n_heads, head_dim) = (spec.n_heads, spec.head_dim);
        let mut q = self.matmul("attention.q", x, Role::Query, spec.qkv_bias.then_some(Role::QueryBias))?;
        let mut gate = None;
        if spec.output_gate {
            let half = |start| Columns { n_groups: n_heads, stride: 2 * head_dim, start, width: head_dim };
            gate = Some(self.graph.columns(self.name("attention.gate"), q, half(head_dim))?);
            q = self.graph.columns(self.name("attention.q_columns"), q, half(0))?;
        }
        if let Some(norm) = spec.qk_norm {
            q = self.norm_groups("attention.q_norm", q, norm, Role::QueryNorm, head_dim)?;
        }
        q = self.rope("attention.q_rope", q, &spec.rope, n_heads, head_dim)?;
        if let Some(scale) = spec.position_scale {
            let name = self.name("attention.q_scale");
            q = self.graph.position_scale(name, q, scale.beta, scale.original_context)?;
        }
        Ok((q, gate))
    }

    /// Writes keys and values to the cache. Returns the layer's index in it.
    fn keys_and_values(&mut self, x: ValueId, spec: &Attention) -> Result<usize> {
        let bias = |role| spec.qkv_bias.then_some(role);
        let head_dim = spec.head_dim;
        let projected = self.matmul("attention.k", x, Role::Key, bias(Role::KeyBias))?; // (tokens, n_kv_heads · head_dim)
        let mut v = match spec.keys {
            KvSource::SharedByValues => projected,
            KvSource::Projected | KvSource::OfLayer(_) => {
                self.matmul("attention.v", x, Role::Value, bias(Role::ValueBias))?
            }
        };
        if let Some(norm) = spec.value_norm {
            v = self.norm_groups("attention.v_norm", v, norm, Role::Value, head_dim)?;
        }
        let mut k = projected;
        if let Some(norm) = spec.qk_norm {
            k = self.norm_groups("attention.k_norm", k, norm, Role::KeyNorm, head_dim)?;
        }
        k = self.rope("attention.k_rope", k, &spec.rope, spec.n_kv_heads, head_dim)?;
        let kv_layer = self.n_kv_layers;
        self.n_kv_layers += 1;
        self.kv_layers.push(Some(kv_layer));
        self.graph.kv_write(self.name("attention.kv_write"), k, v, kv_layer)?;
        Ok(kv_layer)
    }

    /// x (tokens, n_heads · head_dim) → same shape
    fn rope(
        &mut self,
        part: &str,
        x: ValueId,
        rope: &Rope,
        n_heads: usize,
        head_dim: usize,
    ) -> Result<ValueId> {
        match rope {
            Rope::None => Ok(x),
            Rope::Rotary(rotary) => {
                let shape = RopeShape {
                    n_heads,
                    head_dim,
                    n_rot: rotary.n_rot,
                    inv_freq: rotary.inv_freq.clone(),
                    mscale: rotary.mscale,
                    style: rotary.style,
                };
                Ok(self.graph.rope(self.name(part), x, &shape)?)
            }
        }
    }
}
