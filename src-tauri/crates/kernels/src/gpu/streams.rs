//! Dispatches of operations on several residual streams in one row, and of the norm-like ones beside them.

use super::nodes::{BuildResult, norm_variant, plain};
use super::program::Binding::Value;
use super::program::{Extent, ProgramBuilder};
use super::shader;
use crate::graph::{MixFactors, ValueId};

impl ProgramBuilder<'_> {
    pub(super) fn mix(
        &mut self,
        i: usize,
        [base, x]: [ValueId; 2],
        factors: &MixFactors,
        width: usize,
        out: ValueId,
    ) -> BuildResult {
        let (stride, factors) = match factors {
            MixFactors::OfRow(factors) => (self.graph.value(*factors).width, Value(*factors)),
            MixFactors::Same(factors) => (0, self.vector(factors)?),
        };
        let words = [width, self.graph.value(x).width / width, stride].map(|n| n as u32);
        self.elements(i, (&shader::MIX, plain()), &words, [Value(base), Value(x), factors], out)
    }

    pub(super) fn match_rms(
        &mut self,
        i: usize,
        [x, of]: [ValueId; 2],
        least: f32,
        out: ValueId,
    ) -> BuildResult {
        let width = self.graph.value(of).width;
        let n_groups = self.graph.value(x).width / width;
        let params = [width as u32, n_groups as u32, least.to_bits()];
        let extent = Extent::groups(n_groups, self.graph.value(out).rows);
        let variant = norm_variant(&self.gpu.limits, width);
        self.add(i, (&shader::MATCH_RMS, variant), &params, &[Value(x), Value(of), Value(out)], extent)
    }

    pub(super) fn gaussian_top_k(
        &mut self,
        i: usize,
        x: ValueId,
        deviations: f32,
        out: ValueId,
    ) -> BuildResult {
        let width = self.graph.value(x).width;
        let params = [width as u32, deviations.to_bits()];
        let extent = Extent::groups(1, self.graph.value(out).rows);
        let variant = norm_variant(&self.gpu.limits, width);
        self.add(i, (&shader::GAUSSIAN_TOP_K, variant), &params, &[Value(x), Value(out)], extent)
    }
}
