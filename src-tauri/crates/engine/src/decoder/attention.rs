//! Attention of one layer: projections, norms, rotary embedding, cache write, softmax attention, output projection.

use std::sync::Arc;

use kernels::{Activation, AttentionShape, Columns, KvPrecision, RopeShape, ValueId};

use super::{Decoder, KvUse};
use crate::error::Result;
use crate::spec::{Attention, KvSource, QkNormForm, Role, Rope, Rotary};

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
            KvSource::OfTarget { .. } => unreachable!("an assistant in use names the layers that it attends"),
        };
        let mut attended = self.attend(q, spec, kv_layer)?; // like q
        if let Some(gate) = gate {
            let name = self.name("attention.gated");
            attended = self.graph.glu(name, gate, attended, Activation::Sigmoid)?;
        }
        let bias = spec.out_bias.then_some(Role::AttentionOutBias);
        self.matmul("attention.out", attended, Role::AttentionOut, bias)
    }

    /// q (tokens, n_heads · head_dim) → same shape
    pub(super) fn attend(&mut self, q: ValueId, spec: &Attention, kv_layer: usize) -> Result<ValueId> {
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
        let q = self.graph.rotate_heads(self.name("attention.q_hadamard"), q, spec.head_dim, self.kv.keys)?;
        let attended = self.graph.attention(self.name("attention.softmax"), q, shape)?;
        let name = self.name("attention.hadamard");
        Ok(self.graph.rotate_heads(name, attended, spec.head_dim, self.kv.values)?)
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
        q =
            self.norm_and_rope(["attention.q_norm", "attention.q_rope"], q, spec, Role::QueryNorm, n_heads)?;
        if let Some(scale) = spec.position_scale {
            let name = self.name("attention.q_scale");
            q = self.graph.position_scale(name, q, scale.beta, scale.original_context)?;
        }
        Ok((q, gate))
    }

    /// Writes keys and values to the cache. Returns the layer's index in it.
    pub(super) fn keys_and_values(&mut self, x: ValueId, spec: &Attention) -> Result<usize> {
        let bias = |role| spec.qkv_bias.then_some(role);
        let head_dim = spec.head_dim;
        let projected = self.matmul("attention.k", x, Role::Key, bias(Role::KeyBias))?; // (tokens, n_kv_heads · head_dim)
        let mut v = match spec.keys {
            KvSource::SharedByValues => projected,
            KvSource::Projected | KvSource::OfLayer(_) | KvSource::OfTarget { .. } => {
                self.matmul("attention.v", x, Role::Value, bias(Role::ValueBias))?
            }
        };
        if let Some(norm) = spec.value_norm {
            v = self.norm_groups("attention.v_norm", v, norm, Role::Value, head_dim)?;
        }
        let parts = ["attention.k_norm", "attention.k_rope"];
        let k = self.norm_and_rope(parts, projected, spec, Role::KeyNorm, spec.n_kv_heads)?;
        self.write_kv(k, v, head_dim)
    }

    /// Writes keys and values to the cache, rotated where they are quantized. Returns the layer's index in it.
    pub(super) fn write_kv(&mut self, k: ValueId, v: ValueId, head_dim: usize) -> Result<usize> {
        let KvPrecision { keys, values } = self.kv;
        let turned = self.graph.rotate_heads(self.name("attention.k_hadamard"), k, head_dim, keys)?;
        let v = match k == v && keys.is_quantized() == values.is_quantized() {
            true => turned,
            false => self.graph.rotate_heads(self.name("attention.v_hadamard"), v, head_dim, values)?,
        };
        let (k, name) = (turned, self.name("attention.kv_write"));
        let kv_layer = match self.kv_use {
            KvUse::PerLayer => {
                self.graph.kv_write(name, k, v, self.n_kv_layers)?;
                self.n_kv_layers += 1;
                self.n_kv_layers - 1
            }
            KvUse::Same(layer) => {
                self.graph.kv_rewrite(name, k, v, layer)?;
                layer
            }
        };
        self.kv_layers.push(Some(kv_layer));
        Ok(kv_layer)
    }

    /// x (tokens, n_heads · head_dim) → same shape
    fn norm_and_rope(
        &mut self,
        [norm_name, rope_name]: [&str; 2],
        x: ValueId,
        spec: &Attention,
        role: Role,
        n_heads: usize,
    ) -> Result<ValueId> {
        let head_dim = spec.head_dim;
        let Some(norm) = spec.qk_norm else { return self.rope(rope_name, x, &spec.rope, n_heads, head_dim) };
        let width = match spec.qk_norm_form {
            QkNormForm::Head | QkNormForm::OwnHead => head_dim,
            QkNormForm::Projection => n_heads * head_dim,
            QkNormForm::RotatedHead => {
                let x = self.rope(rope_name, x, &spec.rope, n_heads, head_dim)?;
                return self.norm_groups(norm_name, x, norm, role, head_dim);
            }
        };
        let x = self.norm_groups(norm_name, x, norm, role, width)?;
        self.rope(rope_name, x, &spec.rope, n_heads, head_dim)
    }

    /// x (tokens, n_heads · head_dim) → same shape
    pub(super) fn rope(
        &mut self,
        part: &str,
        x: ValueId,
        rope: &Rope,
        n_heads: usize,
        head_dim: usize,
    ) -> Result<ValueId> {
        match rope {
            Rope::None => Ok(x),
            Rope::Rotary(rotary) => self.rotate(part, x, rotary, &[].into(), (n_heads, head_dim)),
            Rope::ByAxis { rotary, axes } => self.rotate(part, x, rotary, axes, (n_heads, head_dim)),
        }
    }

    fn rotate(
        &mut self,
        part: &str,
        x: ValueId,
        rotary: &Rotary,
        axes: &Arc<[u8]>,
        (n_heads, head_dim): (usize, usize),
    ) -> Result<ValueId> {
        let shape = RopeShape {
            n_heads,
            head_dim,
            n_rot: rotary.n_rot,
            inv_freq: rotary.inv_freq.clone(),
            axes: axes.clone(),
            mscale: rotary.mscale,
            style: rotary.style,
        };
        Ok(self.graph.rope(self.name(part), x, &shape)?)
    }
}
