//! Operations that treat each row by itself. Few and short rows run on the caller; many are shared out.

use super::Context;
use super::team::Team;
use super::tile::Parts;
use crate::graph::{Activation, Graph, Op, RopeShape, ValueId};
use crate::ops;
use crate::tensor::Tensor;

/// Floats below which waking the team costs more than it saves: about 5 µs of work.
const ALONE: usize = 16 * 1024;
/// Floats in one task, about 5 µs.
const TASK: usize = 8 * 1024;

/// Calls `f(row)` for each row; `width` is how many floats a row costs.
fn each_row(team: &mut Team, n_rows: usize, width: usize, f: &(dyn Fn(usize) + Sync)) -> Result<(), String> {
    if n_rows * width <= ALONE {
        return team.run(1, &|_, _| (0..n_rows).for_each(f));
    }
    let per_task = (TASK / width.max(1)).max(1);
    team.run(n_rows.div_ceil(per_task), &|task, _| {
        (task * per_task..((task + 1) * per_task).min(n_rows)).for_each(f);
    })
}

/// As `each_row`, with the row of `out` (n_rows, width) that belongs to it.
fn each_row_of(
    team: &mut Team,
    out: &mut [f32],
    width: usize,
    f: &(dyn Fn(usize, &mut [f32]) + Sync),
) -> Result<(), String> {
    let n_rows = out.len() / width;
    let parts = Parts::new(out);
    each_row(team, n_rows, width, &|row| {
        // SAFETY: each row is visited once, and rows do not overlap.
        f(row, unsafe { parts.part(row * width..(row + 1) * width) });
    })
}

pub fn embed(cx: &mut Context, table: &Tensor, scale: f32, out: ValueId) -> Result<(), String> {
    let ([], [out]) = cx.memory.values.borrow([], [out]);
    let tokens = cx.batch.tokens;
    each_row_of(cx.team, out, table.n_cols(), &|row, out| ops::embed::scalar(table, tokens[row], scale, out))
}

pub fn norm(cx: &mut Context, node: usize, x: ValueId, eps: f32, out: ValueId) -> Result<(), String> {
    let weight = &cx.memory.vectors[node];
    let width = weight.len();
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    let kernel = cx.kernels.rms_norm;
    each_row_of(cx.team, out, width, &|row, out| kernel(&x[row * width..(row + 1) * width], weight, eps, out))
}

pub fn add_norm(cx: &mut Context, graph: &Graph, add: usize, norm: usize) -> Result<(), String> {
    let (add, norm, weight) = (&graph.nodes()[add], &graph.nodes()[norm], &cx.memory.vectors[norm]);
    let (Op::Add { a, b }, Op::RmsNorm { eps, .. }) = (&add.op, &norm.op) else {
        unreachable!("`fuse` pairs an addition with a norm");
    };
    let (Some(sum), Some(out)) = (add.output, norm.output) else {
        unreachable!("additions and norms have values");
    };
    let width = weight.len();
    let ([a, b], [sum, out]) = cx.memory.values.borrow([*a, *b], [sum, out]);
    let sums = Parts::new(sum);
    let kernels = cx.kernels;
    each_row_of(cx.team, out, width, &|row, out| {
        let at = row * width..(row + 1) * width;
        // SAFETY: each row is visited once, and rows do not overlap.
        let sum = unsafe { sums.part(at.clone()) };
        (kernels.add)(&a[at.clone()], &b[at], sum);
        (kernels.rms_norm)(sum, weight, *eps, out);
    })
}

pub fn rotate(
    cx: &mut Context,
    node: usize,
    x: ValueId,
    rope: &RopeShape,
    out: ValueId,
) -> Result<(), String> {
    let angles = &cx.memory.angles;
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    let width = rope.n_heads * rope.head_dim;
    let kernel = cx.kernels.rope;
    each_row_of(cx.team, out, width, &|row, out| {
        out.copy_from_slice(&x[row * width..(row + 1) * width]);
        let (cos, sin) = angles.row(node, row);
        kernel(out, rope.head_dim, rope.style, cos, sin);
    })
}

/// Shared out by KV head, so that two rows of a batch never meet in one place.
pub fn write_kv(cx: &mut Context, k: ValueId, v: ValueId, layer: usize) -> Result<(), String> {
    let ([k, v], []) = cx.memory.values.borrow([k, v], []);
    let layout = cx.memory.kv.layout(layer);
    let (d, n_heads) = (layout.head_dim, layout.n_kv_heads);
    let batch = cx.batch;
    let halves = cx.kernels.halves;
    let writer = cx.memory.kv.writer(layer);
    let head = |head: usize, _worker: usize| {
        for row in 0..batch.n_rows() {
            let (page, slot) = batch.slot(row);
            let at = (row * n_heads + head) * d;
            // SAFETY: each head is one task, or all of them are one caller's.
            unsafe { writer.write(halves, page, slot, head, &k[at..at + d], &v[at..at + d]) };
        }
    };
    if batch.n_rows() * n_heads * d <= ALONE {
        return cx.team.run(1, &|_, worker| (0..n_heads).for_each(|h| head(h, worker)));
    }
    cx.team.run(n_heads, &head)
}

pub fn add(cx: &mut Context, a: ValueId, b: ValueId, out: ValueId) -> Result<(), String> {
    let ([a, b], [out]) = cx.memory.values.borrow([a, b], [out]);
    let kernel = cx.kernels.add;
    pieces(cx.team, out, &|at, out| kernel(&a[at..at + out.len()], &b[at..at + out.len()], out))
}

pub fn glu(
    cx: &mut Context,
    gate: ValueId,
    up: ValueId,
    act: Activation,
    out: ValueId,
) -> Result<(), String> {
    let ([gate, up], [out]) = cx.memory.values.borrow([gate, up], [out]);
    let kernel = cx.kernels.glu;
    pieces(cx.team, out, &|at, out| kernel(&gate[at..at + out.len()], &up[at..at + out.len()], act, out))
}

/// Element-wise work in pieces of `TASK` floats, whatever the rows.
fn pieces(team: &mut Team, out: &mut [f32], f: &(dyn Fn(usize, &mut [f32]) + Sync)) -> Result<(), String> {
    let len = out.len();
    let parts = Parts::new(out);
    let piece = |i: usize| {
        let at = i * TASK..((i + 1) * TASK).min(len);
        // SAFETY: each piece is visited once, and pieces do not overlap.
        f(at.start, unsafe { parts.part(at) });
    };
    let n = len.div_ceil(TASK);
    if len <= ALONE {
        return team.run(1, &|_, _| (0..n).for_each(piece));
    }
    team.run(n, &|i, _| piece(i))
}

pub fn output_rows(cx: &mut Context, x: ValueId, out: ValueId) -> Result<(), String> {
    let n_outputs = cx.batch.outputs.len();
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    if let Some(width) = out.len().checked_div(n_outputs) {
        ops::output_rows::scalar(x, width, cx.batch.outputs, out);
    }
    Ok(())
}
