//! Encoding of 256-blocks whose groups have a small scale and minimum under two half-precision factors:
//! value ≈ (d · scale) · q − (dmin · min).

use super::K_LEN;
use super::search::{AffineFit, OffsetRange, fit_affine, inverse_of, round, rounded, sums};

/// The largest numbers that a format can store.
#[derive(Clone, Copy)]
pub struct AffineLimits {
    pub q_max: f32,
    /// Maximum of scales and of minima.
    pub scale_max: f32,
}

impl AffineLimits {
    /// The integer that represents `value` under `factor`.
    fn number(self, value: f32, factor: f32) -> f32 {
        if factor > 0.0 { (value / factor).round().clamp(0.0, self.scale_max) } else { 0.0 }
    }
}

/// Rounds of improvement after the first fit; a third would gain 0.1 %.
const ROUNDS: usize = 2;

/// All parameters of a block except the q, which follow from them.
#[derive(Clone, Copy)]
pub struct AffineGroupFit<const GROUPS: usize> {
    pub d: f32,
    pub dmin: f32,
    /// Integers within 0..=`scale_max`.
    pub scales: [f32; GROUPS],
    pub mins: [f32; GROUPS],
    limits: AffineLimits,
}

impl<const GROUPS: usize> AffineGroupFit<GROUPS> {
    const GROUP_LEN: usize = K_LEN / GROUPS;

    /// Finds the best fit for `values`.
    pub fn find(values: &[f32; K_LEN], limits: AffineLimits) -> Self {
        let mut fits = [AffineFit::default(); GROUPS];
        for (fit, values) in fits.iter_mut().zip(values.chunks_exact(Self::GROUP_LEN)) {
            *fit = fit_affine(values, limits.q_max, OffsetRange::NonNegative);
        }
        let mut choice = Self::from_fits(&fits, limits);
        let mut best = (choice.squared_error(values), choice);
        for _ in 0..ROUNDS {
            choice.improve_groups(values);
            choice.improve_factors(values);
            let error = choice.squared_error(values);
            if error < best.0 {
                best = (error, choice);
            }
        }
        best.1
    }

    /// Step and offset of a group.
    pub fn group(&self, group: usize) -> AffineFit {
        AffineFit { step: self.d * self.scales[group], offset: self.dmin * self.mins[group] }
    }

    fn squared_error(&self, values: &[f32; K_LEN]) -> f32 {
        values
            .chunks_exact(Self::GROUP_LEN)
            .enumerate()
            .map(|(g, v)| self.group(g).squared_error(v, self.limits.q_max))
            .sum()
    }

    /// Factors that cover the largest step and offset, and the nearest integers for the others.
    fn from_fits(fits: &[AffineFit; GROUPS], limits: AffineLimits) -> Self {
        let largest = |f: fn(&AffineFit) -> f32| fits.iter().map(f).fold(0f32, f32::max);
        let (d, dmin) = (
            rounded(largest(|a| a.step) / limits.scale_max),
            rounded(largest(|a| a.offset) / limits.scale_max),
        );
        Self {
            d,
            dmin,
            scales: fits.map(|a| limits.number(a.step, d)),
            mins: fits.map(|a| limits.number(a.offset, dmin)),
            limits,
        }
    }

    /// Changes each group's scale and minimum by one if that is better.
    fn improve_groups(&mut self, values: &[f32; K_LEN]) {
        for (group, values) in values.chunks_exact(Self::GROUP_LEN).enumerate() {
            let (scale, min) = (self.scales[group], self.mins[group]);
            let mut best = (self.group(group).squared_error(values, self.limits.q_max), scale, min);
            for (s, m) in (-1..=1).flat_map(|s| (-1..=1).map(move |m| (s as f32, m as f32))) {
                let (s, m) = (
                    (scale + s).clamp(0.0, self.limits.scale_max),
                    (min + m).clamp(0.0, self.limits.scale_max),
                );
                let error = AffineFit { step: self.d * s, offset: self.dmin * m }
                    .squared_error(values, self.limits.q_max);
                if error < best.0 {
                    best = (error, s, m);
                }
            }
            (self.scales[group], self.mins[group]) = (best.1, best.2);
        }
    }

    /// Least squares for the two factors with all integers fixed.
    fn improve_factors(&mut self, values: &[f32; K_LEN]) {
        let (mut aa, mut ab, mut bb, mut xa, mut xb) = (0f32, 0f32, 0f32, 0f32, 0f32);
        for (group, values) in values.chunks_exact(Self::GROUP_LEN).enumerate() {
            let fit = self.group(group);
            let (scale, b) = (self.scales[group], -self.mins[group]);
            let inverse = inverse_of(fit.step);
            let [a, squares, x, products] = sums(values, |v| {
                let a = scale * round((v + fit.offset) * inverse, 0.0, self.limits.q_max);
                [a, a * a, v, v * a]
            });
            aa += squares;
            ab += a * b;
            bb += b * b * Self::GROUP_LEN as f32;
            xa += products;
            xb += x * b;
        }
        let determinant = aa * bb - ab * ab;
        let (d, dmin) = if determinant > 1e-6 * aa * bb {
            ((xa * bb - xb * ab) / determinant, (xb * aa - xa * ab) / determinant)
        } else if aa > 0.0 {
            (xa / aa, self.dmin)
        } else {
            return;
        };
        (self.d, self.dmin) = (rounded(d), rounded(dmin));
    }
}
