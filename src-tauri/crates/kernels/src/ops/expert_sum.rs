//! Adds the results of a token's experts, weighted by its route.

use super::{OpRow, moe_route};
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "expert_sum", formula: "Σ weight[slot] · x[slot]" };

/// One token: x (n_used, width), route (2, n_used), out (width)
pub type ExpertSum = fn(x: &[f32], route: &[f32], out: &mut [f32]);

/// x (n_used, width), route (2, n_used), out (width)
pub fn scalar(x: &[f32], route: &[f32], out: &mut [f32]) {
    let width = out.len();
    for (i, out) in out.iter_mut().enumerate() {
        let slots = moe_route::weights(route).iter().enumerate();
        *out = slots.map(|(slot, weight)| weight * x[slot * width + i]).sum();
    }
}

#[inline(always)]
fn body<M: Mac>(x: &[f32], route: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for (x, weight) in x.chunks_exact(out.len()).zip(moe_route::weights(route)) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = M::mac(*weight, *x, *out);
        }
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &[f32], route: &[f32], out: &mut [f32]));
