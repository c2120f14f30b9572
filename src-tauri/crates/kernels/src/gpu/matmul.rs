//! Builds matrix operations: for each slice of a matrix, one kernel per range of row counts that has its own fastest
//! method. All of them give a row the same bits, except cooperative matrices. These multiply
//! prompts only: a row of an answer has the same bits in any batch, a row of a prompt has not.

use super::buffers::BufferSpan;
use super::cost::KernelCost;
use super::device::max_lanes;
use super::inputs;
use super::nodes::BuildResult;
use super::pipeline::ShaderVariant;
use super::program::{Batches, Binding, Extent, ProgramBuilder, RowGroups};
use super::shader;
use crate::error::KernelError;
use crate::graph::{Experts, Lookup, Rows, ValueId};
use crate::matmul::gpu_packing::Packing;
use crate::matmul::partial_sums::{self, BLOCK, ReductionLanes, ShaderConstants};
use crate::matmul::tile::{self, MatMulTile, TileMethod};
use crate::ops::expert_groups::{GroupLists, max_tiles};
use crate::tensor::Tensor;

use Binding::Value;

/// Shape of the slot-by-slot expert kernel: that of a single row.
const SLOT: ReductionLanes = partial_sums::ONE_ROW_UNSTAGED;

/// Consecutive rows of a matrix, and their range of a buffer.
pub(super) struct MatrixSlice {
    pub span: BufferSpan,
    /// first row, and number of rows
    pub first: u32,
    pub n_rows: u32,
    /// length of a row in groups of four words
    pub row_quads: u32,
    pub packing: &'static Packing,
}

/// x · Wᵀ + bias.
struct Product {
    /// index of the node
    i: usize,
    x: ValueId,
    out: ValueId,
    /// [n_out, k]
    size: [usize; 2],
    rows: Rows,
    /// zeros where there is none
    bias: (BufferSpan, bool),
}

/// The rows that kernels run for, and how workgroups divide them: `each` rows.
#[derive(Clone, Copy)]
struct RowRange {
    min: usize,
    max: usize,
    each: u32,
    batches: Batches,
}

/// Granularity in outputs of splitting a matrix: whole tiles of any shape, at offsets that any GPU can bind.
const SPLIT_OUTPUTS: u64 = 128;

impl MatrixSlice {
    fn row_bytes(&self) -> u64 {
        u64::from(self.row_quads) * 16
    }

    /// Splits the slice into pieces of about `max_outputs`.
    fn split(&self, max_outputs: u64) -> impl Iterator<Item = Self> {
        let each = u32::try_from(max_outputs / SPLIT_OUTPUTS * SPLIT_OUTPUTS)
            .unwrap_or(u32::MAX)
            .max(SPLIT_OUTPUTS as u32);
        (0..self.n_rows).step_by(each as usize).map(move |at| {
            let (n_rows, row_bytes) = (each.min(self.n_rows - at), self.row_bytes());
            let offset = self.span.offset + u64::from(at) * row_bytes;
            let span = BufferSpan {
                buffer: self.span.buffer.clone(),
                offset,
                n_bytes: u64::from(n_rows) * row_bytes,
            };
            Self { span, first: self.first + at, n_rows, ..*self }
        })
    }
}

/// Definitions for tiled workgroups, and for rows of x that are whole blocks.
pub(super) fn defines(k: usize, tiled: Option<TileMethod>) -> &'static [&'static str] {
    let names: [&[&str]; 2] = match tiled {
        None => [&[], &["WHOLE"]],
        Some(TileMethod::Lanes { .. }) => [&["TILED"], &["TILED", "WHOLE"]],
        Some(TileMethod::CooperativeMatrices { .. }) => {
            [&["TILED", "COOPERATIVE"], &["TILED", "COOPERATIVE", "WHOLE"]]
        }
    };
    names[usize::from(k.is_multiple_of(BLOCK))]
}

/// The tiles to build: for prompts the one of cooperative matrices, if there is one.
fn by_batches(
    tile: Option<MatMulTile>,
    cooperative: Option<MatMulTile>,
) -> impl Iterator<Item = (MatMulTile, Batches)> {
    let others = if cooperative.is_some() { Batches::Others } else { Batches::Any };
    let cooperative = cooperative.filter(|_| tile.is_some()).map(|tile| (tile, Batches::Prompts));
    tile.map(|tile| (tile, others)).into_iter().chain(cooperative)
}

