//! Layers that carry a state from token to token. Work is divided by channels or heads.
//! Each task goes through the rows of the batch in order, so that results do not depend on how a sequence was
//! cut into batches.

use super::StepContext;
use super::disjoint_slices::DisjointSlices;
use crate::graph::{ConvShape, DeltaShape, MAX_DELTA_HEAD_DIM, SsmShape, ValueId};
use crate::ops::delta_net::{self, DeltaToken};
use crate::ops::ssm;

/// Channels in one task: their taps and states stay in the L1 cache.
const TASK_CHANNELS: usize = 512;
/// Multiply-adds up to which one thread is as fast as many: about 3 µs.
const MIN_PARALLEL_MACS: usize = 64 * 1024;

/// Computes the causal convolution of x (tokens, channels) into `out` of the same shape.
pub fn convolve(
    cx: &mut StepContext,
    node: usize,
    x: ValueId,
    conv: &ConvShape,
    out: ValueId,
) -> Result<(), String> {
    let memory = &mut *cx.memory;
    let n = memory.values.width(x);
    let (taps, bias) = (&memory.vectors[node], &memory.biases[node]);
    let ([x], [out]) = memory.values.borrow([x], [out]);
    let (states, out) = (memory.states.layer(conv.state), DisjointSlices::new(out));
    let (batch, kernels) = (cx.batch, cx.kernels);
    let n_kept = conv.kernel - 1;
    let task = |task: usize| {
        let channels = task * TASK_CHANNELS..((task + 1) * TASK_CHANNELS).min(n);
        let of = |row: usize| row * n + channels.start..row * n + channels.end;
        for row in 0..batch.n_rows() {
            let slot = batch.state(row);
            // SAFETY: these channels of the state and of the output belong to this task alone, and no two
            // ranges in use at the same time belong to the same tap.
            let (kept, out) =
                (|tap: usize| unsafe { states.slice_mut(slot, of(tap)) }, unsafe { out.slice_mut(of(row)) });
            if batch.positions[row] == 0 {
                (0..n_kept).for_each(|tap| kept(tap).fill(0.0));
            }
            out.copy_from_slice(&bias[channels.clone()]);
            for tap in 0..n_kept {
                (kernels.mul_add)(&taps[of(tap)], kept(tap), out);
            }
            (kernels.mul_add)(&taps[of(n_kept)], &x[of(row)], out);
            (kernels.activate)(out, conv.act);
            for tap in 1..n_kept {
                kept(tap - 1).copy_from_slice(kept(tap));
            }
            kept(n_kept - 1).copy_from_slice(&x[of(row)]);
        }
    };
    let n_tasks = n.div_ceil(TASK_CHANNELS);
    if batch.n_rows() * n * conv.kernel <= MIN_PARALLEL_MACS {
        return cx.pool.run(1, &|_, _| (0..n_tasks).for_each(task));
    }
    cx.pool.run(n_tasks, &|i, _| task(i))
}

/// Advances the delta-rule state by qkv, beta and alpha; `out` is (tokens, n_v_heads · v_dim).
pub fn advance(
    cx: &mut StepContext,
    [qkv, beta, alpha]: [ValueId; 3],
    delta: &DeltaShape,
    out: ValueId,
) -> Result<(), String> {
    let memory = &mut *cx.memory;
    let width = memory.values.width(qkv);
    let ([qkv, beta, alpha], [out]) = memory.values.borrow([qkv, beta, alpha], [out]);
    let (states, out) = (memory.states.layer(delta.state), DisjointSlices::new(out));
    let (batch, kernel) = (cx.batch, cx.kernels.delta);
    let (n_heads, dv, len) = (delta.n_v_heads, delta.v_dim, delta.k_dim * delta.v_dim);
    let task = |head: usize| {
        let mut results = [0.0; delta_net::MAX_RUN * MAX_DELTA_HEAD_DIM];
        let mut row = 0;
        while row < batch.n_rows() {
            let slot = batch.state(row);
            // SAFETY: this head's state belongs to this task alone.
            let state = unsafe { states.slice_mut(slot, head * len..(head + 1) * len) };
            if batch.positions[row] == 0 {
                state.fill(0.0);
            }
            let continues = |next: usize| batch.state(next) == slot && batch.positions[next] != 0;
            let after =
                (row + 1..batch.n_rows().min(row + delta_net::MAX_RUN)).take_while(|next| continues(*next));
            let n = 1 + after.count();
            let mut tokens = [DeltaToken::EMPTY; delta_net::MAX_RUN];
            for (token, row) in tokens.iter_mut().zip(row..row + n) {
                let heads = row * n_heads..(row + 1) * n_heads;
                let qkv = &qkv[row * width..(row + 1) * width];
                *token = delta_net::token(delta, head, qkv, &beta[heads.clone()], &alpha[heads]);
            }
            let results = &mut results[..n * dv];
            kernel(&tokens[..n], state, results);
            for (row, result) in (row..row + n).zip(results.chunks_exact(dv)) {
                let at = (row * n_heads + head) * dv;
                // SAFETY: this head's part of the output belongs to this task alone.
                unsafe { out.slice_mut(at..at + dv) }.copy_from_slice(result);
            }
            row += n;
        }
    };
    if batch.n_rows() * n_heads * len <= MIN_PARALLEL_MACS {
        return cx.pool.run(1, &|_, _| (0..n_heads).for_each(task));
    }
    cx.pool.run(n_heads, &|head, _| task(head))
}

/// Advances the state space by xbc and dt; `out` is (tokens, n_heads · head_dim).
pub fn advance_ssm(
    cx: &mut StepContext,
    [xbc, dt]: [ValueId; 2],
    ssm: &SsmShape,
    out: ValueId,
) -> Result<(), String> {
    let memory = &mut *cx.memory;
    let width = memory.values.width(xbc);
    let ([xbc, dt], [out]) = memory.values.borrow([xbc, dt], [out]);
    let (states, out) = (memory.states.layer(ssm.state), DisjointSlices::new(out));
    let (batch, kernel) = (cx.batch, cx.kernels.ssm);
    let (n_heads, n, len) = (ssm.n_heads, ssm.head_dim, ssm.head_dim * ssm.d_state);
    let task = |head: usize| {
        for row in 0..batch.n_rows() {
            // SAFETY: this head's state and output belong to this task alone.
            let (state, out) = unsafe {
                let at = (row * n_heads + head) * n;
                (states.slice_mut(batch.state(row), head * len..(head + 1) * len), out.slice_mut(at..at + n))
            };
            if batch.positions[row] == 0 {
                state.fill(0.0);
            }
            let (xbc, dt) = (&xbc[row * width..(row + 1) * width], &dt[row * n_heads..(row + 1) * n_heads]);
            kernel(ssm::token(ssm, head, xbc, dt), state, out);
        }
    };
    if batch.n_rows() * n_heads * len <= MIN_PARALLEL_MACS {
        return cx.pool.run(1, &|_, _| (0..n_heads).for_each(task));
    }
    cx.pool.run(n_heads, &|head, _| task(head))
}
