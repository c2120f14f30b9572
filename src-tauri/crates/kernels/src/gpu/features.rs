//! Optional GPU features: requested when the device is opened, and passed to every shader as definitions. Shaders work
//! with each of them and without.

use super::shader::Define;
use crate::fault::GpuFault;
use crate::lane_reduction::LaneReduction;
use crate::matmul::cooperative::{LANES, SIDE};
use crate::matmul::partial_sums::PARTIAL_SUMS;
use crate::precision::Precision;

/// Options for opening a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// how lanes combine their results
    pub lane_reduction: LaneReduction,
    /// precision of matrix multiplications; a GPU that lacks it is not opened
    pub precision: Precision,
    /// largest buffer range bound to a kernel, in bytes; None: the GPU's limit
    pub max_binding_bytes: Option<u64>,
    /// cost limit of one submission; None: as `cost.rs` says
    pub max_submission_cost: Option<u64>,
}

impl GpuOptions {
    /// The features to request from `adapter`. Errors: what it lacks for the precision.
    pub(super) fn required_features(&self, adapter: &wgpu::Adapter) -> Result<wgpu::Features, &'static str> {
        let available = adapter.features();
        let mut wanted = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::PIPELINE_CACHE;
        let has_subgroups = self.lane_reduction == LaneReduction::Subgroups;
        wanted.set(wgpu::Features::SUBGROUP, has_subgroups);
        let (halves, matrices) = match self.precision {
            Precision::Auto => {
                let has_all = has_subgroups
                    && available.contains(wgpu::Features::SHADER_F16)
                    && has_cooperative_matrices(adapter);
                (has_all, has_all)
            }
            Precision::F32 => (false, false),
            Precision::F16 => (true, false),
            Precision::Matrices => (true, true),
        };
        if halves && !available.contains(wgpu::Features::SHADER_F16) {
            return Err("it has no half precision");
        }
        if matrices && !has_subgroups {
            return Err("cooperative matrices need subgroups, which give wrong results on it");
        }
        if matrices && !has_cooperative_matrices(adapter) {
            return Err("it has no cooperative matrices of 16 by 16 f16 elements on 32 lanes");
        }
        wanted.set(wgpu::Features::SHADER_F16, halves);
        wanted.set(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, matrices);
        Ok(wanted & available)
    }
}

/// Whether the GPU has the cooperative matrices of `matmul/cooperative.wgsl`: f16 into f32, 16 by 16, on 32 lanes.
fn has_cooperative_matrices(adapter: &wgpu::Adapter) -> bool {
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

/// The optional features that kernels use on one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuFeatures {
    /// reduction steps (distances 1, 2, 4 …) that stay within a subgroup of any size; 0: no subgroups
    pub shuffles: u32,
    /// half precision of all multiplications
    pub halves: bool,
    /// cooperative matrices, with half precision, for prompts
    pub matrices: bool,
}

impl GpuFeatures {
    /// The features in use on a GPU whose subgroups have at least `min_lanes` lanes.
    pub(super) fn new(features: wgpu::Features, min_lanes: u32) -> Self {
        let shuffles = match features.contains(wgpu::Features::SUBGROUP) {
            true => min_lanes.clamp(1, PARTIAL_SUMS).ilog2(),
            false => 0,
        };
        let matrices = features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
        Self { shuffles, halves: features.contains(wgpu::Features::SHADER_F16) && !matrices, matrices }
    }

    /// How lanes combine their results.
    pub fn lane_reduction(&self) -> LaneReduction {
        match self.shuffles {
            0 => LaneReduction::SharedMemory,
            _ => LaneReduction::Subgroups,
        }
    }

    /// What to blame first for wrong results of unknown cause: subgroups, where half precision (which overflows beyond
    /// 65,504) is not in use.
    pub(super) fn first_suspect(&self) -> GpuFault {
        match (self.precision(), self.lane_reduction()) {
            (Precision::Auto | Precision::F32, LaneReduction::Subgroups) => GpuFault::Subgroups,
            (Precision::Auto | Precision::F32, LaneReduction::SharedMemory) => GpuFault::Wrong,
            (Precision::F16 | Precision::Matrices, _) => GpuFault::Wrong,
        }
    }

    /// The precision of matrix multiplications.
    pub fn precision(&self) -> Precision {
        match (self.halves, self.matrices) {
            (_, true) => Precision::Matrices,
            (true, false) => Precision::F16,
            (false, false) => Precision::F32,
        }
    }

    /// Names for messages.
    pub fn names(&self) -> Vec<&'static str> {
        let names =
            [(self.shuffles > 0, "subgroups"), (self.halves, "f16"), (self.matrices, "cooperative matrices")];
        names.into_iter().filter(|(is_used, _)| *is_used).map(|(_, name)| name).collect()
    }

    /// Definitions for shaders: SUBGROUPS and the SHUFFLES they allow, PIECES where workgroup memory does the rest of a
    /// reduction, HALVES.
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
