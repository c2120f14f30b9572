//! Mixture of experts: router, products of the chosen experts, and the shared expert.

use kernels::{Experts as Matrices, Routing, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{Experts, Norm, Role, RouterInput};

impl Decoder<'_> {
    /// `residual` and the experts' input `x`: (tokens, d_model) → same shape
    pub(super) fn experts(&mut self, residual: ValueId, x: ValueId, spec: &Experts) -> Result<ValueId> {
        let route = self.route(residual, x, spec)?;
        let bias = |role| spec.bias.then_some(role);
        let gate =
            self.expert_matmul("experts.gate", x, route, Role::ExpertGate, bias(Role::ExpertGateBias))?; // (tokens, n_used · d_ff)
        let up = self.expert_matmul("experts.up", x, route, Role::ExpertUp, bias(Role::ExpertUpBias))?; // like gate
        let gated = self.glu("experts.glu", gate, up, spec.activation)?;
        let down =
            self.expert_matmul("experts.down", gated, route, Role::ExpertDown, bias(Role::ExpertDownBias))?; // (tokens, n_used · d_model)
        let chosen = self.graph.expert_sum(self.name("experts.sum"), down, route)?;
        match &spec.shared {
            Some(_) => {
                let shared = self.shared_expert(x, spec)?;
                Ok(self.graph.add(self.name("experts.add"), chosen, shared)?)
            }
            None => Ok(chosen),
        }
    }

    fn route(&mut self, residual: ValueId, x: ValueId, spec: &Experts) -> Result<ValueId> {
        let input = match spec.router_input {
            RouterInput::Normed => x,
            RouterInput::Residual { eps, scale } => {
                let norm = Norm::rms(eps);
                let normed = self.post_norm("router.norm", residual, Some(norm), Role::RouterScale)?;
                self.graph.scale(self.name("router.scale"), normed, scale)?
            }
        };
        let bias = spec.router_bias.then_some(Role::RouterBias);
        let logits = self.matmul("router", input, Role::Router, bias)?; // (tokens, n_experts)
        let routing = Routing {
            n_experts: spec.n_experts,
            n_used: spec.n_used,
            renormalize: spec.renormalize,
            expert_scale: spec.expert_scale.then(|| self.vector(Role::ExpertScale)).transpose()?,
        };
        Ok(self.graph.moe_route(self.name("router.choice"), logits, routing)?)
    }

    fn expert_matmul(
        &mut self,
        part: &str,
        x: ValueId,
        route: ValueId,
        role: Role,
        bias: Option<Role>,
    ) -> Result<ValueId> {
        let weights = self.weights.experts(role, self.layer, self.graph.device())?.into();
        let bias = bias.map(|role| self.weight(role)).transpose()?;
        Ok(self.graph.expert_matmul(self.name(part), x, route, Matrices { weights, bias })?)
    }

    fn shared_expert(&mut self, x: ValueId, spec: &Experts) -> Result<ValueId> {
        let gate = self.matmul("shared.gate", x, Role::SharedGate, None)?;
        let up = self.matmul("shared.up", x, Role::SharedUp, None)?;
        let gated = self.glu("shared.glu", gate, up, spec.activation)?;
        let down = self.matmul("shared.down", gated, Role::SharedDown, None)?; // (tokens, d_model)
        let weight = self.matmul("shared.router", x, Role::SharedRouter, None)?; // (tokens, 1)
        Ok(self.graph.row_gate(self.name("shared.gated"), weight, down)?)
    }
}
