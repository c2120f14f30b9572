//! Compiles nodes to dispatches: kernels, their bindings, and how many workgroups run. Done once per range of nodes; a run
//! only encodes the dispatches.

use std::sync::Arc;

use super::buffers::{BufferSpan, Constants};
use super::cost::{GroupRange, KernelCost};
use super::device::Device;
use super::inputs::InputBuffer;
use super::kernel_shapes::KernelShapes;
use super::kv_buffers::SequenceBuffers;
use super::matrices::MatrixStore;
use super::pipeline::{Pipeline, Pipelines, ShaderVariant};
use super::shader::Shader;
use super::split_kv::{SplitKv, SplitRule};
use super::values::ValueBuffers;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{Graph, Rows, ValueId};
use crate::ops::expert_groups::max_tiles;
use crate::precision::MIN_PROMPT_ROWS;

/// One kernel with its operands bound.
pub struct Dispatch {
    pub pipeline: Arc<Pipeline>,
    pub bind_group: wgpu::BindGroup,
    /// workgroups in the first two dimensions
    pub groups: [u32; 2],
    /// workgroups in the third dimension
    pub rows: RowGroups,
    /// which of these it runs
    pub range: GroupRange,
    pub cost: KernelCost,
}

/// Number of workgroups in the third dimension, as a function of the batch.
#[derive(Clone, Copy)]
pub enum RowGroups {
    /// one
    Once,
    /// one per this many rows
    Each(Rows, u32),
    /// attention: one per `rows` rows, each of which covers all chunks of positions; the kernel only runs for `min` to
    /// `max` rows of `batches`
    Whole { rows: u32, min: usize, max: usize, split: SplitRule, batches: Batches },
    /// split attention: one per row, with a workgroup per chunk in the second dimension; no row sees more than `max`
    Chunks { max: u32, split: SplitRule },
    /// the merge of split attention: one per row
    Merge { split: SplitRule },
    /// one per `each` rows; the kernel only runs for `min` to `max` rows of `batches`
    Between { rows: Rows, min: usize, max: usize, each: u32, batches: Batches },
    /// tiles of `each` expert slots (`n_used` per token), grouped by expert; the kernel only runs for `min` tokens or
    /// more of `batches`
    Tiles { min: usize, n_used: usize, n_experts: usize, each: u32, batches: Batches },
}

/// The batches that a kernel runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// all
    Any,
    /// many rows of one sequence
    Prompts,
    /// all but prompts
    Others,
}

impl Batches {
    fn include(self, batch: &Batch) -> bool {
        let is_prompt = batch.page_tables.len() == 1 && batch.n_rows() >= MIN_PROMPT_ROWS;
        match self {
            Self::Any => true,
            Self::Prompts => is_prompt,
            Self::Others => !is_prompt,
        }
    }
}

impl RowGroups {
    /// Rows per workgroup, where consecutive workgroups have consecutive rows. None: rows are distributed otherwise.
    fn rows_per_group(&self) -> Option<usize> {
        match self {
            Self::Once | Self::Each(..) | Self::Between { .. } | Self::Tiles { .. } => None,
            Self::Whole { rows, .. } => Some(*rows as usize),
            Self::Chunks { .. } | Self::Merge { .. } => Some(1),
        }
    }
}