impl ProgramBuilder<'_> {
    pub(super) fn embed(
        &mut self,
        i: usize,
        table: &Tensor,
        scale: f32,
        by: Lookup,
        out: ValueId,
    ) -> BuildResult {
        let at = self.matrices.put(self.gpu, std::slice::from_ref(table))?;
        let (section, n_table) = match by {
            Lookup::Token => (inputs::TOKENS, u32::MAX),
            Lookup::TokenOrFirst => (inputs::TOKENS, table.n_rows() as u32),
            Lookup::Position => (inputs::POSITIONS, u32::MAX),
            Lookup::Kind => (inputs::KINDS, u32::MAX),
        };
        let k = table.n_cols();
        for slice in self.slices(at, table.n_rows()) {
            let MatrixSlice { row_quads, first, n_rows, .. } = slice;
            let params = [k as u32, row_quads, first, n_rows, section, scale.to_bits(), n_table];
            let bound = [Binding::Rows, Binding::Buffer(slice.span), Value(out)];
            let variant = ShaderVariant { weight: Some(slice.packing), ..ShaderVariant::default() };
            let extent = Extent::elements(k.div_ceil(BLOCK), Rows::Tokens);
            self.add(i, (&shader::EMBED, variant), &params, &bound, extent)?;
        }
        Ok(())
    }

    /// The first `n_rows` rows of a stored matrix.
    fn slices(&self, at: usize, n_rows: usize) -> Vec<MatrixSlice> {
        let matrix = self.matrices.get(at);
        let slice = |slice: &super::matrices::StoredSlice| {
            let n_rows = slice.n_rows.min(n_rows - slice.first);
            let n_bytes = (n_rows * matrix.row_quads * 16) as u64;
            MatrixSlice {
                span: BufferSpan { n_bytes, ..BufferSpan::whole(&slice.buffer) },
                first: slice.first as u32,
                n_rows: n_rows as u32,
                row_quads: matrix.row_quads as u32,
                packing: matrix.packing,
            }
        };
        matrix.slices.iter().take_while(|slice| slice.first < n_rows).map(slice).collect()
    }

    /// Arranges `n` workgroups in two dimensions, since one is limited.
    pub(super) fn flat(&self, n: usize) -> [u32; 2] {
        let max = self.gpu.limits.max_compute_workgroups_per_dimension;
        let y = (n as u32).div_ceil(max).max(1);
        [(n as u32).div_ceil(y), y]
    }

    /// The first of `tiles` that the GPU supports. None: it supports none.
    fn tile(&self, tiles: &[MatMulTile]) -> Option<MatMulTile> {
        let (limits, features) = (&self.gpu.limits, self.gpu.features());
        let lanes = max_lanes(limits);
        let fits = |tile: &&MatMulTile| {
            let is_supported = match tile.method {
                TileMethod::Lanes { .. } => true,
                TileMethod::CooperativeMatrices { .. } => features.matrices,
            };
            is_supported
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
    ) -> BuildResult {
        let at = self.matrices.put(self.gpu, std::slice::from_ref(weight))?;
        let slices = self.slices(at, weight.n_rows());
        self.sliced_matmul(i, x, [weight.n_rows(), weight.n_cols()], &slices, bias, out, 1)
    }

    /// Multiplies by the slices of a matrix of shape [n_out, k], for batches of `min_rows` rows or more.
    #[allow(clippy::too_many_arguments)] // a node's operands one by one
    pub(super) fn sliced_matmul(
        &mut self,
        i: usize,
        x: ValueId,
        [n_out, k]: [usize; 2],
        slices: &[MatrixSlice],
        bias: Option<&Tensor>,
        out: ValueId,
        min_rows: usize,
    ) -> BuildResult {
        let rows = self.graph.value(out).rows;
        let floats = bias.map_or_else(|| vec![0.0], Tensor::decode);
        let bias = (self.vector_span(&floats)?, bias.is_some());
        let product = Product { i, x, out, size: [n_out, k], rows, bias };
        // all slices have one packing
        let tuned = slices.first().map_or(tile::LARGE, |slice| self.shapes.tile(slice.packing));
        let tile = self.tile(&[tuned, tile::LARGE, tile::SMALL]);
        let cooperative = self.tile(&[tile::COOPERATIVE, tile::COOPERATIVE_SMALL]);
        let max_few = if tile.is_some() { tile::MAX_REDUCTION_ROWS } else { usize::MAX };
        for slice in slices {
            let lanes = [(self.shapes.one_row(slice.packing), 1, 1), (partial_sums::FEW_ROWS, 2, max_few)];
            for (lanes, min, max) in lanes.into_iter().filter(|(_, _, max)| *max >= min_rows) {
                let range = RowRange { min, max, each: lanes.rows, batches: Batches::Any };
                let per_group = lanes.outputs_per_group();
                self.add_product(&product, slice, (lanes.constants(), None, per_group), range)?;
            }
            for (tile, batches) in by_batches(tile, cooperative) {
                let range = RowRange { min: max_few + 1, max: usize::MAX, each: tile.rows, batches };
                let sizes = (tile.constants(), Some(tile.method), tile.outputs as usize);
                self.add_product(&product, slice, sizes, range)?;
            }
        }
        Ok(())
    }

    /// Adds the kernels that multiply a range of rows by a slice.
    fn add_product(
        &mut self,
        product: &Product,
        slice: &MatrixSlice,
        (sizes, tiled, per_group): (ShaderConstants, Option<TileMethod>, usize),
        range: RowRange,
    ) -> BuildResult {
        let ([n_out, k], RowRange { min, max, each, batches }) = (product.size, range);
        let (bias, has_bias) = (&product.bias.0, u32::from(product.bias.1));
        let of_outputs = u32::from(product.rows == Rows::Outputs);
        let rows = RowGroups::Between { rows: product.rows, min, max, each, batches };
        for piece in slice.split(self.max_outputs(slice, k, rows)) {
            let variant = ShaderVariant {
                defines: defines(k, tiled),
                weight: Some(piece.packing),
                sizes: sizes.clone(),
            };
            let of_piece = [piece.row_quads, piece.first, piece.n_rows];
            let params = [&[k as u32, n_out as u32][..], &of_piece, &[has_bias, of_outputs]].concat();
            let groups = self.flat((piece.n_rows as usize).div_ceil(per_group));
            let (row, bytes) = (u64::from(piece.n_rows) * k as u64, piece.span.n_bytes);
            let cost = KernelCost { row, bytes, ..KernelCost::default() };
            let extent = Extent { cost, ..Extent::new(groups, rows) };
            let bound = [
                Value(product.x),
                Binding::Buffer(piece.span),
                Binding::Buffer(bias.clone()),
                Value(product.out),
            ];
            self.add(product.i, (&shader::MATMUL, variant), &params, &bound, extent)?;
        }
        Ok(())
    }

    /// The most rows of a batch.
    fn max_rows(&self, rows: Rows) -> usize {
        match rows {
            Rows::Tokens => self.capacity.max_rows,
            Rows::Outputs => self.capacity.max_rows.min(self.capacity.max_outputs),
        }
    }

    /// The number of outputs that one kernel may compute without exceeding the submission cost in any batch.
    fn max_outputs(&self, slice: &MatrixSlice, k: usize, rows: RowGroups) -> u64 {
        let RowGroups::Between { rows, max, each, .. } = rows else { return u64::MAX };
        let n_rows = self.max_rows(rows).min(max) as u64;
        let cost = KernelCost { row: k as u64, bytes: slice.row_bytes(), ..KernelCost::default() };
        self.gpu.max_submission_cost / cost.upper_bound(n_rows, 0, n_rows.div_ceil(u64::from(each))).max(1)
    }

    pub(super) fn expert_matmul(
        &mut self,
        i: usize,
        [x, route]: [ValueId; 2],
        experts: &Experts,
        out: ValueId,
    ) -> BuildResult {
        let at = self.matrices.put(self.gpu, &experts.weights)?;
        let n_experts = experts.weights.len();
        let [n_out, k] = [experts.weights[0].n_rows(), experts.weights[0].n_cols()];
        let n_used = self.graph.value(route).width / 2;
        let has_slot_inputs = u32::from(self.graph.value(x).width != k);
        let bias_floats = experts.bias.as_ref().map_or_else(|| vec![0.0], Tensor::decode);
        let tile = self.tile(&[tile::SMALL]);
        let cooperative = self.tile(&[tile::COOPERATIVE_SMALL]);
        let max_few = if tile.is_some() { tile::MAX_SLOTWISE_TOKENS } else { usize::MAX };
        for slice in self.slices(at, n_experts * n_out) {
            let has_bias = u32::from(experts.bias.is_some());
            let [n, used] = [n_experts as u32, n_used as u32];
            let MatrixSlice { first, n_rows, row_quads, packing, span } = slice;
            let params =
                [k as u32, n_out as u32, row_quads, n, used, first, n_rows, has_bias, has_slot_inputs];
            let weight = Binding::Buffer(span);
            let mut bindings = [Value(x), Value(route), weight, self.vector(&bias_floats)?, Value(out)];
            let variant =
                |tiled, sizes| ShaderVariant { defines: defines(k, tiled), weight: Some(packing), sizes };
            let of_expert = n_out as u64 * u64::from(row_quads) * 16;
            let row = (n_used * n_out * k) as u64;
            let groups = [n_out.div_ceil(SLOT.outputs_per_group()) as u32, used];
            let rows = RowGroups::Between {
                rows: Rows::Tokens,
                min: 1,
                max: max_few,
                each: 1,
                batches: Batches::Any,
            };
            let slots = variant(None, SLOT.constants());
            let cost = KernelCost { row, bytes: n_used as u64 * of_expert, ..KernelCost::default() };
            let worst = |n_rows: usize, n: usize| cost.upper_bound(n_rows as u64, 0, n as u64);
            let n_rows = max_few.min(self.capacity.max_rows);
            let extent = (Extent { cost, ..Extent::new(groups, rows) }, n_rows as u32, worst(n_rows, n_rows));
            self.add_split(i, (&shader::EXPERT_MATMUL, slots), &params, &bindings, extent)?;
            for (tile, batches) in by_batches(tile, cooperative) {
                bindings[1] = self.grouped(i, route, n_experts, (tile.rows, batches))?;
                let groups = [n_out.div_ceil(tile.outputs as usize) as u32, 1];
                let rows = RowGroups::Tiles { min: max_few + 1, n_used, n_experts, each: tile.rows, batches };
                let tiled = variant(Some(tile.method), tile.constants());
                let cost = KernelCost { row, bytes: of_expert, ..KernelCost::default() };
                let n_tiles = max_tiles(self.capacity.max_rows * n_used, n_experts, tile.rows as usize);
                // assumes that all tiles are full
                let worst = cost.upper_bound(0, 0, n_tiles as u64);
                let worst = worst.max((n_tiles * tile.rows as usize * n_out * k) as u64);
                let extent = (Extent { cost, ..Extent::new(groups, rows) }, n_tiles as u32, worst);
                self.add_split(i, (&shader::EXPERT_MATMUL, tiled), &params, &bindings, extent)?;
            }
        }
        Ok(())
    }

    /// The slots of a route's tokens in tiles grouped by expert. Consecutive multiplications of one route share the lists.
    fn grouped(
        &mut self,
        i: usize,
        route: ValueId,
        n_experts: usize,
        (tile_rows, batches): (u32, Batches),
    ) -> Result<Binding, KernelError> {
        let key = (route, tile_rows);
        if let Some((_, buffer)) = self.grouped.iter().find(|(known, _)| *known == key) {
            return Ok(Binding::Buffer(BufferSpan::whole(buffer)));
        }
        let n_used = self.graph.value(route).width / 2;
        // the buffer may be larger than the route
        let n_tokens = self.values.buffer(route).size() as usize / (2 * n_used * size_of::<f32>());
        let lists = GroupLists::new(n_tokens * n_used, n_experts, tile_rows as usize);
        let buffer = self.matrices.scratch(self.gpu, (lists.n_words * size_of::<u32>()) as u64)?;
        let params =
            [n_experts, n_used, tile_rows as usize, lists.list, lists.starts].map(|word| word as u32);
        let bindings = [Value(route), Binding::Buffer(BufferSpan::whole(&buffer))];
        let min = tile::MAX_SLOTWISE_TOKENS + 1;
        // one workgroup for all rows
        let (rows, max) = (Rows::Tokens, usize::MAX);
        let rows = RowGroups::Between { rows, min, max, each: u32::MAX, batches };
        let variant = ShaderVariant { defines: &["MAIN"], ..ShaderVariant::default() };
        let extent = Extent::new([1, 1], rows);
        self.add(i, (&shader::EXPERT_GROUPS, variant), &params, &bindings, extent)?;
        self.grouped.push((key, buffer.clone()));
        Ok(Binding::Buffer(BufferSpan::whole(&buffer)))
    }
}
