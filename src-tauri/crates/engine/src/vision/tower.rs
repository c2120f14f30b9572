//! A loaded vision tower: patches of one image in, its embeddings out.

use std::collections::HashMap;
use std::sync::Arc;

use kernels::backends::{self, BackendOptions};
use kernels::{
    Backend, BackendKind, Batch, Capacity, DeviceId, Executor, GivenRows, Interrupt, N_COORDINATES, Observer,
    PAGE_LEN, Tensor,
};
use weights::WeightFile;

use ::vision::PatchPixels;

use super::{TowerParams, positions, tensors};
use crate::arch::LocatedTensor;
use crate::decoder::{LowRankUpdate, ProductBounds, WeightSource, build_tower};
use crate::error::{EngineError, Result};
use crate::spec::{PatchGrid, PatchSequence, Role, TowerSpec};
use crate::vision::samples;

/// Most patches of an image: a square of 4096 samples in patches of 16.
const MAX_PATCHES: usize = 1 << 16;

/// The patches of one image, as the family's published preprocessor orders them and their samples.
#[derive(Debug, Clone, Copy)]
pub struct ImagePatches<'a> {
    /// Rows of patches.
    pub rows: usize,
    /// Patches per row.
    pub cols: usize,
    /// (rows · cols, samples of a patch)
    pub values: &'a [f32],
}

/// Iterates over the tiles of a picture, each a separate image for the tower.
pub fn tiles(pixels: &PatchPixels) -> impl Iterator<Item = ImagePatches<'_>> {
    let mut rest = pixels.pixels.as_slice();
    pixels.tiles.iter().map(move |tile| {
        let (values, after) = rest.split_at(tile.n_patches() * pixels.patch_length);
        rest = after;
        ImagePatches { rows: tile.patch_rows, cols: tile.patch_cols, values }
    })
}

/// A vision tower with its weights. What it computes with is allocated for the largest image so far.
pub struct VisionTower {
    spec: TowerSpec,
    tensors: Vec<LocatedTensor>,
    bounds: HashMap<(Role, usize), ProductBounds>,
    kind: BackendKind,
    options: BackendOptions,
    executor: Option<Executor>,
    interrupt: Option<Interrupt>,
}

impl VisionTower {
    /// Loads the tower of a file: a safetensors repository, or a GGUF that holds nothing else. `None`: it has none.
    ///
    /// Errors: `vision.tower_unknown`; `model.*` naming the key or tensor that does not fit.
    pub fn load(file: &Arc<WeightFile>, kind: BackendKind, options: BackendOptions) -> Result<Option<Self>> {
        let Some(family) = super::find(file)? else { return Ok(None) };
        let spec = family.spec(&TowerParams::new(file))?;
        let tensors = tensors::locate(file, family, &spec)?;
        let bounds = tensors::bounds(file, family, &spec)?;
        Ok(Some(Self { spec, tensors, bounds, kind, options, executor: None, interrupt: None }))
    }

    /// Returns the structure of the tower.
    pub fn spec(&self) -> &TowerSpec {
        &self.spec
    }

    /// Returns the bytes of the tower's weights as stored.
    pub fn n_weight_bytes(&self) -> u64 {
        self.tensors.iter().flat_map(|tensor| &tensor.parts).map(|part| part.data.len() as u64).sum()
    }

    /// Sets the interrupt that ends runs early.
    pub fn set_interrupt(&mut self, interrupt: Option<Interrupt>) {
        if let Some(executor) = &mut self.executor {
            executor.set_interrupt(interrupt.as_ref());
        }
        self.interrupt = interrupt;
    }

    /// Returns the embeddings of one image. (embeddings, row_width)
    ///
    /// Errors: `vision.patches`; no memory, a failed kernel, an interrupt.
    pub fn embed(&mut self, patches: &ImagePatches<'_>) -> Result<Vec<f32>> {
        self.embed_observed(patches, None)
    }