impl Dispatch {
    /// Encodes the dispatch into a pass, unless it has nothing to do. `last` is the pipeline that the pass has set.
    pub fn encode<'a>(
        &'a self,
        pass: &mut wgpu::ComputePass,
        batch: &Batch,
        last: &mut Option<&'a Arc<Pipeline>>,
    ) {
        let [x, y, z] = self.workgroups(batch);
        if [x, y, z].iter().all(|n| *n > 0) {
            if last.replace(&self.pipeline).is_none_or(|last| !Arc::ptr_eq(last, &self.pipeline)) {
                pass.set_pipeline(&self.pipeline.compute);
            }
            pass.set_bind_group(0, &self.bind_group, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
    }

    /// The workgroups that run for a batch; may be none.
    pub fn workgroups(&self, batch: &Batch) -> [u32; 3] {
        let [x, y, all] = self.all_workgroups(batch);
        let (_, z) = self.range.of(all, || self.cost_of_groups(batch, all, (0, all)));
        [x, y, z]
    }

    /// As `workgroups`, before the range is applied.
    fn all_workgroups(&self, batch: &Batch) -> [u32; 3] {
        let [x, y] = self.groups;
        let n_rows = batch.n_rows() as u32;
        let [y, z] = match self.rows {
            RowGroups::Once => [y, 1],
            RowGroups::Each(rows, each) => [y, (batch.rows(rows) as u32).div_ceil(each)],
            RowGroups::Between { rows, min, max, each, batches } => match batch.rows(rows) {
                n if (min..=max).contains(&n) && batches.include(batch) => [y, (n as u32).div_ceil(each)],
                _ => [y, 0],
            },
            RowGroups::Tiles { min, n_used, n_experts, each, batches } => match batch.n_rows() {
                n if n >= min && batches.include(batch) => {
                    [y, max_tiles(n * n_used, n_experts, each as usize) as u32]
                }
                _ => [y, 0],
            },
            RowGroups::Whole { rows, min, max, split, batches } => match split.chunks(batch) {
                None if (min..=max).contains(&batch.n_rows()) && batches.include(batch) => {
                    [y, n_rows.div_ceil(rows)]
                }
                Some(_) | None => [y, 0],
            },
            RowGroups::Chunks { max, split } => [split.chunks(batch).unwrap_or(0).min(max), n_rows],
            RowGroups::Merge { split } => [y, split.chunks(batch).map_or(0, |_| n_rows)],
        };
        [x, y, z]
    }

    /// Cost for a batch, in the unit of `cost::MAX_SUBMISSION_COST`.
    pub fn cost_of(&self, batch: &Batch) -> u64 {
        let [x, y, all] = self.all_workgroups(batch);
        let (first, n) = self.range.of(all, || self.cost_of_groups(batch, all, (0, all)));
        match x == 0 || y == 0 || n == 0 {
            true => 0,
            false => self.cost_of_groups(batch, all, (first, n)),
        }
    }

    /// Cost of `n` workgroups of the third dimension from `first` on.
    fn cost_of_groups(&self, batch: &Batch, all: u32, (first, n): (u32, u32)) -> u64 {
        let n_rows = match self.rows {
            RowGroups::Each(rows, _) | RowGroups::Between { rows, .. } => batch.rows(rows),
            RowGroups::Once | RowGroups::Tiles { .. } => batch.n_rows(),
            RowGroups::Whole { .. } | RowGroups::Chunks { .. } | RowGroups::Merge { .. } => batch.n_rows(),
        };
        match self.rows.rows_per_group() {
            // rows are spread evenly over all workgroups
            None => self.cost.of(batch, (0, n_rows * n as usize / all.max(1) as usize), n.into()),
            Some(each) => {
                let first = (first as usize * each).min(n_rows);
                let rows = (first, (n as usize * each).min(n_rows - first));
                self.cost.of(batch, rows, n.into())
            }
        }
    }
}

/// The number of leading kernels that fit into one submission by their costs: at least one.
pub fn n_fitting(costs: impl Iterator<Item = u64>, max_cost: u64) -> usize {
    let mut total = 0;
    let fits = |cost: &u64| {
        let before = total;
        total += cost;
        before == 0 || total <= max_cost
    };
    costs.take_while(fits).count()
}

/// Compiles the nodes of one program to dispatches.
pub struct ProgramBuilder<'a> {
    pub gpu: &'a Arc<Device>,
    pub pipelines: &'a Pipelines,
    pub graph: &'a Graph,
    pub values: &'a ValueBuffers,
    pub inputs: &'a InputBuffer,
    pub sequences: &'a SequenceBuffers,
    pub shapes: &'a KernelShapes,
    pub split_kv: &'a SplitKv,
    pub matrices: &'a mut MatrixStore,
    pub uniforms: &'a mut Constants,
    pub vectors: &'a mut Constants,
    pub capacity: &'a Capacity,
    pub dispatches: Vec<Dispatch>,
    /// lists of slots grouped by expert, by route and rows of a tile
    pub grouped: Vec<((ValueId, u32), wgpu::Buffer)>,
}

/// What a kernel binds after the step and its parameters.
pub enum Binding {
    /// the per-row inputs
    Rows,
    Value(ValueId),
    Buffer(BufferSpan),
}

/// Lanes per workgroup of element-wise kernels.
pub const ELEMENT_LANES: usize = 64;

