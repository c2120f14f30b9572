//! Operations that treat each row by itself. Few or short rows run on the caller; others are divided among
//! the pool.

use super::StepContext;
use super::disjoint_slices::DisjointSlices;
use super::memory::ValueArena;
use super::thread_pool::ThreadPool;
use crate::graph::{
    Activation, Columns, Graph, Lookup, MixFactors, Op, RopeShape, Routing, RowMerge, ValueId,
};
use crate::ops;
use crate::tensor::Tensor;

/// Floats up to which waking the pool costs more than it saves: about 5 µs of work.
const MIN_PARALLEL_FLOATS: usize = 16 * 1024;
/// Floats in one task: about 5 µs.
const TASK_FLOATS: usize = 8 * 1024;

/// Calls `f(row)` for each row; `width` is the number of floats that a row costs.
fn each_row(
    pool: &mut ThreadPool,
    n_rows: usize,
    width: usize,
    f: &(dyn Fn(usize) + Sync),
) -> Result<(), String> {
    if n_rows * width <= MIN_PARALLEL_FLOATS {
        return pool.run(1, &|_, _| (0..n_rows).for_each(f));
    }
    let per_task = (TASK_FLOATS / width.max(1)).max(1);
    pool.run(n_rows.div_ceil(per_task), &|task, _| {
        (task * per_task..((task + 1) * per_task).min(n_rows)).for_each(f);
    })
}

/// Like `each_row`, with the row of `out` (n_rows, width) that belongs to it.
fn each_row_of(
    pool: &mut ThreadPool,
    out: &mut [f32],
    width: usize,
    f: &(dyn Fn(usize, &mut [f32]) + Sync),
) -> Result<(), String> {
    let n_rows = out.len() / width;
    let parts = DisjointSlices::new(out);
    each_row(pool, n_rows, width, &|row| {
        // SAFETY: each row is visited once, and rows do not overlap.
        f(row, unsafe { parts.slice_mut(row * width..(row + 1) * width) });
    })
}

/// Index of the row, its operand, its output.
type MapRow<'a> = &'a (dyn Fn(usize, &[f32], &mut [f32]) + Sync);
/// Operands of a row, its output.
type JoinRow<'a> = &'a (dyn Fn(&[f32], &[f32], &mut [f32]) + Sync);

/// Calls `f(row, x, out)` for each row.
fn map_rows(
    pool: &mut ThreadPool,
    values: &mut ValueArena,
    x: ValueId,
    out: ValueId,
    f: MapRow,
) -> Result<(), String> {
    let (n_in, n_out) = (values.width(x), values.width(out));
    let ([x], [out]) = values.borrow([x], [out]);
    let parts = DisjointSlices::new(out);
    each_row(pool, x.len() / n_in, n_in.max(n_out), &|row| {
        // SAFETY: each row is visited once, and rows do not overlap.
        f(row, &x[row * n_in..(row + 1) * n_in], unsafe { parts.slice_mut(row * n_out..(row + 1) * n_out) });
    })
}

/// Calls `f(a, b, out)` for each row.
fn join_rows(
    pool: &mut ThreadPool,
    values: &mut ValueArena,
    [a, b]: [ValueId; 2],
    out: ValueId,
    f: JoinRow,
) -> Result<(), String> {
    let (n_a, n_b, n_out) = (values.width(a), values.width(b), values.width(out));
    let ([a, b], [out]) = values.borrow([a, b], [out]);
    let parts = DisjointSlices::new(out);
    each_row(pool, a.len() / n_a, n_a.max(n_b), &|row| {
        // SAFETY: each row is visited once, and rows do not overlap.
        let out = unsafe { parts.slice_mut(row * n_out..(row + 1) * n_out) };
        f(&a[row * n_a..(row + 1) * n_a], &b[row * n_b..(row + 1) * n_b], out);
    })
}

/// Looks up embedding rows, times `scale`.
pub fn embed(
    cx: &mut StepContext,
    table: &Tensor,
    scale: f32,
    by: Lookup,
    out: ValueId,
) -> Result<(), String> {
    let ([], [out]) = cx.memory.values.borrow([], [out]);
    let batch = cx.batch;
    each_row_of(cx.pool, out, table.n_cols(), &|row, out| {
        ops::embed::scalar(table, ops::embed::row_of(by, batch, row, table.n_rows()), scale, out);
    })
}

