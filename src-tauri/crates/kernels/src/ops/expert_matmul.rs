//! Multiplies each token with the weights of the experts that it is routed to.

use super::{OpRow, dot, moe_route};
use crate::graph::Experts;

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "expert_matmul", formula: "x · W[expert]ᵀ + bias[expert], for each chosen expert" };

/// One token: x (in) or (n_used, in), route (2, n_used), bias (n_experts, out) or empty, out (n_used, out);
/// `row` (in) is scratch.
pub fn scalar(x: &[f32], route: &[f32], experts: &Experts, bias: &[f32], row: &mut [f32], out: &mut [f32]) {
    let n_used = route.len() / 2;
    let (k, n_out) = (row.len(), out.len() / n_used);
    for (slot, out) in out.chunks_exact_mut(n_out).enumerate() {
        let x = if x.len() == k { x } else { &x[slot * k..(slot + 1) * k] };
        let expert = moe_route::expert(route, slot, experts.weights.len());
        for (r, out) in out.iter_mut().enumerate() {
            experts.weights[expert].decode_row(r, row);
            *out = (dot::LEVELS.portable)(x, row);
            if !bias.is_empty() {
                *out += bias[expert * n_out + r];
            }
        }
    }
}