/// The workgroups of a dispatch and their cost.
#[derive(Clone, Copy)]
pub struct Extent {
    pub groups: [u32; 2],
    pub rows: RowGroups,
    pub range: GroupRange,
    pub cost: KernelCost,
}

impl Extent {
    /// One lane for each of `n` elements per row.
    pub fn elements(n: usize, rows: Rows) -> Self {
        Self::groups(n.div_ceil(ELEMENT_LANES), rows)
    }

    /// `n` workgroups per row.
    pub fn groups(n: usize, rows: Rows) -> Self {
        Self::new([n as u32, 1], RowGroups::Each(rows, 1))
    }

    /// `n` workgroups, independent of the batch.
    pub fn once(n: usize) -> Self {
        Self::new([n as u32, 1], RowGroups::Once)
    }

    /// An extent of negligible cost.
    pub fn new(groups: [u32; 2], rows: RowGroups) -> Self {
        Self { groups, rows, range: GroupRange::All, cost: KernelCost::default() }
    }
}

impl ProgramBuilder<'_> {
    /// Whether a kernel may bind `n_buffers` storage buffers.
    pub fn can_bind(&self, n_buffers: u32) -> bool {
        self.gpu.limits.max_storage_buffers_per_shader_stage >= n_buffers
    }

    /// Adds a dispatch of a kernel with its own parameters, word by word.
    pub fn add(
        &mut self,
        node: usize,
        (shader, variant): (&'static Shader, ShaderVariant),
        params: &[u32],
        bindings: &[Binding],
        extent: Extent,
    ) -> Result<(), KernelError> {
        let pipeline = self.pipelines.get(self.gpu, shader, variant)?;
        let params = self.uniforms.put(params)?;
        let mut spans = vec![self.inputs.step(), params];
        spans.extend(bindings.iter().map(|binding| match binding {
            Binding::Rows => self.inputs.rows(),
            Binding::Value(value) => BufferSpan::whole(self.values.buffer(*value)),
            Binding::Buffer(span) => span.clone(),
        }));
        let entries: Vec<wgpu::BindGroupEntry> = (0..)
            .zip(&spans)
            .map(|(binding, span)| wgpu::BindGroupEntry { binding, resource: span.binding() })
            .collect();
        let bind_group = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.graph.nodes()[node].name),
            layout: &pipeline.layout,
            entries: &entries,
        });
        let Extent { groups, rows, range, cost } = extent;
        self.dispatches.push(Dispatch { pipeline, bind_group, groups, rows, range, cost });
        Ok(())
    }

    /// As `add`, split into dispatches of some workgroups of the third dimension each where one dispatch would exceed the
    /// submission cost. There are at most `n_groups`, which cost up to `worst` together. The index of the first workgroup is
    /// appended to the kernel's parameters.
    pub fn add_split(
        &mut self,
        node: usize,
        (shader, variant): (&'static Shader, ShaderVariant),
        params: &[u32],
        bindings: &[Binding],
        (extent, n_groups, worst): (Extent, u32, u64),
    ) -> Result<(), KernelError> {
        for range in GroupRange::split(n_groups, worst, self.gpu.max_submission_cost) {
            let first = match range {
                GroupRange::All | GroupRange::Within(_) => 0,
                GroupRange::Slice { first, .. } => first,
            };
            let params = [params, &[first]].concat();
            self.add(node, (shader, variant.clone()), &params, bindings, Extent { range, ..extent })?;
        }
        Ok(())
    }

    /// Stores constant floats.
    pub fn vector(&mut self, floats: &[f32]) -> Result<Binding, KernelError> {
        Ok(Binding::Buffer(self.vector_span(floats)?))
    }

    /// As `vector`, for a range that several kernels bind.
    pub fn vector_span(&mut self, floats: &[f32]) -> Result<BufferSpan, KernelError> {
        let words: Vec<u32> = floats.iter().map(|x| x.to_bits()).collect();
        self.vectors.put(&words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_exceeds_the_bound_only_for_a_single_kernel() {
        for (costs, expected) in [
            (&[][..], 0),
            (&[0, 0, 0], 3),
            (&[50, 50, 1], 2),
            (&[0, 300, 0, 1], 2),
            (&[0, 100, 0, 1], 3),
            (&[1, 300], 1),
        ] {
            assert_eq!(n_fitting(costs.iter().copied(), 100), expected, "{costs:?}");
        }
    }
}
