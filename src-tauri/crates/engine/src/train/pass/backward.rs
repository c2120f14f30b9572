//! The backward pass of one node: from the gradient of its output to those of its operands.

use kernels::ops::integer_panel::PanelOutput;
use kernels::ops::scale;
use kernels::{Activation, AttentionShape, KernelError, Op, RopeShape, Tensor, ValueId};

use super::attention::{self, HeadGradients};
use super::forward::{RowsInWork, Values, head_rows};
use super::matrix::Direction;
use super::matrix::Matrix;
use super::rows::{each_part, each_part_of_two, each_row, each_row_of_sequences};
use super::slopes;
use super::{NodeWeights, PassState};

impl PassState {
    /// Takes the gradient of a node's output from `gradients`, and adds those of its operands. Gradients of trained
    /// matrices are added to `trained`. Errors: a panic of a kernel.
    pub fn backward_node(
        &mut self,
        i: usize,
        values: &Values,
        gradients: &mut Values,
        trained: &mut [Vec<f32>],
        rows: &RowsInWork<'_>,
    ) -> Result<(), KernelError> {
        let graph = self.graph.clone();
        let node = &graph.nodes()[i];
        let Some(output) = node.output else { return Ok(()) };
        let dy = std::mem::take(&mut gradients[output.index()]);
        if dy.is_empty() {
            return Ok(());
        }
        match &node.op {
            Op::Add { a, .. } if self.plan.product_of_sum.contains_key(&i) => {
                let product = self.plan.product_of_sum[&i];
                if let Op::MatMul { x, weight, .. } = &graph.nodes()[product].op {
                    self.matmul_backward(product, (*x, weight), values, &dy, gradients, trained)?;
                }
                return self.add_gradient(gradients, *a, dy);
            }
            Op::Add { a, b } => {
                let copy = if self.has_gradient(*b) { Some(self.copied(&dy)?) } else { None };
                self.add_gradient(gradients, *a, dy)?;
                return copy.map_or(Ok(()), |copy| self.add_gradient(gradients, *b, copy));
            }
            Op::MatMul { x, weight, .. } => {
                self.matmul_backward(i, (*x, weight), values, &dy, gradients, trained)?
            }
            Op::Attention { q, attention } => {
                self.attention_backward((*q, attention), values, &dy, gradients, rows)?;
            }
            Op::Glu { gate, up, act } => self.glu_backward([*gate, *up], *act, values, &dy, gradients)?,
            op => {
                let mut only = None;
                op.for_each_input(|v| only = Some(v));
                if let Some(x) = only.filter(|x| self.has_gradient(*x)) {
                    let dx = self.row_backward(i, op, (x, output), values, &dy)?;
                    self.add_gradient(gradients, x, dx)?;
                }
            }
        }
        self.buffers.give(dy);
        Ok(())
    }

    fn has_gradient(&self, v: ValueId) -> bool {
        self.plan.has_gradient[v.index()]
    }

    fn copied(&mut self, x: &[f32]) -> Result<Vec<f32>, KernelError> {
        let mut copy = self.buffers.take(x.len());
        each_part(&mut self.products.workers, x, x, &mut copy, &|x, _, copy| copy.copy_from_slice(x))?;
        Ok(copy)
    }

    fn add_gradient(&mut self, gradients: &mut Values, v: ValueId, dx: Vec<f32>) -> Result<(), KernelError> {
        if !self.has_gradient(v) {
            self.buffers.give(dx);
            return Ok(());
        }
        let sum = &mut gradients[v.index()];
        if sum.is_empty() {
            *sum = dx;
            return Ok(());
        }
        let n = self.graph.value(v).width;
        each_row(&mut self.products.workers, (&dx, n), (sum, n), &|_, dx, sum| {
            sum.iter_mut().zip(dx).for_each(|(sum, dx)| *sum += dx);
        })?;
        self.buffers.give(dx);
        Ok(())
    }

