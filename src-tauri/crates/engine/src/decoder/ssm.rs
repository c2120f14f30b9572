//! State space of one layer: projections, convolution, recurrence, gate and norm; alone or beside attention.

use std::sync::Arc;

use kernels::{Activation, SsmShape, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{Attention, Decay, GateOrder, Norm, Role, Ssm};

impl Decoder<'_> {
    /// x (tokens, d_model) → same shape
    pub(super) fn attention_and_ssm(
        &mut self,
        x: ValueId,
        (attention, of_attention): &(Attention, f32),
        (ssm, of_ssm): &(Ssm, f32),
    ) -> Result<ValueId> {
        let attended = self.attention(x, attention)?;
        let attended = self.scaled_by("attention.factor", attended, *of_attention)?;
        let recurrent = self.recurrence(x, ssm)?;
        let recurrent = self.scaled_by("ssm.factor", recurrent, *of_ssm)?;
        Ok(self.graph.add(self.name("mixer.both"), attended, recurrent)?)
    }

    /// x (tokens, d_model) → same shape
    pub(super) fn ssm(&mut self, x: ValueId, spec: &Ssm) -> Result<ValueId> {
        self.kv_layers.push(None);
        self.recurrence(x, spec)
    }

    fn recurrence(&mut self, x: ValueId, spec: &Ssm) -> Result<ValueId> {
        let bias = |role| spec.in_bias.then_some(role);
        let x = self.scaled_by("ssm.in_factor", x, spec.factors.input)?;
        let z = self.matmul("ssm.gate", x, Role::SsmGate, bias(Role::SsmGateBias))?; // (tokens, inner)
        let xbc = self.matmul("ssm.xbc", x, Role::SsmXbc, bias(Role::SsmXbcBias))?; // (tokens, xbc_width)
        let dt = self.matmul("ssm.step", x, Role::SsmStep, bias(Role::SsmStepBias))?; // (tokens, n_heads)
        let z = self.scaled_by("ssm.gate_factor", z, spec.factors.z)?;
        let dt = self.scaled_by("ssm.step_factor", dt, spec.factors.dt)?;
        let conv_bias = spec.conv_bias.then_some(Role::SsmConvBias);
        let mut conv = self.conv(Role::SsmConv, conv_bias, spec.kernel, Activation::Silu)?;
        conv.weight = scaled_taps(&conv.weight, spec);
        let xbc = self.graph.short_conv(self.name("ssm.conv"), xbc, conv)?;
        let decay = self.vector(Role::SsmDecay)?;
        let shape = SsmShape {
            state: self.take_state(),
            n_heads: spec.n_heads,
            head_dim: spec.head_dim,
            n_groups: spec.n_groups,
            d_state: spec.d_state,
            decay: match spec.decay {
                Decay::Factor => decay,
                Decay::Log => decay.iter().map(|log| -log.exp()).collect(),
            },
            skip: self.vector(Role::SsmSkip)?,
            dt_bias: self.vector(Role::SsmTimeBias)?,
            dt_limits: spec.dt_limits,
        };
        let mixed = self.graph.ssm(self.name("ssm.rule"), xbc, dt, shape)?; // (tokens, inner)
        let gated = match spec.order {
            GateOrder::GateFirst => {
                let gated = self.glu("ssm.gated", z, mixed, Activation::Silu)?;
                self.ssm_norm(gated, spec)?
            }
            GateOrder::NormFirst => {
                let normed = self.ssm_norm(mixed, spec)?;
                self.glu("ssm.gated", z, normed, Activation::Silu)?
            }
        };
        self.matmul("ssm.out", gated, Role::SsmOut, spec.out_bias.then_some(Role::SsmOutBias))
    }

    /// Norms each group of heads. The weight differs between groups.
    fn ssm_norm(&mut self, x: ValueId, spec: &Ssm) -> Result<ValueId> {
        match spec.norm {
            Some(Norm::Rms { eps, .. }) if spec.n_groups > 1 => {
                let width = spec.inner() / spec.n_groups;
                let plain = Norm::PlainRms { eps };
                let normed = self.norm_groups("ssm.norm", x, plain, Role::SsmNorm, width)?;
                let weight = self.vector(Role::SsmNorm)?;
                Ok(self.graph.scale_columns(self.name("ssm.norm_weight"), normed, weight)?)
            }
            norm => self.post_norm("ssm.norm", x, norm, Role::SsmNorm),
        }
    }

    /// Multiplies by a factor, unless it is 1.
    fn scaled_by(&mut self, part: &str, x: ValueId, factor: f32) -> Result<ValueId> {
        match factor {
            1.0 => Ok(x),
            _ => Ok(self.graph.scale(self.name(part), x, factor)?),
        }
    }
}

/// Taps (xbc_width, kernel) times the factors on x, B and C: the same as multiplying these, since the convolution is
/// linear before its activation.
fn scaled_taps(taps: &Arc<[f32]>, spec: &Ssm) -> Arc<[f32]> {
    let factors = spec.factors;
    if [factors.x, factors.b, factors.c] == [1.0; 3] {
        return taps.clone();
    }
    let (inner, b_end) = (spec.inner(), spec.inner() + spec.n_groups * spec.d_state);
    let scaled = taps.chunks_exact(spec.kernel).enumerate().flat_map(|(channel, taps)| {
        let factor = match channel {
            _ if channel < inner => factors.x,
            _ if channel < b_end => factors.b,
            _ => factors.c,
        };
        taps.iter().map(move |tap| tap * factor)
    });
    scaled.collect()
}