/// Copies columns of the batch's given rows; the others become 0.
pub fn given(cx: &mut StepContext, start: usize, out: ValueId) -> Result<(), String> {
    let width = cx.memory.values.width(out);
    let ([], [out]) = cx.memory.values.borrow([], [out]);
    let batch = cx.batch;
    each_row_of(cx.pool, out, width, &|row, out| {
        out.fill(0.0);
        ops::given::scalar(batch, row, start, out);
    })
}

/// Copies x, except for the rows that the batch gives.
pub fn replace_given(cx: &mut StepContext, x: ValueId, start: usize, out: ValueId) -> Result<(), String> {
    let batch = cx.batch;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|row, x, out| {
        out.copy_from_slice(x);
        ops::given::scalar(batch, row, start, out);
    })
}

/// RMS norm over groups of columns as wide as the weight, row by row.
pub fn norm(cx: &mut StepContext, node: usize, x: ValueId, eps: f32, out: ValueId) -> Result<(), String> {
    let weight = &cx.memory.vectors[node];
    let kernel = cx.kernels.rms_norm;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|_, x, out| kernel(x, weight, eps, out))
}

/// Layer norm of each group of columns, row by row.
pub fn layer_norm(
    cx: &mut StepContext,
    node: usize,
    x: ValueId,
    (eps, width): (f32, usize),
    out: ValueId,
) -> Result<(), String> {
    let (weight, bias) = (&cx.memory.vectors[node], &cx.memory.biases[node]);
    let kernel = cx.kernels.layer_norm;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|_, x, out| {
        ops::layer_norm::groups(x, [weight, bias], width, out, |x, weight, bias, out| {
            kernel(x, weight, bias, eps, out);
        });
    })
}

/// Fused addition and RMS norm; writes both results.
pub fn add_norm(cx: &mut StepContext, graph: &Graph, add: usize, norm: usize) -> Result<(), String> {
    let (add, norm, weight) = (&graph.nodes()[add], &graph.nodes()[norm], &cx.memory.vectors[norm]);
    let (Op::Add { a, b }, Op::RmsNorm { eps, .. }) = (&add.op, &norm.op) else {
        unreachable!("`fuse` pairs an addition with a norm");
    };
    let (Some(sum), Some(out)) = (add.output, norm.output) else {
        unreachable!("additions and norms have values");
    };
    let width = weight.len();
    let ([a, b], [sum, out]) = cx.memory.values.borrow([*a, *b], [sum, out]);
    let sums = DisjointSlices::new(sum);
    let kernels = cx.kernels;
    each_row_of(cx.pool, out, width, &|row, out| {
        let at = row * width..(row + 1) * width;
        // SAFETY: each row is visited once, and rows do not overlap.
        let sum = unsafe { sums.slice_mut(at.clone()) };
        (kernels.add)(&a[at.clone()], &b[at], sum);
        (kernels.rms_norm)(sum, weight, *eps, out);
    })
}

/// Rotary position embedding of each row.
pub fn rotate(
    cx: &mut StepContext,
    node: usize,
    x: ValueId,
    rope: &RopeShape,
    out: ValueId,
) -> Result<(), String> {
    let angles = &cx.memory.angles;
    let kernel = cx.kernels.rope;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|row, x, out| {
        out.copy_from_slice(x);
        let (cos, sin) = angles.row(node, row);
        kernel(out, rope.head_dim, rope.style, cos, sin);
    })
}

/// Scales each row by a factor that depends on its position.
pub fn position_scale(
    cx: &mut StepContext,
    x: ValueId,
    beta: f32,
    original_context: u32,
    out: ValueId,
) -> Result<(), String> {
    let kernel = cx.kernels.scale;
    let positions = cx.batch.positions;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|row, x, out| {
        kernel(x, ops::scale::at_position(beta, original_context, positions[row]), out);
    })
}

/// Scales each row by the sigmoid of its gate.
pub fn row_gate(cx: &mut StepContext, gate: ValueId, x: ValueId, out: ValueId) -> Result<(), String> {
    let kernel = cx.kernels.scale;
    join_rows(cx.pool, &mut cx.memory.values, [gate, x], out, &|gate, x, out| {
        kernel(x, ops::scale::of_gate(gate[0]), out);
    })
}

/// Copies a selection of columns.
pub fn columns(cx: &mut StepContext, x: ValueId, columns: Columns, out: ValueId) -> Result<(), String> {
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|_, x, out| ops::columns::scalar(x, columns, out))
}

/// Multiplies column by column.
pub fn scale_columns(cx: &mut StepContext, x: ValueId, factors: &[f32], out: ValueId) -> Result<(), String> {
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|_, x, out| ops::scale::columns(x, factors, out))
}

