//! The forward pass of one node over all rows of a batch.

use std::ops::Range;

use kernels::ops::integer_panel::PanelOutput;
use kernels::ops::{Kernels, embed, scale};
use kernels::{AttentionShape, KernelError, Op, Tensor, ValueId};

use super::attention::{self, HeadRows};
use super::matrix::Direction;
use super::matrix::Matrix;
use super::rows::{each_part, each_row, each_row_of_sequences};
use super::{NodeWeights, PassState, TrainingBatch};

/// Values of the rows in work, by `ValueId`; an absent value is empty.
pub(super) type Values = Vec<Vec<f32>>;

/// The rows of one evaluation of nodes.
pub(super) struct RowsInWork<'a> {
    pub batch: &'a TrainingBatch<'a>,
    pub n_rows: usize,
}

impl PassState {
    /// Computes the output of a node. Errors: a panic of a kernel.
    pub fn forward_node(
        &mut self,
        i: usize,
        values: &mut Values,
        rows: &RowsInWork<'_>,
    ) -> Result<(), KernelError> {
        let graph = self.graph.clone();
        let node = &graph.nodes()[i];
        let Some(output) = node.output else { return Ok(()) };
        if self.plan.is_joined(i) {
            return Ok(());
        }
        if let (Op::Add { a, .. }, Some(product)) = (&node.op, self.plan.product_of_sum.get(&i).copied()) {
            let mut out = std::mem::take(&mut values[a.index()]);
            if let Op::MatMul { x, weight, .. } = &graph.nodes()[product].op {
                self.multiply(product, &values[x.index()], weight, PanelOutput::Add, &mut out)?;
            }
            values[output.index()] = out;
            return Ok(());
        }
        let n_out = graph.value(output).width;
        let mut out = self.buffers.take(rows.n_rows * n_out);
        self.compute(i, &node.op, (&mut out, n_out), values, rows)?;
        values[output.index()] = out;
        Ok(())
    }

    fn compute(
        &mut self,
        i: usize,
        op: &Op,
        (out, n_out): (&mut [f32], usize),
        values: &Values,
        rows: &RowsInWork<'_>,
    ) -> Result<(), KernelError> {
        let graph = self.graph.clone();
        let operand = |v: &ValueId| (&values[v.index()][..], graph.value(*v).width);
        let kernels = self.products.kernels;
        let NodeWeights { vector, bias } = &self.weights[i];
        let workers = &mut self.products.workers;
        match op {
            Op::Embed { table, scale, .. } => {
                for (token, out) in rows.batch.tokens.iter().zip(out.chunks_exact_mut(n_out)) {
                    embed::scalar(table, *token, *scale, out);
                }
                Ok(())
            }
            Op::RmsNorm { x, eps, .. } => each_row(workers, operand(x), (out, n_out), &|_, x, out| {
                (kernels.rms_norm)(x, vector, *eps, out);
            }),
            Op::LayerNorm { x, eps, width, .. } => {
                each_row(workers, operand(x), (out, n_out), &|_, x, out| {
                    layer_norm_groups(&kernels, x, [vector, bias], (*eps, *width), out);
                })
            }
            Op::MatMul { x, weight, .. } => self.multiply_and_shift(i, operand(x).0, weight, (out, n_out)),
            Op::Rope { x, rope } => {
                let angles = &self.angles[self.angles_of[&i]];
                each_row(workers, operand(x), (out, n_out), &|row, x, out| {
                    out.copy_from_slice(x);
                    let (cos, sin) = angles.row(row);
                    (kernels.rope)(out, rope.head_dim, rope.style, cos, sin);
                })
            }
            Op::PositionScale { x, beta, original_context } => {
                each_row(workers, operand(x), (out, n_out), &|row, x, out| {
                    (kernels.scale)(
                        x,
                        scale::at_position(*beta, *original_context, self.positions[row]),
                        out,
                    );
                })
            }
            Op::Attention { q, attention } => {
                let (k, v) = self.plan.kv[&attention.layer];
                self.attend([operand(q).0, operand(&k).0, operand(&v).0], attention, rows, out)
            }
            Op::Add { a, b } => each_part(workers, operand(a).0, operand(b).0, out, &kernels.add),
            Op::Glu { gate, up, act } => {
                each_part(workers, operand(gate).0, operand(up).0, out, &|gate, up, out| {
                    (kernels.glu)(gate, up, *act, out);
                })
            }
            Op::Scale { x, factor } => each_row(workers, operand(x), (out, n_out), &|_, x, out| {
                (kernels.scale)(x, *factor, out);
            }),
            Op::Softcap { x, cap } => each_row(workers, operand(x), (out, n_out), &|_, x, out| {
                out.copy_from_slice(x);
                (kernels.softcap)(out, *cap);
            }),
            Op::Activate { x, act } => each_row(workers, operand(x), (out, n_out), &|_, x, out| {
                out.copy_from_slice(x);
                (kernels.activate)(out, *act);
            }),
            _ => unreachable!("the plan refuses other operations"),
        }
    }

