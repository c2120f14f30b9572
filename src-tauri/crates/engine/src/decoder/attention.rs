//! Attention of one layer: projections, rotary embedding, cache write, softmax attention, output projection.

use kernels::{AttentionShape, RopeShape, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{Attention, Role, Rope};

impl Decoder<'_> {
    /// x (tokens, d_model) → same shape. `kv_layer` is the layer's place in the key-value store.
    pub(super) fn attention(&mut self, x: ValueId, spec: &Attention, kv_layer: usize) -> Result<ValueId> {
        let bias = |role| spec.qkv_bias.then_some(role);
        let q = self.matmul("attention.q", x, Role::Query, bias(Role::QueryBias))?; // (tokens, n_heads · head_dim)
        let k = self.matmul("attention.k", x, Role::Key, bias(Role::KeyBias))?; // (tokens, n_kv_heads · head_dim)
        let v = self.matmul("attention.v", x, Role::Value, bias(Role::ValueBias))?; // like k
        let q = self.rope("attention.q_rope", q, &spec.rope, spec.n_heads, spec.head_dim)?;
        let k = self.rope("attention.k_rope", k, &spec.rope, spec.n_kv_heads, spec.head_dim)?;
        self.graph.kv_write(self.name("attention.kv_write"), k, v, kv_layer)?;
        let shape = AttentionShape {
            layer: kv_layer,
            n_heads: spec.n_heads,
            n_kv_heads: spec.n_kv_heads,
            head_dim: spec.head_dim,
            scale: spec.scale,
            window: spec.window,
            softcap: None,
            sinks: None,
        };
        let attended = self.graph.attention(self.name("attention.softmax"), q, shape)?; // like q
        self.matmul(
            "attention.out",
            attended,
            Role::AttentionOut,
            spec.out_bias.then_some(Role::AttentionOutBias),
        )
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