/// Joins the columns of two values group by group.
pub fn join_columns(
    cx: &mut StepContext,
    operands: [ValueId; 2],
    n_groups: usize,
    out: ValueId,
) -> Result<(), String> {
    join_rows(cx.pool, &mut cx.memory.values, operands, out, &|a, b, out| {
        ops::join_columns::scalar(a, b, n_groups, out);
    })
}

/// Adds mixtures of groups of columns.
pub fn mix(
    cx: &mut StepContext,
    [base, x]: [ValueId; 2],
    factors: &MixFactors,
    width: usize,
    out: ValueId,
) -> Result<(), String> {
    let kernel = cx.kernels.mix;
    match factors {
        MixFactors::Same(factors) => {
            join_rows(cx.pool, &mut cx.memory.values, [base, x], out, &|base, x, out| {
                kernel(base, x, factors, width, out);
            })
        }
        MixFactors::OfRow(factors) => {
            let [n_x, n_factors, n_out] = [x, *factors, out].map(|value| cx.memory.values.width(value));
            let ([base, x, factors], [out]) = cx.memory.values.borrow([base, x, *factors], [out]);
            each_row_of(cx.pool, out, n_out, &|row, out| {
                let of = |all: &'_ [f32], n: usize| row * n..((row + 1) * n).min(all.len());
                let (base, x) = (&base[of(base, n_out)], &x[of(x, n_x)]);
                kernel(base, x, &factors[of(factors, n_factors)], width, out);
            })
        }
    }
}

/// Scales groups of columns to the root mean square of another row.
pub fn match_rms(
    cx: &mut StepContext,
    operands: [ValueId; 2],
    least: f32,
    out: ValueId,
) -> Result<(), String> {
    let kernel = cx.kernels.match_rms;
    join_rows(cx.pool, &mut cx.memory.values, operands, out, &|x, of, out| kernel(x, of, least, out))
}

/// Keeps what is far above each row's mean.
pub fn gaussian_top_k(cx: &mut StepContext, x: ValueId, deviations: f32, out: ValueId) -> Result<(), String> {
    let kernel = cx.kernels.gaussian_top_k;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|_, x, out| kernel(x, deviations, out))
}

/// Routes each token to all experts.
pub fn route_all(cx: &mut StepContext, out: ValueId) -> Result<(), String> {
    let width = cx.memory.values.width(out);
    let ([], [out]) = cx.memory.values.borrow([], [out]);
    out.chunks_exact_mut(width).for_each(ops::route_all::scalar);
    Ok(())
}

/// Chooses the experts of each token.
pub fn route(cx: &mut StepContext, logits: ValueId, routing: &Routing, out: ValueId) -> Result<(), String> {
    map_rows(cx.pool, &mut cx.memory.values, logits, out, &|_, logits, out| {
        ops::moe_route::scalar(logits, routing, out);
    })
}

/// Sums the experts' outputs of each token by their weights.
pub fn expert_sum(cx: &mut StepContext, x: ValueId, route: ValueId, out: ValueId) -> Result<(), String> {
    let kernel = cx.kernels.expert_sum;
    join_rows(cx.pool, &mut cx.memory.values, [x, route], out, &|x, route, out| kernel(x, route, out))
}

/// Writes keys and values. Divided by KV head, so that two rows of a batch never write to the same place.
pub fn write_kv(cx: &mut StepContext, k: ValueId, v: ValueId, layer: usize) -> Result<(), String> {
    let ([k, v], []) = cx.memory.values.borrow([k, v], []);
    let layout = cx.memory.kv.layout(layer);
    let (d, n_heads) = (layout.head_dim, layout.n_kv_heads);
    let batch = cx.batch;
    let halves = cx.kernels.halves;
    let writer = cx.memory.kv.writer(layer);
    let head = |head: usize, _worker: usize| {
        for row in 0..batch.n_rows() {
            let (page, slot) = batch.slot(layout.retention(), row);
            let at = (row * n_heads + head) * d;
            // SAFETY: each head is one task, or the caller runs all of them.
            unsafe { writer.write(halves, page, slot, head, &k[at..at + d], &v[at..at + d]) };
        }
    };
    if batch.n_rows() * n_heads * d <= MIN_PARALLEL_FLOATS {
        return cx.pool.run(1, &|_, worker| (0..n_heads).for_each(|h| head(h, worker)));
    }
    cx.pool.run(n_heads, &head)
}

