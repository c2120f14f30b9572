//! Operations with matrices as kernels of a card: one for each part that a matrix is in.

use super::buffers::Span;
use super::inputs;
use super::nodes::Made;
use super::pipeline::Variant;
use super::program::{Bound, Extent, Maker, PerRow};
use super::shader;
use crate::graph::{Experts, Lookup, Rows, ValueId};
use crate::matmul::packed::Packing;
use crate::tensor::Tensor;

use Bound::Value;

/// Outputs of one workgroup of products, and rows that share a decoded weight: as in the WGSL.
const OUTPUTS: usize = 4;
const ROWS: u32 = 8;
/// Elements that are decoded together: rows of a whole number of them are read in fours.
const SEGMENT: usize = 16;

impl Maker<'_> {
    pub(super) fn embed(&mut self, i: usize, table: &Tensor, scale: f32, by: Lookup, out: ValueId) -> Made {
        let at = self.matrices.put(self.gpu, std::slice::from_ref(table))?;
        let section = match by {
            Lookup::Token => inputs::TOKENS,
            Lookup::Position => inputs::POSITIONS,
            Lookup::First => inputs::NO_SECTION,
        };
        let k = table.n_cols();
        for part in 0..self.matrices.get(at).parts.len() {
            let (weight, first, n_rows, row_words, packing) = self.part(at, part);
            let params = [k as u32, row_words, first, n_rows, section, scale.to_bits()];
            let bound = [Bound::Rows, weight, Value(out)];
            let variant = Variant { defines: &[], weight: Some(packing) };
            let extent = Extent::elements(k.div_ceil(16), Rows::Tokens);
            self.add(i, (&shader::EMBED, variant), &params, &bound, extent)?;
        }
        Ok(())
    }

    /// A part of a matrix: its rows, where they begin, how many, words of each, how they lie.
    fn part(&self, at: usize, part: usize) -> (Bound, u32, u32, u32, &'static Packing) {
        let matrix = self.matrices.get(at);
        let part = &matrix.parts[part];
        let bound = Bound::Buffer(Span::whole(&part.buffer));
        (bound, part.first as u32, part.n_rows as u32, matrix.row_words as u32, matrix.packing)
    }

    pub(super) fn matmul(
        &mut self,
        i: usize,
        x: ValueId,
        weight: &Tensor,
        bias: Option<&Tensor>,
        out: ValueId,
    ) -> Made {
        let at = self.matrices.put(self.gpu, std::slice::from_ref(weight))?;
        let rows = self.graph.value(out).rows;
        let [n_out, k] = [weight.n_rows(), weight.n_cols()];
        for part in 0..self.matrices.get(at).parts.len() {
            let bias_floats = bias.map_or_else(|| vec![0.0], Tensor::decode);
            let bias_bound = self.vector(&bias_floats)?;
            let (weight, first, n_rows, row_words, packing) = self.part(at, part);
            let of_outputs = u32::from(rows == Rows::Outputs);
            let params =
                [k as u32, n_out as u32, row_words, first, n_rows, u32::from(bias.is_some()), of_outputs];
            let bound = [Value(x), weight, bias_bound, Value(out)];
            let is_whole = k.is_multiple_of(SEGMENT);
            let variant = |defines| Variant { defines, weight: Some(packing) };
            let extent = Extent {
                groups: self.flat((n_rows as usize).div_ceil(OUTPUTS)),
                rows: PerRow::Each(rows, ROWS),
                cost: (n_out * k) as u64,
            };
            let defines: &[&str] = if is_whole { &["WHOLE"] } else { &[] };
            self.add(i, (&shader::MATMUL, variant(defines)), &params, &bound, extent)?;
            if is_whole {
                let shape = self.shapes.of(packing);
                let groups = self.flat((n_rows as usize).div_ceil(shape.n_outputs()));
                self.single((&shader::MATMUL, variant(shape.defines)), groups)?;
            }
        }
        Ok(())
    }

    /// So many workgroups in two dimensions, as one is limited.
    fn flat(&self, n: usize) -> [u32; 2] {
        let most = self.gpu.limits.max_compute_workgroups_per_dimension;
        let y = (n as u32).div_ceil(most).max(1);
        [(n as u32).div_ceil(y), y]
    }

    pub(super) fn expert_matmul(
        &mut self,
        i: usize,
        [x, route]: [ValueId; 2],
        experts: &Experts,
        out: ValueId,
    ) -> Made {
        let at = self.matrices.put(self.gpu, &experts.weights)?;
        let n_experts = experts.weights.len();
        let [n_out, k] = [experts.weights[0].n_rows(), experts.weights[0].n_cols()];
        let n_used = self.graph.value(route).width / 2;
        let parted = u32::from(self.graph.value(x).width != k);
        for part in 0..self.matrices.get(at).parts.len() {
            let bias = experts.bias.as_ref().map_or_else(|| vec![0.0], Tensor::decode);
            let bias = self.vector(&bias)?;
            let (weight, first, n_rows, row_words, packing) = self.part(at, part);
            let has_bias = u32::from(experts.bias.is_some());
            let [n, used] = [n_experts as u32, n_used as u32];
            let params = [k as u32, n_out as u32, row_words, n, used, first, n_rows, has_bias, parted];
            let bound = [Value(x), Value(route), weight, bias, Value(out)];
            let extent = Extent {
                groups: [n_out.div_ceil(OUTPUTS) as u32, used],
                rows: PerRow::Each(Rows::Tokens, 1),
                cost: (n_used * n_out * k) as u64,
            };
            let variant = Variant { defines: &[], weight: Some(packing) };
            self.add(i, (&shader::EXPERT_MATMUL, variant), &params, &bound, extent)?;
        }
        Ok(())
    }
}
