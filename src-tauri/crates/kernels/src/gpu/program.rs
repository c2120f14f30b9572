//! From nodes to what a card is told: kernels, what is bound to them, and how many workgroups run. Made once for each
//! stretch of nodes; a step only goes through it.

use std::sync::Arc;

use super::buffers::{Constants, Span};
use super::cost::{Cost, Share};
use super::device::Device;
use super::inputs::Inputs;
use super::kept::Kept;
use super::matrices::Matrices;
use super::pipeline::{Pipeline, Variant};
use super::shader::Shader;
use super::shapes::Shapes;
use super::splits::{Split, Splits};
use super::values::Values;
use crate::error::KernelError;
use crate::graph::{Graph, Rows, ValueId};
use crate::ops::expert_groups::most_tiles;
use crate::plan::{Batch, Capacity};

/// One kernel with its operands.
pub struct Dispatch {
    pub pipeline: Arc<Pipeline>,
    pub bound: wgpu::BindGroup,
    /// workgroups in the first two dimensions
    pub groups: [u32; 2],
    pub rows: PerRow,
    /// of the third dimension, those that it runs
    pub share: Share,
    pub cost: Cost,
}

/// Workgroups in the third dimension.
#[derive(Clone, Copy)]
pub enum PerRow {
    /// one
    Once,
    /// one for so many rows
    Each(Rows, u32),
    /// attention: one for `rows` rows that go through all chunks of positions
    Whole { rows: u32, split: Split },
    /// the same where each chunk has workgroups of its own, in the second dimension: no row sees more than `most`
    Chunks { most: u32, split: Split },
    /// what merges those
    Merge { split: Split },
    /// one for so many rows, and the kernel only runs where rows are from `least` to `most`
    Between { rows: Rows, least: usize, most: usize, each: u32 },
    /// of a kernel that only runs where there are `least` tokens: tiles of `each` of their slots, `n_used` of a token,
    /// which are shared out over experts
    Tiles { least: usize, n_used: usize, n_experts: usize, each: u32 },
}

impl Dispatch {
    /// Into a pass, unless it has nothing to do. `last`: the kernel that the pass was told of last.
    pub fn go<'a>(
        &'a self,
        pass: &mut wgpu::ComputePass,
        batch: &Batch,
        last: &mut Option<&'a Arc<Pipeline>>,
    ) {
        let [x, y, z] = self.of(batch);
        if [x, y, z].iter().all(|n| *n > 0) {
            if last.replace(&self.pipeline).is_none_or(|last| !Arc::ptr_eq(last, &self.pipeline)) {
                pass.set_pipeline(&self.pipeline.compute);
            }
            pass.set_bind_group(0, &self.bound, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
    }

    /// Its workgroups for a batch, which may be none.
    pub fn of(&self, batch: &Batch) -> [u32; 3] {
        let [x, y, all] = self.whole(batch);
        let (_, z) = self.share.of(all, || self.cost_of_groups(batch, all, (0, all)));
        [x, y, z]
    }

    /// The same, were it to run them all.
    fn whole(&self, batch: &Batch) -> [u32; 3] {
        let [x, y] = self.groups;
        let n_rows = batch.n_rows() as u32;
        let [y, z] = match self.rows {
            PerRow::Once => [y, 1],
            PerRow::Each(rows, each) => [y, (batch.rows(rows) as u32).div_ceil(each)],
            PerRow::Between { rows, least, most, each } => match batch.rows(rows) {
                n if (least..=most).contains(&n) => [y, (n as u32).div_ceil(each)],
                _ => [y, 0],
            },
            PerRow::Tiles { least, n_used, n_experts, each } => match batch.n_rows() {
                n if n >= least => [y, most_tiles(n * n_used, n_experts, each as usize) as u32],
                _ => [y, 0],
            },
            PerRow::Whole { rows, split } => match split.chunks(batch) {
                Some(_) => [y, 0],
                None => [y, n_rows.div_ceil(rows)],
            },
            PerRow::Chunks { most, split } => [split.chunks(batch).unwrap_or(0).min(most), n_rows],
            PerRow::Merge { split } => [y, split.chunks(batch).map_or(0, |_| n_rows)],
        };
        [x, y, z]
    }

    /// Cost in a batch, as `cost::SUBMITTED` counts.
    pub fn cost_of(&self, batch: &Batch) -> u64 {
        let [x, y, all] = self.whole(batch);
        let (first, n) = self.share.of(all, || self.cost_of_groups(batch, all, (0, all)));
        match x == 0 || y == 0 || n == 0 {
            true => 0,
            false => self.cost_of_groups(batch, all, (first, n)),
        }
    }

    /// Of `n` workgroups of the third dimension from `first` on.
    fn cost_of_groups(&self, batch: &Batch, all: u32, (first, n): (u32, u32)) -> u64 {
        let n_rows = match self.rows {
            PerRow::Each(rows, _) | PerRow::Between { rows, .. } => batch.rows(rows),
            PerRow::Once | PerRow::Tiles { .. } => batch.n_rows(),
            PerRow::Whole { .. } | PerRow::Chunks { .. } | PerRow::Merge { .. } => batch.n_rows(),
        };
        match self.rows.rows_of_group() {
            // rows are shared out over all of them
            None => self.cost.of(batch, (0, n_rows * n as usize / all.max(1) as usize), n.into()),
            Some(each) => {
                let first = (first as usize * each).min(n_rows);
                let rows = (first, (n as usize * each).min(n_rows - first));
                self.cost.of(batch, rows, n.into())
            }
        }
    }
}

/// How many of the next kernels go together, by what they cost: at least one.
pub fn fitting(costs: impl Iterator<Item = u64>, most: u64) -> usize {
    let mut all = 0;
    let fits = |cost: &u64| {
        let before = all;
        all += cost;
        before == 0 || all <= most
    };
    costs.take_while(fits).count()
}

/// What nodes become dispatches with.
pub struct Maker<'a> {
    pub gpu: &'a Arc<Device>,
    pub graph: &'a Graph,
    pub values: &'a Values,
    pub inputs: &'a Inputs,
    pub kept: &'a Kept,
    pub shapes: &'a Shapes,
    pub splits: &'a Splits,
    pub matrices: &'a mut Matrices,
    pub uniforms: &'a mut Constants,
    pub vectors: &'a mut Constants,
    pub capacity: &'a Capacity,
    pub made: Vec<Dispatch>,
    /// the route whose slots were last grouped by expert, and the lists of them
    pub grouped: Option<(ValueId, wgpu::Buffer)>,
}

