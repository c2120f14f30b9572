//! A gated unit with its two multiplications: one kernel for a single row, separate kernels for more.

use super::buffers::BufferSpan;
use super::cost::{COST_PER_BYTE, KernelCost};
use super::matmul::{MatrixSlice, defines};
use super::nodes::{BuildResult, act_words};
use super::pipeline::ShaderVariant;
use super::program::{Batches, Binding, Extent, ProgramBuilder, RowGroups};
use super::shader;
use crate::graph::{Activation, Op, ValueId};
use crate::matmul::gated::GATED_LANES;
use crate::matmul::gpu_packing::packing;
use crate::tensor::Tensor;

use Binding::Value;

/// The operands of a gated unit.
struct GatedUnit {
    x: ValueId,
    gate: ValueId,
    up: ValueId,
    out: ValueId,
    act: Activation,
    /// of gate and up: equal shape and format, without bias
    weights: [Tensor; 2],
}

impl ProgramBuilder<'_> {
    /// Builds the multiplications `nodes` of one x and the unit `glu` that joins them.
    pub(super) fn gated(&mut self, nodes: &[usize], glu: usize) -> BuildResult {
        let Some(unit) = self.gated_unit(nodes, glu) else {
            return nodes.iter().chain([&glu]).try_for_each(|i| self.node(*i));
        };
        let at = self.matrices.put(self.gpu, &unit.weights)?;
        let matrix = self.matrices.get(at);
        let (row_quads, packing) = (matrix.row_quads as u32, matrix.packing);
        let whole = BufferSpan::whole(&matrix.slices[0].buffer);
        let [n_out, k] = [unit.weights[0].n_rows(), unit.weights[0].n_cols()];
        let [act, limit] = act_words(unit.act);
        let params = [k as u32, n_out as u32, row_quads, act, limit];
        let rows = self.graph.value(unit.out).rows;
        let bindings = [
            Value(unit.x),
            Binding::Buffer(whole.clone()),
            Value(unit.gate),
            Value(unit.up),
            Value(unit.out),
        ];
        let variant = ShaderVariant {
            defines: defines(k, None),
            weight: Some(packing),
            sizes: GATED_LANES.constants(),
        };
        let groups = self.flat(n_out.div_ceil(GATED_LANES.outputs_per_group()));
        let cost = KernelCost { row: (2 * n_out * k) as u64, bytes: whole.n_bytes, ..KernelCost::default() };
        let row_groups = RowGroups::Between { rows, min: 1, max: 1, each: 1, batches: Batches::Any };
        let extent = Extent { cost, ..Extent::new(groups, row_groups) };
        self.add(glu, (&shader::GATED, variant), &params, &bindings, extent)?;
        let n_bytes = whole.n_bytes / 2;
        for i in nodes {
            let is_gate = self.graph.nodes()[*i].output == Some(unit.gate);
            let (out, offset) = if is_gate { (unit.gate, 0) } else { (unit.up, n_bytes) };
            let span = BufferSpan { buffer: whole.buffer.clone(), offset, n_bytes };
            let slice = MatrixSlice { span, first: 0, n_rows: n_out as u32, row_quads, packing };
            self.sliced_matmul(*i, unit.x, [n_out, k], &[slice], None, out, 2)?;
        }
        self.node(glu)?;
        if let Some(last) = self.dispatches.last_mut() {
            last.rows = RowGroups::Between { rows, min: 2, max: usize::MAX, each: 1, batches: Batches::Any };
        }
        Ok(())
    }

    /// The operands. None: the two weights can't share one buffer, or are too large for one submission.
    fn gated_unit(&self, nodes: &[usize], glu: usize) -> Option<GatedUnit> {
        let all = self.graph.nodes();
        let Op::Glu { gate, up, act } = &all[glu].op else { return None };
        let of = |value: &ValueId| {
            let mut made = nodes.iter().filter(|i| all[**i].output == Some(*value));
            match &all[*made.next()?].op {
                Op::MatMul { x, weight, bias: None } => Some((*x, weight.clone())),
                _ => None,
            }
        };
        let ((x, first), (_, second)) = (of(gate)?, of(up)?);
        let row_bytes = (packing(first.dtype()).row_words(first.n_cols()) * size_of::<u32>()) as u64;
        let n_bytes = first.n_rows() as u64 * row_bytes;
        let limits = &self.gpu.limits;
        let can_share = first.dtype() == second.dtype()
            && first.shape() == second.shape()
            && 2 * n_bytes <= limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
            && 2 * n_bytes <= self.gpu.max_submission_cost / COST_PER_BYTE
            && n_bytes.is_multiple_of(u64::from(limits.min_storage_buffer_offset_alignment));
        let out = all[glu].output?;
        can_share.then_some(GatedUnit { x, gate: *gate, up: *up, out, act: *act, weights: [first, second] })
    }
}
