//! Mixture of experts: routing, multiplication with the chosen experts, weighted sum.

use super::{GraphBuilder, NodeResult, check};
use crate::error::KernelError;
use crate::graph::{ExpertScoring, Experts, MAX_EXPERT_GROUPS, Op, Routing, Rows, ValueId};

/// Largest number of experts: their indices are stored as floats, which are exact up to here.
const MAX_EXPERTS: usize = 1 << 24;

impl GraphBuilder {
    /// Routing: logits (tokens, n_experts) → (tokens, 2 · n_used)
    pub fn moe_route(&mut self, name: impl Into<String>, logits: ValueId, routing: Routing) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, logits)?;
        check(&name, "width of the router's logits", routing.n_experts, value.width)?;
        if routing.n_experts > MAX_EXPERTS {
            let expected = format!("at most {MAX_EXPERTS}");
            return Err(KernelError::mismatch(&name, "experts", expected, routing.n_experts));
        }
        if routing.n_used == 0 || routing.n_used > routing.n_experts {
            let expected = format!("1..={}", routing.n_experts);
            return Err(KernelError::mismatch(&name, "experts used", expected, routing.n_used));
        }
        if let Some(scale) = &routing.expert_scale {
            check(&name, "factors of the experts", routing.n_experts, scale.len())?;
        }
        check_choice(&name, &routing)?;
        let width = 2 * routing.n_used;
        Ok(self.push(name, Op::MoeRoute { logits, routing }, value.rows, width))
    }

    /// A route to all of `n` experts in their order → (tokens, 2 · n)
    pub fn route_all(&mut self, name: impl Into<String>, n: usize) -> NodeResult {
        let name = name.into();
        if n == 0 || n > MAX_EXPERTS {
            return Err(KernelError::mismatch(&name, "experts", format!("1..={MAX_EXPERTS}"), n));
        }
        Ok(self.push(name, Op::RouteAll { n }, Rows::Tokens, 2 * n))
    }

    /// Multiplication with the chosen experts: x (tokens, in) or (tokens, n_used · in) → (tokens, n_used · out)
    pub fn expert_matmul(
        &mut self,
        name: impl Into<String>,
        x: ValueId,
        route: ValueId,
        experts: Experts,
    ) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        let (n_experts, n_used) = self.routing(&name, route)?;
        check(&name, "experts", n_experts, experts.weights.len())?;
        let first = &experts.weights[0];
        let [n_out, n_in] = self.matrix(&name, first)?;
        for weight in experts.weights.iter() {
            if weight.dtype() != first.dtype() {
                let (expected, found) = (first.dtype().name(), weight.dtype().name());
                return Err(KernelError::mismatch(&name, "format of an expert", expected, found));
            }
            let [out, columns] = self.matrix(&name, weight)?;
            check(&name, "rows of an expert", n_out, out)?;
            check(&name, "columns of an expert", n_in, columns)?;
        }
        if value.width != n_in && n_in.checked_mul(n_used) != Some(value.width) {
            let expected = format!("{n_in} or {n_used} times that");
            return Err(KernelError::mismatch(&name, "width of x", expected, value.width));
        }
        if let Some(bias) = &experts.bias
            && *bias.shape() != [n_experts, n_out]
        {
            let found = format!("{:?}", bias.shape());
            return Err(KernelError::mismatch(
                &name,
                "bias of the experts",
                format!("[{n_experts}, {n_out}]"),
                found,
            ));
        }
        let Some(width) = n_out.checked_mul(n_used) else {
            return Err(KernelError::mismatch(&name, "outputs of the experts", "a smaller number", n_out));
        };
        Ok(self.push(name, Op::ExpertMatMul { x, route, experts }, value.rows, width))
    }

    /// Weighted sum of the experts: x (tokens, n_used · w) → (tokens, w)
    pub fn expert_sum(&mut self, name: impl Into<String>, x: ValueId, route: ValueId) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        let (_, n_used) = self.routing(&name, route)?;
        if !value.width.is_multiple_of(n_used) {
            let expected = format!("a multiple of {n_used}");
            return Err(KernelError::mismatch(&name, "width of x", expected, value.width));
        }
        Ok(self.push(name, Op::ExpertSum { x, route }, value.rows, value.width / n_used))
    }

    /// (n_experts, n_used) of a value that `moe_route` computed.
    fn routing(&self, name: &str, route: ValueId) -> Result<(usize, usize), KernelError> {
        self.token_input(name, route)?;
        let maker = self.nodes.iter().find(|n| n.output == Some(route));
        match maker.map(|n| &n.op) {
            Some(Op::MoeRoute { routing, .. }) => Ok((routing.n_experts, routing.n_used)),
            Some(Op::RouteAll { n }) => Ok((*n, *n)),
            _ => Err(KernelError::mismatch(name, "route", "the output of a router", "another value")),
        }
    }
}

/// Checks biases, groups and what a scoring excludes.
fn check_choice(name: &str, routing: &Routing) -> Result<(), KernelError> {
    let choice = &routing.choice;
    if let Some(bias) = &choice.selection_bias {
        check(name, "selection biases", routing.n_experts, bias.len())?;
    }
    if let Some(groups) = choice.groups {
        let n = groups.n_groups;
        if n == 0 || n > MAX_EXPERT_GROUPS || !routing.n_experts.is_multiple_of(n) {
            let expected = format!("at most {MAX_EXPERT_GROUPS}, dividing {}", routing.n_experts);
            return Err(KernelError::mismatch(name, "groups of experts", expected, n));
        }
        let n_left = groups.n_used * (routing.n_experts / n);
        if groups.n_used == 0 || groups.n_used > n || n_left < routing.n_used {
            let expected = format!("at most {n}, with {} experts or more", routing.n_used);
            return Err(KernelError::mismatch(name, "groups used", expected, groups.n_used));
        }
    }
    let is_plain = choice.selection_bias.is_none() && choice.groups.is_none() && !routing.renormalize;
    match choice.scoring {
        ExpertScoring::SparseMixer { .. } if !is_plain => {
            let expected = "no bias, groups or renormalization";
            Err(KernelError::mismatch(name, "scoring", expected, "SparseMixer with one of them"))
        }
        ExpertScoring::SparseMixer { .. } | ExpertScoring::Softmax | ExpertScoring::Sigmoid => Ok(()),
    }
}