/// What is bound after the step and the parameters.
pub enum Bound {
    Rows,
    Value(ValueId),
    Buffer(Span),
}

/// Lanes of the kernels that go element by element.
pub const LANES: usize = 64;

/// Where and how often a kernel runs.
#[derive(Clone, Copy)]
pub struct Extent {
    pub groups: [u32; 2],
    pub rows: PerRow,
    pub share: Share,
    pub cost: Cost,
}

impl Extent {
    /// A lane for each of `n` elements of each row.
    pub fn elements(n: usize, rows: Rows) -> Self {
        Self::groups(n.div_ceil(LANES), rows)
    }

    /// So many workgroups for each row.
    pub fn groups(n: usize, rows: Rows) -> Self {
        Self::new([n as u32, 1], PerRow::Each(rows, 1))
    }

    /// So many workgroups, whatever the rows.
    pub fn once(n: usize) -> Self {
        Self::new([n as u32, 1], PerRow::Once)
    }

    /// That costs nothing to speak of.
    pub fn new(groups: [u32; 2], rows: PerRow) -> Self {
        Self { groups, rows, share: Share::All, cost: Cost::default() }
    }
}

impl Maker<'_> {
    /// Whether a kernel may be given so many buffers beside its parameters.
    pub fn takes(&self, n_buffers: u32) -> bool {
        self.gpu.limits.max_storage_buffers_per_shader_stage >= n_buffers
    }

    /// Adds a kernel. `params` are its own, word by word.
    pub fn add(
        &mut self,
        node: usize,
        (shader, variant): (&'static Shader, Variant),
        params: &[u32],
        bound: &[Bound],
        extent: Extent,
    ) -> Result<(), KernelError> {
        let pipeline = self.gpu.pipeline(shader, variant)?;
        let params = self.uniforms.put(params)?;
        let mut spans = vec![self.inputs.step(), params];
        spans.extend(bound.iter().map(|bound| match bound {
            Bound::Rows => self.inputs.rows(),
            Bound::Value(value) => Span::whole(self.values.buffer(*value)),
            Bound::Buffer(span) => span.clone(),
        }));
        let entries: Vec<wgpu::BindGroupEntry> = (0..)
            .zip(&spans)
            .map(|(binding, span)| wgpu::BindGroupEntry { binding, resource: span.binding() })
            .collect();
        let bound = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.graph.nodes()[node].name),
            layout: &pipeline.layout,
            entries: &entries,
        });
        let Extent { groups, rows, share, cost } = extent;
        self.made.push(Dispatch { pipeline, bound, groups, rows, share, cost });
        Ok(())
    }

    /// The same, cut into several that each have some workgroups of the third dimension, where all of them would be too
    /// long: `n_groups` at most, which cost up to `worst` together. The last of the kernel's own words is the first of
    /// its workgroups.
    pub fn add_in_parts(
        &mut self,
        node: usize,
        (shader, variant): (&'static Shader, Variant),
        params: &[u32],
        bound: &[Bound],
        (extent, n_groups, worst): (Extent, u32, u64),
    ) -> Result<(), KernelError> {
        for share in Share::cut(n_groups, worst, self.gpu.most_submitted) {
            let first = match share {
                Share::All | Share::Within(_) => 0,
                Share::Part { first, .. } => first,
            };
            let params = [params, &[first]].concat();
            self.add(node, (shader, variant.clone()), &params, bound, Extent { share, ..extent })?;
        }
        Ok(())
    }

    /// Floats that never change.
    pub fn vector(&mut self, floats: &[f32]) -> Result<Bound, KernelError> {
        let words: Vec<u32> = floats.iter().map(|x| x.to_bits()).collect();
        Ok(Bound::Buffer(self.vectors.put(&words)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_submission_is_long_but_for_a_single_kernel() {
        for (costs, expected) in [
            (&[][..], 0),
            (&[0, 0, 0], 3),
            (&[50, 50, 1], 2),
            (&[0, 300, 0, 1], 2),
            (&[0, 100, 0, 1], 3),
            (&[1, 300], 1),
        ] {
            assert_eq!(fitting(costs.iter().copied(), 100), expected, "{costs:?}");
        }
    }
}