    /// Operations of one operand that treat every row alone.
    fn row_backward(
        &mut self,
        i: usize,
        op: &Op,
        (x, output): (ValueId, ValueId),
        values: &Values,
        dy: &[f32],
    ) -> Result<Vec<f32>, KernelError> {
        let (n_x, n_y) = (self.graph.value(x).width, self.graph.value(output).width);
        let mut dx = self.buffers.take(dy.len() / n_y * n_x);
        let x = &values[x.index()][..];
        let NodeWeights { vector, .. } = &self.weights[i];
        let (positions, kernels) = (&self.positions, self.products.kernels);
        let workers = &mut self.products.workers;
        let (dy, out) = ((dy, n_y), (&mut dx[..], n_x));
        let of = |row: usize, n: usize| row * n..(row + 1) * n;
        match op {
            Op::RmsNorm { eps, .. } => each_row(workers, dy, out, &|row, dy, dx| {
                slopes::rms_norm(&x[of(row, n_x)], vector, *eps, dy, dx);
            })?,
            Op::LayerNorm { eps, width, .. } => each_row(workers, dy, out, &|row, dy, dx| {
                let groups = dy.chunks_exact(*width).zip(dx.chunks_exact_mut(*width));
                let operands = x[of(row, n_x)].chunks_exact(*width).zip(vector.chunks_exact(*width));
                for ((dy, dx), (x, weight)) in groups.zip(operands) {
                    slopes::layer_norm(x, weight, *eps, dy, dx);
                }
            })?,
            Op::Rope { rope: RopeShape { head_dim, style, .. }, .. } => {
                let angles = &self.angles[self.angles_of[&i]];
                each_row(workers, dy, out, &|row, dy, dx| {
                    dx.copy_from_slice(dy);
                    let (cos, sin) = angles.reverse_row(row);
                    (kernels.rope)(dx, *head_dim, *style, cos, sin);
                })?;
            }
            Op::PositionScale { beta, original_context, .. } => {
                each_row(workers, dy, out, &|row, dy, dx| {
                    (kernels.scale)(dy, scale::at_position(*beta, *original_context, positions[row]), dx);
                })?
            }
            Op::Scale { factor, .. } => {
                each_row(workers, dy, out, &|_, dy, dx| (kernels.scale)(dy, *factor, dx))?;
            }
            Op::Softcap { cap, .. } => each_row(workers, dy, out, &|row, dy, dx| {
                slopes::softcap(&kernels, &x[of(row, n_x)], *cap, dy, dx);
            })?,
            Op::Activate { act, .. } => each_row(workers, dy, out, &|row, dy, dx| {
                slopes::activation(&kernels, &x[of(row, n_x)], *act, dy, dx);
            })?,
            _ => unreachable!("the plan refuses other operations"),
        }
        Ok(dx)
    }

    fn matmul_backward(
        &mut self,
        i: usize,
        (x, weight): (ValueId, &Tensor),
        values: &Values,
        dy: &[f32],
        gradients: &mut Values,
        trained: &mut [Vec<f32>],
    ) -> Result<(), KernelError> {
        let (n_x, n_y) = (weight.n_cols(), weight.n_rows());
        if let Some(matrix) = self.trained.get(&i) {
            let mut gradient = self.buffers.take_zeroed(n_x * n_y);
            self.products.add_outer(&values[x.index()], dy, (n_x, n_y), &mut gradient)?;
            let sum = &mut trained[matrix.rows.parameter];
            for (row, gradient) in matrix.rows.rows.iter().zip(gradient.chunks_exact(n_x)) {
                let sum = &mut sum[row * n_x..(row + 1) * n_x];
                sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
            }
            self.buffers.give(gradient);
        }
        if !self.has_gradient(x) {
            return Ok(());
        }
        let n_rows = dy.len() / n_y;
        // The sum is continued where there is one already.
        let mut dx = std::mem::take(&mut gradients[x.index()]);
        let output = if dx.is_empty() { PanelOutput::Overwrite } else { PanelOutput::Add };
        if dx.is_empty() {
            dx = self.buffers.take(n_rows * n_x);
        }
        match self.trained.get(&i) {
            Some(matrix) => {
                let w = Matrix::Dense { values: &matrix.values, n_cols: n_x };
                self.products.multiply(dy, w, Direction::Backward, output, &mut dx)?;
            }
            None => self.products.multiply_frozen(dy, weight, Direction::Backward, output, &mut dx)?,
        }
        gradients[x.index()] = dx;
        Ok(())
    }