/// Adds element by element.
pub fn add(cx: &mut StepContext, a: ValueId, b: ValueId, out: ValueId) -> Result<(), String> {
    let ([a, b], [out]) = cx.memory.values.borrow([a, b], [out]);
    let kernel = cx.kernels.add;
    each_piece(cx.pool, out, &|at, out| kernel(&a[at..at + out.len()], &b[at..at + out.len()], out))
}

/// Computes act(gate) · up.
pub fn glu(
    cx: &mut StepContext,
    gate: ValueId,
    up: ValueId,
    act: Activation,
    out: ValueId,
) -> Result<(), String> {
    let ([gate, up], [out]) = cx.memory.values.borrow([gate, up], [out]);
    let kernel = cx.kernels.glu;
    each_piece(cx.pool, out, &|at, out| kernel(&gate[at..at + out.len()], &up[at..at + out.len()], act, out))
}

/// Multiplies by a constant.
pub fn scale(cx: &mut StepContext, x: ValueId, factor: f32, out: ValueId) -> Result<(), String> {
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    let kernel = cx.kernels.scale;
    each_piece(cx.pool, out, &|at, out| kernel(&x[at..at + out.len()], factor, out))
}

/// Applies cap · tanh(x / cap).
pub fn softcap(cx: &mut StepContext, x: ValueId, cap: f32, out: ValueId) -> Result<(), String> {
    let kernel = cx.kernels.softcap;
    in_place(cx, x, out, &|out| kernel(out, cap))
}

/// Keeps values within bounds.
pub fn clamp(cx: &mut StepContext, x: ValueId, (low, high): (f32, f32), out: ValueId) -> Result<(), String> {
    in_place(cx, x, out, &|out| ops::clamp::scalar(out, low, high))
}

/// Transforms each group of `width` columns.
pub fn hadamard(cx: &mut StepContext, x: ValueId, width: usize, out: ValueId) -> Result<(), String> {
    let kernel = cx.kernels.hadamard;
    map_rows(cx.pool, &mut cx.memory.values, x, out, &|_, x, out| {
        out.copy_from_slice(x);
        kernel(out, width);
    })
}

/// Applies an activation function.
pub fn activate(cx: &mut StepContext, x: ValueId, act: Activation, out: ValueId) -> Result<(), String> {
    let kernel = cx.kernels.activate;
    in_place(cx, x, out, &|out| kernel(out, act))
}

/// Copies `x` into `out` and calls `f(out)`, piece by piece.
fn in_place(
    cx: &mut StepContext,
    x: ValueId,
    out: ValueId,
    f: &(dyn Fn(&mut [f32]) + Sync),
) -> Result<(), String> {
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    each_piece(cx.pool, out, &|at, out| {
        out.copy_from_slice(&x[at..at + out.len()]);
        f(out);
    })
}

/// Calls `f(start, piece)` for pieces of `TASK_FLOATS` floats, regardless of rows.
fn each_piece(
    pool: &mut ThreadPool,
    out: &mut [f32],
    f: &(dyn Fn(usize, &mut [f32]) + Sync),
) -> Result<(), String> {
    let len = out.len();
    let parts = DisjointSlices::new(out);
    let piece = |i: usize| {
        let at = i * TASK_FLOATS..((i + 1) * TASK_FLOATS).min(len);
        // SAFETY: each piece is visited once, and pieces do not overlap.
        f(at.start, unsafe { parts.slice_mut(at) });
    };
    let n = len.div_ceil(TASK_FLOATS);
    if len <= MIN_PARALLEL_FLOATS {
        return pool.run(1, &|_, _| (0..n).for_each(piece));
    }
    pool.run(n, &|i, _| piece(i))
}

/// Merges each output row with the rows after it.
pub fn merge_rows(
    cx: &mut StepContext,
    x: ValueId,
    merge: (usize, RowMerge),
    out: ValueId,
) -> Result<(), String> {
    let width = cx.memory.values.width(x);
    let out_width = cx.memory.values.width(out);
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    let outputs = cx.batch.outputs;
    each_row_of(cx.pool, out, out_width, &|row, out| {
        ops::merge_rows::scalar(x, width, merge, &outputs[row..=row], out);
    })
}

/// Copies the rows whose logits are needed.
pub fn output_rows(cx: &mut StepContext, x: ValueId, out: ValueId) -> Result<(), String> {
    let n_outputs = cx.batch.outputs.len();
    let ([x], [out]) = cx.memory.values.borrow([x], [out]);
    if let Some(width) = out.len().checked_div(n_outputs) {
        ops::output_rows::scalar(x, width, cx.batch.outputs, out);
    }
    Ok(())
}
