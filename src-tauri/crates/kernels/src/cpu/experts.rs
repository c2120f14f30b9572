//! Products of the experts that tokens are routed to.

use super::Context;
use crate::graph::{Experts, ValueId};
use crate::ops::expert_matmul;

/// x (tokens, in) or (tokens, n_used · in) → (tokens, n_used · out)
pub fn product(
    cx: &mut Context,
    node: usize,
    [x, route]: [ValueId; 2],
    experts: &Experts,
    out: ValueId,
) -> Result<(), String> {
    let memory = &mut *cx.memory;
    let (n_x, n_route, n_out) =
        (memory.values.width(x), memory.values.width(route), memory.values.width(out));
    let bias = &memory.vectors[node];
    let ([x, route], [out]) = memory.values.borrow([x, route], [out]);
    let mut row = vec![0.0; experts.weights[0].n_cols()];
    for ((x, route), out) in
        x.chunks_exact(n_x).zip(route.chunks_exact(n_route)).zip(out.chunks_exact_mut(n_out))
    {
        expert_matmul::scalar(x, route, experts, bias, &mut row, out);
    }
    Ok(())
}