    fn glu_backward(
        &mut self,
        [gate, up]: [ValueId; 2],
        act: Activation,
        values: &Values,
        dy: &[f32],
        gradients: &mut Values,
    ) -> Result<(), KernelError> {
        let (mut dgate, mut dup) = (self.buffers.take(dy.len()), self.buffers.take(dy.len()));
        let kernels = self.products.kernels;
        let (gates, ups) = (&values[gate.index()], &values[up.index()]);
        each_part_of_two(&mut self.products.workers, &mut dgate, &mut dup, &|part, dgate, dup| {
            let operands = [&gates[part.clone()], &ups[part.clone()], &dy[part]];
            slopes::gated_unit(&kernels, operands, act, dgate, dup);
        })?;
        self.add_gradient(gradients, gate, dgate)?;
        self.add_gradient(gradients, up, dup)
    }

    fn attention_backward(
        &mut self,
        (q, shape): (ValueId, &AttentionShape),
        values: &Values,
        dy: &[f32],
        gradients: &mut Values,
        rows: &RowsInWork<'_>,
    ) -> Result<(), KernelError> {
        let (k, v) = self.plan.kv[&shape.layer];
        let operands = [q, k, v].map(|v| &values[v.index()][..]);
        let (n_heads, d, kernels) = (shape.n_heads, shape.head_dim, &self.products.kernels);
        let (sequences, width) = (rows.batch.sequences, n_heads * d);
        let heads = self.products.workers.map(sequences.len() * n_heads, &|task| {
            let sequence = &sequences[task / n_heads];
            let dy = &dy[sequence.start * width..sequence.end * width];
            attention::backward(kernels, &head_rows(operands, shape, sequence, task % n_heads), dy)
        })?;
        let (group, n_kv) = (n_heads / shape.n_kv_heads, shape.n_kv_heads);
        let mut dq = self.buffers.take(rows.n_rows * width);
        let mut dk = self.buffers.take(rows.n_rows * n_kv * d);
        let mut dv = self.buffers.take(rows.n_rows * n_kv * d);
        let workers = &mut self.products.workers;
        let of = |at: (usize, usize), head: usize| (&heads[at.0 * n_heads + head], at.1 * d..(at.1 + 1) * d);
        each_row_of_sequences(workers, sequences, (&mut dq, width), &|at, dq| {
            for (head, dq) in dq.chunks_exact_mut(d).enumerate() {
                let (gradients, row) = of(at, head);
                dq.copy_from_slice(&gradients.dq[row]);
            }
        })?;
        let add = |sum: &mut [f32], x: &[f32]| sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
        for (sums, is_key) in [(&mut dk, true), (&mut dv, false)] {
            each_row_of_sequences(workers, sequences, (sums, n_kv * d), &|at, sums| {
                for (kv_head, sum) in sums.chunks_exact_mut(d).enumerate() {
                    sum.fill(0.0);
                    for head in kv_head * group..(kv_head + 1) * group {
                        let (HeadGradients { dk, dv, .. }, row) = of(at, head);
                        add(sum, if is_key { &dk[row] } else { &dv[row] });
                    }
                }
            })?;
        }
        self.add_gradient(gradients, q, dq)?;
        self.add_gradient(gradients, k, dk)?;
        self.add_gradient(gradients, v, dv)
    }
}
