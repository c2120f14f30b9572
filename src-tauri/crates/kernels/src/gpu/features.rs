//! What of a card's features kernels use: asked for when it is opened, and told to every shader by name, which has
//! a way with each and one without.

use super::shader::Define;
use crate::fault::GpuFault;
use crate::matmul::cooperative::{LANES, SIDE};
use crate::matmul::partial_sums::PARTIAL_SUMS;
use crate::precision::Precision;
use crate::sharing::Sharing;

/// What kernels may use, where a card has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    pub sharing: Sharing,
    /// of products: a card that hasn't what is asked for here is not opened
    pub precision: Precision,
    /// the largest piece of memory that a kernel is given; None: what the card allows
    pub piece_bytes: Option<u64>,
    /// the most of a submission, as `cost::SUBMITTED` counts; None: that
    pub submitted: Option<u64>,
}

impl Uses {
    /// What to ask a card for. Errors: what of the precision it hasn't.
    pub(super) fn wanted(&self, adapter: &wgpu::Adapter) -> Result<wgpu::Features, &'static str> {
        let here = adapter.features();
        let mut wanted = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::PIPELINE_CACHE;
        let has_subgroups = self.sharing == Sharing::Subgroups;
        wanted.set(wgpu::Features::SUBGROUP, has_subgroups);
        let (halves, matrices) = match self.precision.in_use() {
            Precision::Auto | Precision::F32 => (false, false),
            Precision::F16 => (true, false),
            Precision::Matrices => (true, true),
        };
        if halves && !here.contains(wgpu::Features::SHADER_F16) {
            return Err("it has no half precision");
        }
        if matrices && !has_subgroups {
            return Err("its subgroups, which cooperative matrices need, give wrong results");
        }
        if matrices && !has_matrices(adapter) {
            return Err("it has no cooperative matrices of 16 by 16 halves that 32 lanes hold");
        }
        wanted.set(wgpu::Features::SHADER_F16, halves);
        wanted.set(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, matrices);
        Ok(wanted & here)
    }
}

/// Whether a card has those that `matmul/cooperative.wgsl` is written for, of halves into floats, held by 32 lanes.
fn has_matrices(adapter: &wgpu::Adapter) -> bool {
    use wgpu::CooperativeScalarType::{F16, F32};
    let info = adapter.get_info();
    let fits = |m: &wgpu::CooperativeMatrixProperties| {
        [m.m_size, m.n_size, m.k_size] == [SIDE; 3] && (m.ab_type, m.cr_type) == (F16, F32)
    };
    let needed = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX | wgpu::Features::SUBGROUP;
    adapter.features().contains(needed)
        && [info.subgroup_min_size, info.subgroup_max_size] == [LANES; 2]
        && adapter.cooperative_matrix_properties().iter().any(fits)
}

/// What kernels use of one card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// steps of lanes at distance 1, 2, 4 … that stay within any of its subgroups; 0: it has none, or may not
    pub shuffles: u32,
    pub halves: bool,
    pub matrices: bool,
}

impl Used {
    /// With `features`, on a card whose subgroups have `least` lanes or more.
    pub(super) fn new(features: wgpu::Features, least: u32) -> Self {
        let shuffles = match features.contains(wgpu::Features::SUBGROUP) {
            true => least.clamp(1, PARTIAL_SUMS).ilog2(),
            false => 0,
        };
        Self {
            shuffles,
            halves: features.contains(wgpu::Features::SHADER_F16),
            matrices: features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
        }
    }

    /// A card without subgroups shares by memory.
    pub fn sharing(&self) -> Sharing {
        match self.shuffles {
            0 => Sharing::Memory,
            _ => Sharing::Subgroups,
        }
    }

    /// What is to be done without first where a kernel is wrong, and nobody knows why: halves, which end at 65,504,
    /// then subgroups.
    pub(super) fn suspect(&self) -> GpuFault {
        match (self.precision(), self.sharing()) {
            (Precision::Auto | Precision::F32, Sharing::Subgroups) => GpuFault::Subgroups,
            (Precision::Auto | Precision::F32, Sharing::Memory) => GpuFault::Wrong,
            (Precision::F16 | Precision::Matrices, _) => GpuFault::Wrong,
        }
    }

    pub fn precision(&self) -> Precision {
        match (self.halves, self.matrices) {
            (false, _) => Precision::F32,
            (true, false) => Precision::F16,
            (true, true) => Precision::Matrices,
        }
    }

    /// TileMethod the names that people know them by.
    pub fn names(&self) -> Vec<&'static str> {
        let names =
            [(self.shuffles > 0, "subgroups"), (self.halves, "f16"), (self.matrices, "cooperative matrices")];
        names.into_iter().filter(|(is_used, _)| *is_used).map(|(_, name)| name).collect()
    }

    /// What shaders are told: SUBGROUPS and how many steps they can take with them, PIECES where memory has to do
    /// the rest, HALVES.
    pub(super) fn defines(&self) -> Vec<Define<'static>> {
        let all = [
            (true, ("PARTIAL_SUMS", Some(PARTIAL_SUMS))),
            (true, ("SHUFFLES", Some(self.shuffles))),
            (self.shuffles > 0, ("SUBGROUPS", None)),
            (self.shuffles < PARTIAL_SUMS.ilog2(), ("PIECES", None)),
            (self.halves, ("HALVES", None)),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, define)| define).collect()
    }
}
