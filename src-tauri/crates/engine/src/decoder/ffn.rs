//! Feed-forward part of one layer.

use kernels::{Activation, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{Dense, Ffn, Role};

impl Decoder<'_> {
    /// `residual` and its norm `x`: (tokens, d_model) → same shape
    pub(super) fn ffn(&mut self, residual: ValueId, x: ValueId, spec: &Ffn) -> Result<ValueId> {
        match spec {
            Ffn::Gated(dense) => self.gated(x, dense),
            Ffn::Scaled { dense, gate_factor, out_factor } => {
                self.scaled_dense(x, dense, [*gate_factor, *out_factor])
            }
            Ffn::Sparse { dense, deviations } => self.sparse(x, dense, *deviations),
            Ffn::Plain(dense) => self.plain(x, dense),
            Ffn::None => unreachable!("a layer without a feed-forward part has no such part"),
            Ffn::Experts(experts) => self.experts(residual, x, experts),
            Ffn::GatedAndExperts { dense, experts, norm } => {
                let dense = self.gated(x, dense)?;
                let dense = self.post_norm("ffn.dense_norm", dense, Some(*norm), Role::DensePostNorm)?;
                let x = self.post_norm("experts.norm", residual, Some(*norm), Role::ExpertNorm)?;
                let chosen = self.experts(residual, x, experts)?;
                let chosen =
                    self.post_norm("experts.post_norm", chosen, Some(*norm), Role::ExpertPostNorm)?;
                Ok(self.graph.add(self.name("ffn.both"), dense, chosen)?)
            }
        }
    }

    fn gated(&mut self, x: ValueId, dense: &Dense) -> Result<ValueId> {
        let bias = |role| dense.bias.then_some(role);
        let gate = self.matmul("ffn.gate", x, Role::Gate, bias(Role::GateBias))?; // (tokens, d_ff)
        let up = self.matmul("ffn.up", x, Role::Up, bias(Role::UpBias))?; // (tokens, d_ff)
        let gated = self.glu("ffn.glu", gate, up, dense.activation)?;
        self.matmul("ffn.down", gated, Role::Down, bias(Role::DownBias))
    }

    fn scaled_dense(&mut self, x: ValueId, dense: &Dense, [of_gate, of_out]: [f32; 2]) -> Result<ValueId> {
        let bias = |role| dense.bias.then_some(role);
        let gate = self.matmul("ffn.gate", x, Role::Gate, bias(Role::GateBias))?; // (tokens, d_ff)
        let gate = self.graph.scale(self.name("ffn.gate_factor"), gate, of_gate)?;
        let up = self.matmul("ffn.up", x, Role::Up, bias(Role::UpBias))?; // (tokens, d_ff)
        let gated = self.glu("ffn.glu", gate, up, dense.activation)?;
        let out = self.matmul("ffn.down", gated, Role::Down, bias(Role::DownBias))?;
        Ok(self.graph.scale(self.name("ffn.out_factor"), out, of_out)?)
    }

    fn sparse(&mut self, x: ValueId, dense: &Dense, deviations: f32) -> Result<ValueId> {
        let bias = |role| dense.bias.then_some(role);
        let gate = self.matmul("ffn.gate", x, Role::Gate, bias(Role::GateBias))?; // (tokens, d_ff)
        let up = self.matmul("ffn.up", x, Role::Up, bias(Role::UpBias))?; // (tokens, d_ff)
        let largest = self.graph.gaussian_top_k(self.name("ffn.largest"), gate, deviations)?;
        let gated = self.glu("ffn.glu", largest, up, dense.activation)?;
        self.matmul("ffn.down", gated, Role::Down, bias(Role::DownBias))
    }

    fn plain(&mut self, x: ValueId, dense: &Dense) -> Result<ValueId> {
        let bias = |role| dense.bias.then_some(role);
        let up = self.matmul("ffn.up", x, Role::Up, bias(Role::UpBias))?; // (tokens, d_ff)
        let active = self.graph.activate(self.name("ffn.act"), up, dense.activation)?;
        self.matmul("ffn.down", active, Role::Down, bias(Role::DownBias))
    }

    /// `gate` and `up` of the same shape → same shape
    pub(super) fn glu(
        &mut self,
        part: &str,
        gate: ValueId,
        up: ValueId,
        activation: Activation,
    ) -> Result<ValueId> {
        Ok(self.graph.glu(self.name(part), gate, up, activation)?)
    }
}
