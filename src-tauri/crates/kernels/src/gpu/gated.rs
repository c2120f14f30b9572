//! A gated unit and the two products that it joins: of one row by one kernel, of more by one each.

use super::buffers::Span;
use super::cost::{Cost, PER_BYTE};
use super::nodes::{Made, act_words};
use super::pipeline::Variant;
use super::products::{Part, defines};
use super::program::{Bound, Extent, Maker, PerRow};
use super::shader;
use crate::graph::{Activation, Op, ValueId};
use crate::matmul::gated::GATED_LANES;
use crate::matmul::gpu_packing::packing;
use crate::tensor::Tensor;

use Bound::Value;

/// What is joined.
struct Unit {
    x: ValueId,
    gate: ValueId,
    up: ValueId,
    out: ValueId,
    act: Activation,
    /// of gate and up: alike, without bias
    weights: [Tensor; 2],
}

impl Maker<'_> {
    /// `nodes` are two products of one x, `glu` joins them.
    pub(super) fn gated(&mut self, nodes: &[usize], glu: usize) -> Made {
        let Some(unit) = self.unit(nodes, glu) else {
            return nodes.iter().chain([&glu]).try_for_each(|i| self.node(*i));
        };
        let at = self.matrices.put(self.gpu, &unit.weights)?;
        let matrix = self.matrices.get(at);
        let (row_quads, packing) = (matrix.row_quads as u32, matrix.packing);
        let whole = Span::whole(&matrix.parts[0].buffer);
        let [n_out, k] = [unit.weights[0].n_rows(), unit.weights[0].n_cols()];
        let [act, limit] = act_words(unit.act);
        let params = [k as u32, n_out as u32, row_quads, act, limit];
        let rows = self.graph.value(unit.out).rows;
        let bound =
            [Value(unit.x), Bound::Buffer(whole.clone()), Value(unit.gate), Value(unit.up), Value(unit.out)];
        let variant =
            Variant { defines: defines(k, None), weight: Some(packing), sizes: GATED_LANES.constants() };
        let groups = self.flat(n_out.div_ceil(GATED_LANES.outputs_per_group()));
        let cost = Cost { row: (2 * n_out * k) as u64, bytes: whole.n_bytes, ..Cost::default() };
        let of_rows = PerRow::Between { rows, least: 1, most: 1, each: 1 };
        let extent = Extent { cost, ..Extent::new(groups, of_rows) };
        self.add(glu, (&shader::GATED, variant), &params, &bound, extent)?;
        let n_bytes = whole.n_bytes / 2;
        for i in nodes {
            let is_gate = self.graph.nodes()[*i].output == Some(unit.gate);
            let (out, offset) = if is_gate { (unit.gate, 0) } else { (unit.up, n_bytes) };
            let span = Span { buffer: whole.buffer.clone(), offset, n_bytes };
            let part = Part { span, first: 0, n_rows: n_out as u32, row_quads, packing };
            self.product(*i, unit.x, [n_out, k], &[part], None, out, 2)?;
        }
        self.node(glu)?;
        if let Some(last) = self.made.last_mut() {
            last.rows = PerRow::Between { rows, least: 2, most: usize::MAX, each: 1 };
        }
        Ok(())
    }

    /// None: the two can't lie in one piece of memory as one matrix, or are too much to be read at once.
    fn unit(&self, nodes: &[usize], glu: usize) -> Option<Unit> {
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
        let is_one = first.dtype() == second.dtype()
            && first.shape() == second.shape()
            && 2 * n_bytes <= limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
            && 2 * n_bytes <= self.gpu.most_submitted / PER_BYTE
            && n_bytes.is_multiple_of(u64::from(limits.min_storage_buffer_offset_alignment));
        let out = all[glu].output?;
        is_one.then_some(Unit { x, gate: *gate, up: *up, out, act: *act, weights: [first, second] })
    }
}