    /// As `embed`, calling `observer` after each step.
    ///
    /// Errors: as `embed`.
    pub fn embed_observed(
        &mut self,
        patches: &ImagePatches<'_>,
        observer: Option<Observer<'_>>,
    ) -> Result<Vec<f32>> {
        self.check(patches)?;
        let order = block_order(patches, self.spec.projector.block_side);
        let values = self.given_rows(patches, &order)?;
        let n = order.len();
        let coordinates: Vec<[u32; N_COORDINATES]> =
            order.iter().map(|place| [0, place / patches.cols as u32, place % patches.cols as u32]).collect();
        let kinds: &[u32] = match self.spec.patches.grid {
            PatchGrid::Square { .. } => &order,
            PatchGrid::Resampled { .. } | PatchGrid::Axes { .. } | PatchGrid::Plain => &[],
        };
        let (zeros, rows): (Vec<u32>, Vec<u32>) = (vec![0; n], (0..n as u32).collect());
        let pages: Vec<u32> = (0..n.div_ceil(PAGE_LEN) as u32).collect();
        let outputs: Vec<u32> = rows.iter().copied().step_by(self.spec.patches_per_embedding()).collect();
        let executor = self.executor_for(n)?;
        let batch = Batch {
            tokens: &zeros,
            positions: &rows,
            kinds,
            given: GivenRows { rows: &rows, values: &values, image_ends: &[], coordinates: &coordinates },
            sequence: &zeros,
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &outputs,
        };
        executor.run_observed(&batch, observer)?;
        Ok(executor.output().to_vec())
    }

    fn check(&self, patches: &ImagePatches<'_>) -> Result<()> {
        let fail = |what: String| {
            EngineError::new(
                "vision.patches",
                format!("an image of {} rows of {} patches {what}", patches.rows, patches.cols),
                "Prepare the image for this model.",
            )
        };
        let ImagePatches { rows, cols, values } = *patches;
        match self.spec.patches.grid {
            PatchGrid::Square { side } if (rows, cols) != (side, side) => {
                return Err(fail(format!("does not fit this tower, which takes {side} rows of {side}")));
            }
            PatchGrid::Square { .. } => {}
            PatchGrid::Resampled { .. } | PatchGrid::Axes { .. } | PatchGrid::Plain => {
                let side = self.spec.projector.block_side;
                let is_whole = rows.is_multiple_of(side) && cols.is_multiple_of(side);
                let n = rows.checked_mul(cols).filter(|n| (1..=MAX_PATCHES).contains(n));
                if !is_whole || n.is_none() {
                    return Err(fail(format!(
                        "does not fit this tower, which takes up to {MAX_PATCHES} in blocks of {side} × {side}"
                    )));
                }
            }
        }
        if let PatchGrid::Axes { side } = self.spec.patches.grid
            && rows.max(cols) > side
        {
            return Err(fail(format!("does not fit this tower, which has positions for {side} each way")));
        }
        let expected = rows * cols * self.spec.patch_len();
        if values.len() != expected {
            return Err(fail(format!("has {} values instead of {expected}", values.len())));
        }
        Ok(())
    }

    /// Returns what a batch gives for each patch, in the order of the blocks: its samples, and the embedding of its place
    /// where that is resampled.
    fn given_rows(&self, patches: &ImagePatches<'_>, order: &[u32]) -> Result<Vec<f32>> {
        let (patch_len, d_model) = (self.spec.patch_len(), self.spec.d_model);
        let shape = (patches.rows, patches.cols);
        let places = match self.spec.patches.grid {
            PatchGrid::Square { .. } | PatchGrid::Plain => Vec::new(),
            PatchGrid::Resampled { side, rule } => positions::resample(&self.positions()?, side, rule, shape),
            PatchGrid::Axes { side } => positions::sum_axes(&self.positions()?, side, shape),
        };
        let mut values = Vec::with_capacity(patches.values.len() + places.len());
        for (row, place) in order.iter().enumerate() {
            let at = match self.spec.patches.sequence {
                PatchSequence::Raster => *place as usize,
                PatchSequence::Blocks => row,
            };
            samples::push(
                &patches.values[at * patch_len..][..patch_len],
                self.spec.patches.samples,
                &mut values,
            );
            values.extend(places.iter().skip(*place as usize * d_model).take(d_model));
        }
        Ok(values)
    }

