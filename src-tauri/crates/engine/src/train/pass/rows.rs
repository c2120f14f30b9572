//! Operations that treat every row alone, on all threads.

use std::ops::Range;

use kernels::KernelError;

use super::workers::Workers;

/// Work on a row: `(row, x, out)`.
pub(super) type RowWork<'a> = dyn Fn(usize, &[f32], &mut [f32]) + Sync + 'a;
/// Work on a row of a sequence: `((sequence, row), out)`.
pub(super) type SequenceRowWork<'a> = dyn Fn((usize, usize), &mut [f32]) + Sync + 'a;
/// Work on parts of two inputs and an output: `(a, b, out)`.
pub(super) type PartWork<'a> = dyn Fn(&[f32], &[f32], &mut [f32]) + Sync + 'a;
/// Work on parts of two outputs: `(range, a, b)`.
pub(super) type PartsWork<'a> = dyn Fn(Range<usize>, &mut [f32], &mut [f32]) + Sync + 'a;

/// Floats that one task handles at least; less is not worth a thread.
const TASK_FLOATS: usize = 32 * 1024;

/// Rows of one task, of which the widest operand has `width` columns.
fn task_rows(width: usize) -> usize {
    (TASK_FLOATS / width.max(1)).max(1)
}

/// Calls `f(row, x, out)` for every row of `x` (rows, n_x) and `out` (rows, n_out).
pub(super) fn each_row(
    workers: &mut Workers,
    (x, n_x): (&[f32], usize),
    (out, n_out): (&mut [f32], usize),
    f: &RowWork<'_>,
) -> Result<(), KernelError> {
    let rows = task_rows(n_x.max(n_out));
    workers.chunks(out, rows * n_out, &|task, out| {
        for (i, out) in out.chunks_exact_mut(n_out).enumerate() {
            let row = task * rows + i;
            f(row, &x[row * n_x..(row + 1) * n_x], out);
        }
    })
}

/// Calls `f((sequence, row within it), out)` for every row of `out` (rows, n_out).
pub(super) fn each_row_of_sequences(
    workers: &mut Workers,
    sequences: &[Range<usize>],
    (out, n_out): (&mut [f32], usize),
    f: &SequenceRowWork<'_>,
) -> Result<(), KernelError> {
    let rows = task_rows(n_out);
    workers.chunks(out, rows * n_out, &|task, out| {
        for (i, out) in out.chunks_exact_mut(n_out).enumerate() {
            let row = task * rows + i;
            let sequence = sequences.partition_point(|sequence| sequence.end <= row);
            f((sequence, row - sequences[sequence].start), out);
        }
    })
}

/// Calls `f(a, b, out)` for parts of three vectors of one length.
pub(super) fn each_part(
    workers: &mut Workers,
    a: &[f32],
    b: &[f32],
    out: &mut [f32],
    f: &PartWork<'_>,
) -> Result<(), KernelError> {
    workers.chunks(out, TASK_FLOATS, &|task, out| {
        let part = task * TASK_FLOATS..task * TASK_FLOATS + out.len();
        f(&a[part.clone()], &b[part], out);
    })
}

/// Calls `f(part, a, b)` for parts of two outputs of one length; `part` is their range.
pub(super) fn each_part_of_two(
    workers: &mut Workers,
    a: &mut [f32],
    b: &mut [f32],
    f: &PartsWork<'_>,
) -> Result<(), KernelError> {
    workers.chunk_pairs((a, TASK_FLOATS), (b, TASK_FLOATS), &|task, a, b| {
        f(task * TASK_FLOATS..task * TASK_FLOATS + a.len(), a, b);
    })
}
