//! Encoding of 256-blocks whose groups have a small signed scale under one half-precision factor:
//! value ≈ (d · scale) · q, with q from a grid.

use std::marker::PhantomData;

use super::K_LEN;
use super::search::{QuantGrid, fit_scale, inverse_of, rounded, squared_error, sums};

/// Rounds of improvement after the first fit.
const ROUNDS: usize = 2;

/// All parameters of a block except the q, which follow from them.
pub struct SignedGroupFit<G, const GROUPS: usize> {
    pub d: f32,
    /// Integers within −`end`..`end`.
    pub scales: [f32; GROUPS],
    end: f32,
    grid: PhantomData<G>,
}

impl<G: QuantGrid, const GROUPS: usize> Clone for SignedGroupFit<G, GROUPS> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<G: QuantGrid, const GROUPS: usize> Copy for SignedGroupFit<G, GROUPS> {}

impl<G: QuantGrid, const GROUPS: usize> SignedGroupFit<G, GROUPS> {
    const GROUP_LEN: usize = K_LEN / GROUPS;

    /// Finds the best fit for `values`, with scales within −`end`..`end`.
    pub fn find(values: &[f32; K_LEN], end: f32) -> Self {
        let mut steps = [0f32; GROUPS];
        for (step, values) in steps.iter_mut().zip(values.chunks_exact(Self::GROUP_LEN)) {
            *step = fit_scale::<G>(values);
        }
        let mut choice = Self::from_steps(&steps, end);
        let mut best = (choice.squared_error(values), choice);
        for _ in 0..ROUNDS {
            choice.improve_groups(values);
            choice.improve_factor(values);
            let error = choice.squared_error(values);
            if error < best.0 {
                best = (error, choice);
            }
        }
        best.1
    }

    /// The grid number for a value of a group.
    #[inline]
    pub fn quantise(&self, value: f32, group: usize) -> f32 {
        G::nearest(value * inverse_of(self.d * self.scales[group]))
    }

    /// The group with the largest step gets −`end`, so that the whole range is used.
    fn from_steps(steps: &[f32; GROUPS], end: f32) -> Self {
        let largest = steps.iter().fold(0f32, |m, s| if s.abs() > m.abs() { *s } else { m });
        let d = rounded(largest / -end);
        let scale = |s: f32| (s * inverse_of(d)).round().clamp(-end, end - 1.0);
        Self { d, scales: steps.map(scale), end, grid: PhantomData }
    }

    fn squared_error(&self, values: &[f32; K_LEN]) -> f32 {
        let groups = values.chunks_exact(Self::GROUP_LEN).zip(&self.scales);
        groups.map(|(values, scale)| squared_error::<G>(values, self.d * scale)).sum()
    }

    /// Changes each group's scale by one if that is better.
    fn improve_groups(&mut self, values: &[f32; K_LEN]) {
        for (values, scale) in values.chunks_exact(Self::GROUP_LEN).zip(&mut self.scales) {
            let mut best = (squared_error::<G>(values, self.d * *scale), *scale);
            for candidate in [*scale - 1.0, *scale + 1.0] {
                let candidate = candidate.clamp(-self.end, self.end - 1.0);
                let error = squared_error::<G>(values, self.d * candidate);
                if error < best.0 {
                    best = (error, candidate);
                }
            }
            *scale = best.1;
        }
    }

    /// Least squares for the factor with all scales fixed.
    fn improve_factor(&mut self, values: &[f32; K_LEN]) {
        let (mut xa, mut aa) = (0f32, 0f32);
        for (values, scale) in values.chunks_exact(Self::GROUP_LEN).zip(&self.scales) {
            let inverse = inverse_of(self.d * scale);
            let [group_xa, group_aa] = sums(values, |v| {
                let a = scale * G::nearest(v * inverse);
                [v * a, a * a]
            });
            xa += group_xa;
            aa += group_aa;
        }
        if aa > 0.0 {
            self.d = rounded(xa / aa);
        }
    }
}
