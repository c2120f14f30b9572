//! Operations with matrices as kernels of a card: for each part that a matrix is in, one for each number of rows that
//! is best computed in a way of its own. All of them give a row the same bits, but for cooperative matrices.

use super::buffers::Span;
use super::cost::Cost;
use super::inputs;
use super::nodes::Made;
use super::pipeline::Variant;
use super::program::{Bound, Extent, Maker, PerRow};
use super::shader;
use crate::error::KernelError;
use crate::graph::{Experts, Lookup, Rows, ValueId};
use crate::matmul::gpu_packing::Packing;
use crate::matmul::partial_sums::{self, BLOCK, ReductionLanes, ShaderConstants};
use crate::matmul::tile::{self, MatMulTile, TileMethod};
use crate::ops::expert_groups::{Groups, most_tiles};
use crate::tensor::Tensor;

use Bound::Value;

/// Outputs of an expert go slot by slot with the shape that one row has.
const SLOT: ReductionLanes = partial_sums::ONE_ROW;

/// A part of a matrix on the card.
pub(super) struct Part {
    pub span: Span,
    /// its first row of the matrix, and how many there are
    pub first: u32,
    pub n_rows: u32,
    /// fours of words of a row
    pub row_quads: u32,
    pub packing: &'static Packing,
}

/// Outputs by which a product is cut: whole tiles of any shape, and bytes that may begin a binding on any card.
const CUT: u64 = 128;

impl Part {
    fn row_bytes(&self) -> u64 {
        u64::from(self.row_quads) * 16
    }

    /// In pieces of `most` outputs, or about.
    fn cut(&self, most: u64) -> impl Iterator<Item = Self> {
        let each = u32::try_from(most / CUT * CUT).unwrap_or(u32::MAX).max(CUT as u32);
        (0..self.n_rows).step_by(each as usize).map(move |at| {
            let (n_rows, row_bytes) = (each.min(self.n_rows - at), self.row_bytes());
            let offset = self.span.offset + u64::from(at) * row_bytes;
            let span =
                Span { buffer: self.span.buffer.clone(), offset, n_bytes: u64::from(n_rows) * row_bytes };
            Self { span, first: self.first + at, n_rows, ..*self }
        })
    }
}

/// Names that are set where rows of x are whole blocks, and where workgroups have tiles.
pub(super) fn defines(k: usize, tiled: Option<TileMethod>) -> &'static [&'static str] {
    let names: [&[&str]; 2] = match tiled {
        None => [&[], &["WHOLE"]],
        Some(TileMethod::Lanes) => [&["TILED"], &["TILED", "WHOLE"]],
        Some(TileMethod::CooperativeMatrices) => {
            [&["TILED", "COOPERATIVE"], &["TILED", "COOPERATIVE", "WHOLE"]]
        }
    };
    names[usize::from(k.is_multiple_of(BLOCK))]
}