    /// x · Wᵀ + bias
    fn multiply_and_shift(
        &mut self,
        i: usize,
        x: &[f32],
        weight: &Tensor,
        (out, n_out): (&mut [f32], usize),
    ) -> Result<(), KernelError> {
        let bias = &self.weights[i].bias;
        let output = if bias.is_empty() { PanelOutput::Overwrite } else { PanelOutput::Add };
        if output == PanelOutput::Add {
            out.chunks_exact_mut(n_out).for_each(|out| out.copy_from_slice(bias));
        }
        self.multiply(i, x, weight, output, out)
    }

    /// x · Wᵀ
    fn multiply(
        &mut self,
        i: usize,
        x: &[f32],
        weight: &Tensor,
        output: PanelOutput,
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let products = &mut self.products;
        match self.trained.get(&i) {
            Some(trained) => {
                let w = Matrix::Dense { values: &trained.values, n_cols: weight.n_cols() };
                products.multiply(x, w, Direction::Forward, output, out)
            }
            None => products.multiply_frozen(x, weight, Direction::Forward, output, out),
        }
    }

    fn attend(
        &mut self,
        [q, k, v]: [&[f32]; 3],
        shape: &AttentionShape,
        rows: &RowsInWork<'_>,
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let (n_heads, d, kernels) = (shape.n_heads, shape.head_dim, &self.products.kernels);
        let sequences = rows.batch.sequences;
        let heads = self.products.workers.map(sequences.len() * n_heads, &|task| {
            let sequence = sequences[task / n_heads].clone();
            attention::forward(kernels, &head_rows([q, k, v], shape, &sequence, task % n_heads))
        })?;
        each_row_of_sequences(&mut self.products.workers, sequences, (out, n_heads * d), &|at, out| {
            let heads = &heads[at.0 * n_heads..(at.0 + 1) * n_heads];
            for (out, head) in out.chunks_exact_mut(d).zip(heads) {
                out.copy_from_slice(&head[at.1 * d..(at.1 + 1) * d]);
            }
        })
    }
}

/// x, weight, bias, out (n_groups · width)
fn layer_norm_groups(
    kernels: &Kernels,
    x: &[f32],
    [weight, bias]: [&[f32]; 2],
    (eps, width): (f32, usize),
    out: &mut [f32],
) {
    let groups = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
    let weights = weight.chunks_exact(width).zip(bias.chunks_exact(width));
    for ((x, out), (weight, bias)) in groups.zip(weights) {
        (kernels.layer_norm)(x, weight, bias, eps, out);
    }
}

/// The rows of one sequence, for one query head.
pub(super) fn head_rows<'a>(
    [q, k, v]: [&'a [f32]; 3],
    shape: &'a AttentionShape,
    sequence: &Range<usize>,
    head: usize,
) -> HeadRows<'a> {
    let (n_q, n_kv) = (shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim);
    let of = |x: &'a [f32], n: usize| &x[sequence.start * n..sequence.end * n];
    HeadRows { shape, head, q: of(q, n_q), k: of(k, n_kv), v: of(v, n_kv) }
}
