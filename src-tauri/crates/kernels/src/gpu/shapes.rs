//! Shapes that kernels may have on a card: of workgroups, of tiles, of how attention is cut. All of them give the same
//! bits, so that they may change from one start to the next.

use std::collections::BTreeMap;

use weights::DType;

use super::device::Device;
use crate::graph::{Graph, Op};
use crate::known::Known;
use crate::matmul::gpu_packing::{Packing, packing};
use crate::matmul::partial_sums::{ONE_ROW, ReductionLanes};
use crate::matmul::tile::{LARGE, MatMulTile, SMALL, SQUARE};

/// What a shape is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// products of one row with weights of a format
    OneRow(DType),
    /// products of many
    ManyRows(DType),
    /// attention of a few rows over a long context
    Attention,
}

/// Of each, the first is taken where nothing is known.
pub(super) static ONE_ROWS: [(&str, ReductionLanes); 3] = [
    ("64 lanes", ONE_ROW),
    ("128 lanes", ReductionLanes { lanes: 128, ..ONE_ROW }),
    ("256 lanes", ReductionLanes { lanes: 256, ..ONE_ROW }),
];
pub(super) static TILES: [(&str, MatMulTile); 3] =
    [("128 by 64", LARGE), ("64 by 64", SQUARE), ("64 by 32", SMALL)];
/// Chunks of a context from which on each has workgroups of its own.
pub(super) static SPLITS: [(&str, u32); 3] =
    [("from 2 chunks", 2), ("from 4 chunks", 4), ("from 8 chunks", 8)];

impl Subject {
    /// All that a graph has use for, formats that lie alike once.
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

    /// TileMethod which what is chosen is kept.
    pub fn name(self) -> String {
        match self {
            Self::OneRow(dtype) => of_one_row(packing(dtype)),
            Self::ManyRows(dtype) => of_many_rows(packing(dtype)),
            Self::Attention => ATTENTION.to_owned(),
        }
    }

    /// The names of what there is to choose from.
    pub fn choices(self) -> [&'static str; 3] {
        match self {
            Self::OneRow(_) => ONE_ROWS.each_ref().map(|(name, _)| *name),
            Self::ManyRows(_) => TILES.each_ref().map(|(name, _)| *name),
            Self::Attention => SPLITS.each_ref().map(|(name, _)| *name),
        }
    }

    /// Whether a card can have it.
    pub fn fits(self, choice: usize, limits: &wgpu::Limits) -> bool {
        let most = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
        match self {
            Self::OneRow(_) => ONE_ROWS[choice].1.lanes <= most,
            Self::ManyRows(_) => {
                let tile = TILES[choice].1;
                tile.lanes() <= most && tile.shared_bytes() <= limits.max_compute_workgroup_storage_size
            }
            Self::Attention => true,
        }
    }
}

const ATTENTION: &str = "attention of few rows";

fn of_one_row(packing: &Packing) -> String {
    format!("product of one row of {}", packing.name)
}

fn of_many_rows(packing: &Packing) -> String {
    format!("product of many rows of {}", packing.name)
}

/// Those in use: of each subject the number of its choice.
#[derive(Clone, Default)]
pub(super) struct Shapes(BTreeMap<String, usize>);

impl Shapes {
    /// As they were found to be the fastest; a name that nobody knows any more counts for nothing.
    pub fn known(device: &Device, known: &Known, graph: &Graph) -> Self {
        let of = |subject: Subject| {
            let found = known.tuned.get(&subject.name())?;
            let choice = subject.choices().iter().position(|name| name == found)?;
            subject.fits(choice, &device.limits).then(|| (subject.name(), choice))
        };
        Self(Subject::of(graph).into_iter().filter_map(of).collect())
    }

    /// One that is tried.
    pub fn only(subject: Subject, choice: usize) -> Self {
        Self([(subject.name(), choice)].into())
    }

    fn at(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn one_row(&self, packing: &Packing) -> ReductionLanes {
        ONE_ROWS[self.at(&of_one_row(packing))].1
    }

    pub fn tile(&self, packing: &Packing) -> MatMulTile {
        TILES[self.at(&of_many_rows(packing))].1
    }

    pub fn split_from(&self) -> u32 {
        SPLITS[self.at(ATTENTION)].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_told_apart() {
        for subject in [Subject::OneRow(DType::Q8_0), Subject::ManyRows(DType::Q8_0), Subject::Attention] {
            let choices = subject.choices();
            assert!((1..3).all(|i| !choices[..i].contains(&choices[i])), "{choices:?}");
        }
        let differ = |i: usize, j: usize| {
            ONE_ROWS[i].1 != ONE_ROWS[j].1 && TILES[i].1 != TILES[j].1 && SPLITS[i].1 != SPLITS[j].1
        };
        assert!(differ(0, 1) && differ(0, 2) && differ(1, 2));
        let shapes = Shapes::only(Subject::ManyRows(DType::Q4_K), 2);
        assert_eq!((shapes.tile(packing(DType::Q4_K)), shapes.split_from()), (SMALL, 2));
        assert_eq!(shapes.one_row(packing(DType::Q4_K)), ONE_ROW);
    }
}