impl Maker<'_> {
    pub(super) fn embed(&mut self, i: usize, table: &Tensor, scale: f32, by: Lookup, out: ValueId) -> Made {
        let at = self.matrices.put(self.gpu, std::slice::from_ref(table))?;
        let section = match by {
            Lookup::Token => inputs::TOKENS,
            Lookup::Position => inputs::POSITIONS,
            Lookup::First => inputs::NO_SECTION,
        };
        let k = table.n_cols();
        for part in self.parts(at) {
            let params = [k as u32, part.row_quads, part.first, part.n_rows, section, scale.to_bits()];
            let bound = [Bound::Rows, Bound::Buffer(part.span), Value(out)];
            let variant = Variant { weight: Some(part.packing), ..Variant::default() };
            let extent = Extent::elements(k.div_ceil(BLOCK), Rows::Tokens);
            self.add(i, (&shader::EMBED, variant), &params, &bound, extent)?;
        }
        Ok(())
    }

    fn parts(&self, at: usize) -> Vec<Part> {
        let matrix = self.matrices.get(at);
        let part = |part: &super::matrices::Part| Part {
            span: Span::whole(&part.buffer),
            first: part.first as u32,
            n_rows: part.n_rows as u32,
            row_quads: matrix.row_quads as u32,
            packing: matrix.packing,
        };
        matrix.parts.iter().map(part).collect()
    }

    /// So many workgroups in two dimensions, as one is limited.
    pub(super) fn flat(&self, n: usize) -> [u32; 2] {
        let most = self.gpu.limits.max_compute_workgroups_per_dimension;
        let y = (n as u32).div_ceil(most).max(1);
        [(n as u32).div_ceil(y), y]
    }

    /// The first tile that the card can have; None: there is none.
    fn tile(&self, tiles: &[MatMulTile]) -> Option<MatMulTile> {
        let (limits, used) = (&self.gpu.limits, self.gpu.used());
        let lanes = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
        let fits = |tile: &&MatMulTile| {
            let is_possible = match tile.method {
                TileMethod::Lanes => true,
                TileMethod::CooperativeMatrices => used.matrices,
            };
            is_possible
                && tile.lanes() <= lanes
                && tile.shared_bytes() <= limits.max_compute_workgroup_storage_size
        };
        tiles.iter().find(fits).copied()
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
        let parts = self.parts(at);
        self.product(i, x, [weight.n_rows(), weight.n_cols()], &parts, bias, out, 1)
    }

    /// With the parts of a matrix of shape [n_out, k], where there are `least` rows or more.
    #[allow(clippy::too_many_arguments)] // a node's operands one by one
    pub(super) fn product(
        &mut self,
        i: usize,
        x: ValueId,
        [n_out, k]: [usize; 2],
        parts: &[Part],
        bias: Option<&Tensor>,
        out: ValueId,
        least: usize,
    ) -> Made {
        let rows = self.graph.value(out).rows;
        let bias_floats = bias.map_or_else(|| vec![0.0], Tensor::decode);
        let has_bias = u32::from(bias.is_some());
        // all parts lie alike
        let tuned = parts.first().map_or(tile::LARGE, |part| self.shapes.tile(part.packing));
        let tile = self.tile(&[tile::COOPERATIVE, tuned, tile::LARGE, tile::SMALL]);
        let few = if tile.is_some() { tile::MAX_REDUCTION_ROWS } else { usize::MAX };
        for part in parts {
            let lanes = [(self.shapes.one_row(part.packing), 1, 1), (partial_sums::FEW_ROWS, 2, few)];
            let of_outputs = u32::from(rows == Rows::Outputs);
            let bias = self.vector(&bias_floats)?;
            let mut bound = [Value(x), Bound::Buffer(part.span.clone()), bias, Value(out)];
            let mut way = |sizes: ShaderConstants, tiled, per_group: usize, of_rows| -> Made {
                for piece in part.cut(self.outputs_at_once(part, k, of_rows)) {
                    let Part { first, n_rows, row_quads, packing, span } = piece;
                    let sizes = sizes.clone();
                    let variant = Variant { defines: defines(k, tiled), weight: Some(packing), sizes };
                    let params = [k as u32, n_out as u32, row_quads, first, n_rows, has_bias, of_outputs];
                    let groups = self.flat((n_rows as usize).div_ceil(per_group));
                    let (row, bytes) = (u64::from(n_rows) * k as u64, span.n_bytes);
                    let cost = Cost { row, bytes, ..Cost::default() };
                    let extent = Extent { cost, ..Extent::new(groups, of_rows) };
                    bound[1] = Bound::Buffer(span);
                    self.add(i, (&shader::MATMUL, variant), &params, &bound, extent)?;
                }
                Ok(())
            };
            for (lanes, from, most) in lanes.iter().filter(|(_, _, most)| *most >= least) {
                let rows = PerRow::Between { rows, least: *from, most: *most, each: lanes.rows };
                way(lanes.constants(), None, lanes.outputs_per_group(), rows)?;
            }
            if let Some(tile) = tile {
                let rows = PerRow::Between { rows, least: few + 1, most: usize::MAX, each: tile.rows };
                way(tile.constants(), Some(tile.method), tile.outputs as usize, rows)?;
            }
        }
        Ok(())
    }

    /// Outputs of a part that a kernel may have in any batch, so that it is not too long.
    fn outputs_at_once(&self, part: &Part, k: usize, rows: PerRow) -> u64 {
        let PerRow::Between { rows, most, each, .. } = rows else { return u64::MAX };
        let most_rows = match rows {
            Rows::Tokens => self.capacity.max_rows,
            Rows::Outputs => self.capacity.max_rows.min(self.capacity.max_outputs),
        };
        let n_rows = most_rows.min(most) as u64;
        let cost = Cost { row: k as u64, bytes: part.row_bytes(), ..Cost::default() };
        self.gpu.most_submitted / cost.at_most(n_rows, 0, n_rows.div_ceil(u64::from(each))).max(1)
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
        let bias_floats = experts.bias.as_ref().map_or_else(|| vec![0.0], Tensor::decode);
        let tile = self.tile(&[tile::COOPERATIVE, tile::SMALL]);
        let few = if tile.is_some() { tile::MAX_SLOTWISE_TOKENS } else { usize::MAX };
        for part in self.parts(at) {
            let has_bias = u32::from(experts.bias.is_some());
            let [n, used] = [n_experts as u32, n_used as u32];
            let Part { first, n_rows, row_quads, packing, span } = part;
            let params = [k as u32, n_out as u32, row_quads, n, used, first, n_rows, has_bias, parted];
            let weight = Bound::Buffer(span);
            let mut bound = [Value(x), Value(route), weight, self.vector(&bias_floats)?, Value(out)];
            let variant = |tiled, sizes| Variant { defines: defines(k, tiled), weight: Some(packing), sizes };
            let of_expert = n_out as u64 * u64::from(row_quads) * 16;
            let row = (n_used * n_out * k) as u64;
            let groups = [n_out.div_ceil(SLOT.outputs_per_group()) as u32, used];
            let rows = PerRow::Between { rows: Rows::Tokens, least: 1, most: few, each: 1 };
            let slots = variant(None, SLOT.constants());
            let cost = Cost { row, bytes: n_used as u64 * of_expert, ..Cost::default() };
            let worst = |n_rows: usize, n: usize| cost.at_most(n_rows as u64, 0, n as u64);
            let n_rows = few.min(self.capacity.max_rows);
            let extent = (Extent { cost, ..Extent::new(groups, rows) }, n_rows as u32, worst(n_rows, n_rows));
            self.add_in_parts(i, (&shader::EXPERT_MATMUL, slots), &params, &bound, extent)?;
            if let Some(tile) = tile {
                bound[1] = self.grouped(i, route, n_experts, tile)?;
                let groups = [n_out.div_ceil(tile.outputs as usize) as u32, 1];
                let rows = PerRow::Tiles { least: few + 1, n_used, n_experts, each: tile.rows };
                let tiled = variant(Some(tile.method), tile.constants());
                let cost = Cost { row, bytes: of_expert, ..Cost::default() };
                let n_tiles = most_tiles(self.capacity.max_rows * n_used, n_experts, tile.rows as usize);
                // as if all tiles were full
                let worst = cost.at_most(0, 0, n_tiles as u64);
                let worst = worst.max((n_tiles * tile.rows as usize * n_out * k) as u64);
                let extent = (Extent { cost, ..Extent::new(groups, rows) }, n_tiles as u32, worst);
                self.add_in_parts(i, (&shader::EXPERT_MATMUL, tiled), &params, &bound, extent)?;
            }
        }
        Ok(())
    }

    /// The slots of a route's tokens in tiles by expert. Products of one route share them: they follow one another.
    fn grouped(
        &mut self,
        i: usize,
        route: ValueId,
        n_experts: usize,
        tile: MatMulTile,
    ) -> Result<Bound, KernelError> {
        if let Some((of, buffer)) = &self.grouped
            && *of == route
        {
            return Ok(Bound::Buffer(Span::whole(buffer)));
        }
        let n_used = self.graph.value(route).width / 2;
        // a buffer may be longer than the route that is in it
        let n_tokens = self.values.buffer(route).size() as usize / (2 * n_used * size_of::<f32>());
        let lists = Groups::new(n_tokens * n_used, n_experts, tile.rows as usize);
        let buffer = self.matrices.scratch(self.gpu, (lists.n_words * size_of::<u32>()) as u64)?;
        let params =
            [n_experts, n_used, tile.rows as usize, lists.list, lists.starts].map(|word| word as u32);
        let bound = [Value(route), Bound::Buffer(Span::whole(&buffer))];
        let least = tile::MAX_SLOTWISE_TOKENS + 1;
        // one workgroup for all rows there are
        let rows = PerRow::Between { rows: Rows::Tokens, least, most: usize::MAX, each: u32::MAX };
        let variant = Variant { defines: &["MAIN"], ..Variant::default() };
        let extent = Extent::new([1, 1], rows);
        self.add(i, (&shader::EXPERT_GROUPS, variant), &params, &bound, extent)?;
        self.grouped = Some((route, buffer.clone()));
        Ok(Bound::Buffer(Span::whole(&buffer)))
    }
}
