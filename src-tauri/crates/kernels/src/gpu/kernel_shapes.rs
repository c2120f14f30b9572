//! The kernel shapes to choose from on a GPU: workgroups, tiles, splitting of attention. All give the same bits, so that
//! the choice may change from one start to the next.

use std::collections::BTreeMap;

use weights::DType;

use super::device::{Device, max_lanes};
use crate::gpu_cache::GpuFacts;
use crate::graph::{Graph, Op};
use crate::matmul::gpu_packing::{Packing, packing};
use crate::matmul::partial_sums::{ONE_ROW, ONE_ROW_UNSTAGED, ReductionLanes};
use crate::matmul::tile::{LARGE, MatMulTile, SMALL, SQUARE};

/// A group of kernels whose shape is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TuningSubject {
    /// multiplication of one row with weights of a format
    OneRow(DType),
    /// multiplication of many rows
    ManyRows(DType),
    /// attention of a few rows over a long context
    Attention,
}

/// Shapes for one row by name. The first shape of each subject is the default.
pub(super) static ONE_ROWS: [(&str, ReductionLanes); 3] = [
    ("256 lanes that share x", ONE_ROW),
    ("128 lanes that share x", ReductionLanes { lanes: 128, ..ONE_ROW }),
    ("64 lanes", ONE_ROW_UNSTAGED),
];
/// Tiles for many rows by name.
pub(super) static TILES: [(&str, MatMulTile); 3] =
    [("128 by 64", LARGE), ("64 by 64", SQUARE), ("64 by 32", SMALL)];
/// Numbers of chunks from which on attention is split.
pub(super) static SPLITS: [(&str, u32); 3] =
    [("from 2 chunks", 2), ("from 4 chunks", 4), ("from 8 chunks", 8)];

impl TuningSubject {
    /// All subjects of a graph; formats with equal packing count as one.
    pub fn of(graph: &Graph) -> Vec<Self> {
        let mut subjects = vec![Self::Attention];
        let mut seen: Vec<&str> = Vec::new();
        for node in graph.nodes() {
            let Op::MatMul { weight, .. } = &node.op else { continue };
            let name = packing(weight.dtype()).name;
            if !seen.contains(&name) {
                seen.push(name);
                subjects.extend([Self::ManyRows(weight.dtype()), Self::OneRow(weight.dtype())]);
            }
        }
        let attends = graph.nodes().iter().any(|node| matches!(node.op, Op::Attention { .. }));
        subjects.retain(|subject| attends || *subject != Self::Attention);
        subjects
    }

    /// The name in the cache.
    pub fn name(self) -> String {
        match self {
            Self::OneRow(dtype) => one_row_name(packing(dtype)),
            Self::ManyRows(dtype) => many_rows_name(packing(dtype)),
            Self::Attention => ATTENTION.to_owned(),
        }
    }

    /// The names of the shapes.
    pub fn choices(self) -> [&'static str; 3] {
        match self {
            Self::OneRow(_) => ONE_ROWS.each_ref().map(|(name, _)| *name),
            Self::ManyRows(_) => TILES.each_ref().map(|(name, _)| *name),
            Self::Attention => SPLITS.each_ref().map(|(name, _)| *name),
        }
    }

    /// Whether a GPU with these limits supports a shape.
    pub fn fits(self, choice: usize, limits: &wgpu::Limits) -> bool {
        let max_lanes = max_lanes(limits);
        match self {
            Self::OneRow(_) => ONE_ROWS[choice].1.lanes <= max_lanes,
            Self::ManyRows(_) => {
                let tile = TILES[choice].1;
                tile.lanes() <= max_lanes && tile.shared_bytes() <= limits.max_compute_workgroup_storage_size
            }
            Self::Attention => true,
        }
    }
}

const ATTENTION: &str = "attention of few rows";

fn one_row_name(packing: &Packing) -> String {
    format!("product of one row of {}", packing.name)
}

fn many_rows_name(packing: &Packing) -> String {
    format!("product of many rows of {}", packing.name)
}

/// The shapes in use: by subject name, the index of the choice.
#[derive(Clone, Default)]
pub(super) struct KernelShapes(BTreeMap<String, usize>);

impl KernelShapes {
    /// The tuned shapes of a graph; unknown names in the cache are ignored.
    pub fn tuned(device: &Device, facts: &GpuFacts, graph: &Graph) -> Self {
        let of = |subject: TuningSubject| {
            let found = facts.tuned_shapes.get(&subject.name())?;
            let choice = subject.choices().iter().position(|name| name == found)?;
            subject.fits(choice, &device.limits).then(|| (subject.name(), choice))
        };
        Self(TuningSubject::of(graph).into_iter().filter_map(of).collect())
    }

    /// A single choice, to be measured.
    pub fn only(subject: TuningSubject, choice: usize) -> Self {
        Self([(subject.name(), choice)].into())
    }

    fn at(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The shape for one row.
    pub fn one_row(&self, packing: &Packing) -> ReductionLanes {
        ONE_ROWS[self.at(&one_row_name(packing))].1
    }

    /// The tile for many rows.
    pub fn tile(&self, packing: &Packing) -> MatMulTile {
        TILES[self.at(&many_rows_name(packing))].1
    }

    /// The number of chunks from which on attention is split.
    pub fn min_split_chunks(&self) -> u32 {
        SPLITS[self.at(ATTENTION)].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_distinct() {
        for subject in [
            TuningSubject::OneRow(DType::Q8_0),
            TuningSubject::ManyRows(DType::Q8_0),
            TuningSubject::Attention,
        ] {
            let choices = subject.choices();
            assert!((1..3).all(|i| !choices[..i].contains(&choices[i])), "{choices:?}");
        }
        let differ = |i: usize, j: usize| {
            ONE_ROWS[i].1 != ONE_ROWS[j].1 && TILES[i].1 != TILES[j].1 && SPLITS[i].1 != SPLITS[j].1
        };
        assert!(differ(0, 1) && differ(0, 2) && differ(1, 2));
        let shapes = KernelShapes::only(TuningSubject::ManyRows(DType::Q4_K), 2);
        assert_eq!((shapes.tile(packing(DType::Q4_K)), shapes.min_split_chunks()), (SMALL, 2));
        assert_eq!(shapes.one_row(packing(DType::Q4_K)), ONE_ROW);
    }
}
