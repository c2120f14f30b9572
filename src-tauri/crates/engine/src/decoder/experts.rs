//! Mixture of experts: router, products of the chosen experts, and the shared expert.

use kernels::{Activation, ExpertChoice, Experts as Matrices, Routing, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{ExpertForm, Experts, Norm, Role, Router, RouterInput, SharedWeight};

impl Decoder<'_> {
    /// `residual` and the experts' input `x`: (tokens, d_model) → same shape
    pub(super) fn experts(&mut self, residual: ValueId, x: ValueId, spec: &Experts) -> Result<ValueId> {
        let route = self.route(residual, x, spec)?;
        let bias = |role| spec.bias.then_some(role);
        let gate = match spec.form {
            ExpertForm::Plain => None,
            ExpertForm::Gated => {
                let role = Role::ExpertGate;
                Some(self.expert_matmul("experts.gate", x, route, role, bias(Role::ExpertGateBias))?)
            }
        };
        let up = self.expert_matmul("experts.up", x, route, Role::ExpertUp, bias(Role::ExpertUpBias))?; // (tokens, n_used · d_ff)
        let gated = self.expert_hidden("experts", gate, up, spec.activation)?;
        let down =
            self.expert_matmul("experts.down", gated, route, Role::ExpertDown, bias(Role::ExpertDownBias))?; // (tokens, n_used · d_model)
        let chosen = self.graph.expert_sum(self.name("experts.sum"), down, route)?;
        match &spec.shared {
            Some(shared) => {
                let shared = self.shared_expert(x, spec, shared.weight)?;
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
            choice: self.choice(&spec.router)?,
        };
        Ok(self.graph.moe_route(self.name("router.choice"), logits, routing)?)
    }

    fn choice(&mut self, router: &Router) -> Result<ExpertChoice> {
        let Router { scoring, selection_bias, groups, sum_epsilon, scale } = *router;
        let selection_bias = selection_bias.then(|| self.vector(Role::RouterSelectionBias)).transpose()?;
        Ok(ExpertChoice { scoring, selection_bias, groups, sum_epsilon, scale })
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

    fn shared_expert(&mut self, x: ValueId, spec: &Experts, weight: SharedWeight) -> Result<ValueId> {
        let gate = match spec.form {
            ExpertForm::Plain => None,
            ExpertForm::Gated => Some(self.matmul("shared.gate", x, Role::SharedGate, None)?),
        };
        let up = self.matmul("shared.up", x, Role::SharedUp, None)?;
        let gated = self.expert_hidden("shared", gate, up, spec.activation)?;
        let down = self.matmul("shared.down", gated, Role::SharedDown, None)?; // (tokens, d_model)
        match weight {
            SharedWeight::One => Ok(down),
            SharedWeight::Gate => {
                let weight = self.matmul("shared.router", x, Role::SharedRouter, None)?; // (tokens, 1)
                Ok(self.graph.row_gate(self.name("shared.gated"), weight, down)?)
            }
        }
    }

    /// act(gate) · up, or act(up) without a gate
    fn expert_hidden(
        &mut self,
        part: &str,
        gate: Option<ValueId>,
        up: ValueId,
        activation: Activation,
    ) -> Result<ValueId> {
        match gate {
            Some(gate) => self.glu(&format!("{part}.glu"), gate, up, activation),
            None => Ok(self.graph.activate(self.name(&format!("{part}.act")), up, activation)?),
        }
    }
}
