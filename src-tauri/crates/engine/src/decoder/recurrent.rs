//! Layers with a recurrent state instead of a cache: short convolutions and gated DeltaNet.

use kernels::{Activation, Columns, ConvShape, DeltaShape, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{Decay, DeltaNet, Role, ShortConv};

impl Decoder<'_> {
    /// x (tokens, d_model) → same shape
    pub(super) fn short_conv(&mut self, x: ValueId, spec: &ShortConv) -> Result<ValueId> {
        self.kv_layers.push(None);
        let d = self.d_model;
        let bias = |role| spec.bias.then_some(role);
        let all = self.matmul("conv.in", x, Role::ConvIn, bias(Role::ConvInBias))?; // (tokens, 3 · d_model): B, C, x
        let third = |start| Columns { n_groups: 1, stride: 3 * d, start, width: d };
        let b = self.graph.columns(self.name("conv.b"), all, third(0))?;
        let c = self.graph.columns(self.name("conv.c"), all, third(d))?;
        let x = self.graph.columns(self.name("conv.x"), all, third(2 * d))?;
        let gated = self.graph.glu(self.name("conv.bx"), b, x, Activation::Identity)?;
        let bias_role = bias(Role::ConvBias);
        let conv = self.conv(Role::Conv, bias_role, spec.kernel, Activation::Identity)?;
        let mixed = self.graph.short_conv(self.name("conv.mix"), gated, conv)?; // (tokens, d_model)
        let gated = self.graph.glu(self.name("conv.c_gate"), c, mixed, Activation::Identity)?;
        self.matmul("conv.out", gated, Role::ConvOut, bias(Role::ConvOutBias))
    }

    /// x (tokens, d_model) → same shape
    pub(super) fn delta_net(&mut self, x: ValueId, spec: &DeltaNet) -> Result<ValueId> {
        self.kv_layers.push(None);
        let qkv = self.matmul("delta.qkv", x, Role::DeltaQkv, None)?; // (tokens, qkv_width)
        let gate = self.matmul("delta.gate", x, Role::DeltaGate, None)?; // (tokens, value_width)
        let beta = self.matmul("delta.beta", x, Role::DeltaBeta, None)?; // (tokens, n_v_heads)
        let alpha = self.matmul("delta.alpha", x, Role::DeltaAlpha, None)?; // like beta
        let conv = self.conv(Role::DeltaConv, None, spec.kernel, Activation::Silu)?;
        let qkv = self.graph.short_conv(self.name("delta.conv"), qkv, conv)?;
        let decay = self.vector(Role::DeltaDecay)?;
        let shape = DeltaShape {
            state: self.take_state(),
            n_k_heads: spec.n_k_heads,
            n_v_heads: spec.n_v_heads,
            k_dim: spec.k_dim,
            v_dim: spec.v_dim,
            order: spec.order,
            decay: match spec.decay {
                Decay::Factor => decay,
                Decay::Log => decay.iter().map(|log| -log.exp()).collect(),
            },
            dt_bias: self.vector(Role::DeltaTimeBias)?,
        };
        let mixed = self.graph.delta_net(self.name("delta.rule"), qkv, beta, alpha, shape)?; // like gate
        let normed = self.norm_groups("delta.norm", mixed, spec.norm, Role::DeltaNorm, spec.v_dim)?;
        let gated = self.graph.glu(self.name("delta.gated"), gate, normed, Activation::Silu)?;
        self.matmul("delta.out", gated, Role::DeltaOut, None)
    }

    pub(super) fn conv(
        &mut self,
        weight: Role,
        bias: Option<Role>,
        kernel: usize,
        act: Activation,
    ) -> Result<ConvShape> {
        let weight = self.vector(weight)?;
        let bias = bias.map(|role| self.vector(role)).transpose()?;
        Ok(ConvShape { state: self.take_state(), weight, kernel, bias, act })
    }

    pub(super) fn take_state(&mut self) -> usize {
        self.n_states += 1;
        self.n_states - 1
    }
}
