//! Layers that carry a state from token to token, as specified.

use super::each_row;
use crate::batch::Batch;
use crate::cpu::memory::HostMemory;
use crate::graph::{ConvShape, DeltaShape, Op, SsmShape, ValueId};
use crate::ops::{delta_net, short_conv, ssm};

/// Runs an operation with a state.
pub(super) fn run(memory: &mut HostMemory, batch: &Batch, op: &Op, out: ValueId) {
    match op {
        Op::ShortConv { x, conv } => convolve(memory, batch, *x, conv, out),
        Op::DeltaNet { qkv, beta, alpha, delta } => {
            advance(memory, batch, [*qkv, *beta, *alpha], delta, out);
        }
        Op::Ssm { xbc, dt, ssm } => advance_ssm(memory, batch, [*xbc, *dt], ssm, out),
        _ => unreachable!("the caller passes operations with a state"),
    }
}

/// Runs a short convolution token by token.
fn convolve(memory: &mut HostMemory, batch: &Batch, x: ValueId, conv: &ConvShape, out: ValueId) {
    let states = &mut memory.states;
    each_row(&mut memory.values, x, out, |row, x, out| {
        let state = states.state_mut(conv.state, batch.state(row));
        if batch.positions[row] == 0 {
            state.fill(0.0);
        }
        short_conv::scalar(x, conv, state, out);
    });
}

/// Runs a gated delta rule token by token and head by head.
fn advance(
    memory: &mut HostMemory,
    batch: &Batch,
    [qkv, beta, alpha]: [ValueId; 3],
    delta: &DeltaShape,
    out: ValueId,
) {
    let width = memory.values.width(qkv);
    let ([qkv, beta, alpha], [out]) = memory.values.borrow([qkv, beta, alpha], [out]);
    for row in 0..batch.n_rows() {
        let states = memory.states.state_mut(delta.state, batch.state(row));
        if batch.positions[row] == 0 {
            states.fill(0.0);
        }
        let qkv = &qkv[row * width..(row + 1) * width];
        let heads = row * delta.n_v_heads..(row + 1) * delta.n_v_heads;
        let (beta, alpha) = (&beta[heads.clone()], &alpha[heads.clone()]);
        let out = &mut out[heads.start * delta.v_dim..heads.end * delta.v_dim];
        for (head, state) in states.chunks_exact_mut(delta.k_dim * delta.v_dim).enumerate() {
            let token = delta_net::token(delta, head, qkv, beta, alpha);
            delta_net::scalar(token, state, &mut out[head * delta.v_dim..(head + 1) * delta.v_dim]);
        }
    }
}

/// Runs a state space token by token and head by head.
fn advance_ssm(
    memory: &mut HostMemory,
    batch: &Batch,
    [xbc, dt]: [ValueId; 2],
    shape: &SsmShape,
    out: ValueId,
) {
    let (width, n) = (memory.values.width(xbc), shape.head_dim);
    let ([xbc, dt], [out]) = memory.values.borrow([xbc, dt], [out]);
    for row in 0..batch.n_rows() {
        let states = memory.states.state_mut(shape.state, batch.state(row));
        if batch.positions[row] == 0 {
            states.fill(0.0);
        }
        let heads = row * shape.n_heads..(row + 1) * shape.n_heads;
        let (xbc, dt) = (&xbc[row * width..(row + 1) * width], &dt[heads.clone()]);
        let out = &mut out[heads.start * n..heads.end * n];
        for (head, state) in states.chunks_exact_mut(n * shape.d_state).enumerate() {
            ssm::scalar(ssm::token(shape, head, xbc, dt), state, &mut out[head * n..(head + 1) * n]);
        }
    }
}