    /// Returns the learned table of positions.
    fn positions(&self) -> Result<Vec<f32>> {
        let table = self.tensors.iter().find(|tensor| tensor.role == Role::PositionEmbedding);
        let parts = table.map_or(&[][..], |table| &table.parts);
        let [table] = parts else { unreachable!("the spec lists one table of positions") };
        Ok(Tensor::host(&table.view())?.decode())
    }

    /// Returns an executor for `n` patches.
    fn executor_for(&mut self, n: usize) -> Result<&mut Executor> {
        let before = self.executor.take().filter(|executor| executor.capacity().max_rows >= n);
        let executor = match before {
            Some(executor) => executor,
            None => {
                let device = backends::open(self.kind, &self.options)?;
                let (tensors, bounds) = (&self.tensors, &self.bounds);
                let mut weights = TowerWeights { tensors, bounds, device: device.as_ref() };
                let graph = build_tower(&self.spec, &mut weights)?;
                let capacity = Capacity {
                    n_pages: n.div_ceil(PAGE_LEN),
                    n_requantized_pages: 0,
                    n_window_pages: 0,
                    max_rows: n,
                    max_outputs: n.div_ceil(self.spec.patches_per_embedding()),
                    n_states: 0,
                };
                let mut executor = Executor::new(graph, vec![device], capacity)?;
                executor.set_interrupt(self.interrupt.as_ref());
                executor
            }
        };
        Ok(self.executor.insert(executor))
    }
}

/// The place of each patch, row by row, in an order in which the patches of a block follow one another.
fn block_order(patches: &ImagePatches<'_>, side: usize) -> Vec<u32> {
    let mut order = Vec::with_capacity(patches.rows * patches.cols);
    for block_row in (0..patches.rows).step_by(side) {
        for block_col in (0..patches.cols).step_by(side) {
            for row in block_row..block_row + side {
                order.extend((block_col..block_col + side).map(|col| (row * patches.cols + col) as u32));
            }
        }
    }
    order
}

/// Uploads a tower's tensors as the decoder requests them.
struct TowerWeights<'a> {
    tensors: &'a [LocatedTensor],
    bounds: &'a HashMap<(Role, usize), ProductBounds>,
    device: &'a dyn Backend,
}

impl WeightSource for TowerWeights<'_> {
    fn get(&mut self, role: Role, layer: Option<usize>, device: DeviceId) -> Result<Tensor> {
        let [tensor] = <[Tensor; 1]>::try_from(self.experts(role, layer, device)?)
            .expect("only expert matrices have several parts");
        Ok(tensor)
    }

    fn experts(&mut self, role: Role, layer: Option<usize>, _: DeviceId) -> Result<Vec<Tensor>> {
        let found = self.tensors.iter().find(|tensor| tensor.role == role && tensor.layer == layer);
        let found = found.expect("the spec lists every tensor that the decoder requests");
        found.parts.iter().map(|part| Ok(self.device.upload(&part.view())?)).collect()
    }

    fn adapters(&mut self, _: Role, _: Option<usize>, _: DeviceId) -> Result<Vec<LowRankUpdate>> {
        Ok(Vec::new())
    }

    fn bounds(&self, role: Role, layer: Option<usize>) -> Option<ProductBounds> {
        self.bounds.get(&(role, layer?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_a_block_follow_one_another() {
        let patches = ImagePatches { rows: 2, cols: 4, values: &[] };
        assert_eq!(block_order(&patches, 2), [0, 1, 4, 5, 2, 3, 6, 7]);
        assert_eq!(block_order(&patches, 1), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
