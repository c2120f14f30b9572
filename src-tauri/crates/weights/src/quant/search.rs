//! Search for scales that minimize the squared error of a group of values.
//!
//! Candidates around the obvious scale are each improved by least squares for their own rounding; the best one is kept. One
//! pass over the values evaluates a candidate.

/// Candidates on each side of the obvious scale.
const CANDIDATES: i32 = 6;
/// Rounds of least squares for each candidate (with a second the error would fall by another 0.3 %), and for the best
/// of them.
const ROUNDS: usize = 1;
const LAST_ROUNDS: usize = 3;

/// The integers that a format can store under a scale.
pub trait QuantGrid: Copy {
    /// The largest magnitude, which is on the negative side.
    const END: f32;
    /// Distance between candidates.
    const SPACING: f32;

    /// The storable number nearest to `x`.
    fn nearest(x: f32) -> f32;
}

/// Whole numbers from −N to N − 1.
#[derive(Clone, Copy)]
pub struct SignedRange<const N: i32>;

impl<const N: i32> QuantGrid for SignedRange<N> {
    const END: f32 = N as f32;
    const SPACING: f32 = 0.2;

    #[inline]
    fn nearest(x: f32) -> f32 {
        round(x, -N as f32, (N - 1) as f32)
    }
}

/// The integer nearest to `x` within `low..=high`, ties to even; NaN stays NaN. Adding 1.5 · 2²³ removes the fraction: two
/// additions, since not every x86-64 CPU has a rounding instruction.
#[inline]
pub fn round(x: f32, low: f32, high: f32) -> f32 {
    const NO_FRACTION: f32 = 12_582_912.0;
    x.clamp(low, high) + NO_FRACTION - NO_FRACTION
}

/// `1 / scale`, or 0 for 0.
#[inline]
pub fn inverse_of(scale: f32) -> f32 {
    if scale != 0.0 { 1.0 / scale } else { 0.0 }
}

/// `value` rounded to half precision.
pub fn rounded(value: f32) -> f32 {
    half::f16::from_f32(value).to_f32()
}

/// Σ f(value) of several functions at once, in four partial sums each, so that the additions can be vectorized.
#[inline]
pub fn sums<const N: usize>(values: &[f32], f: impl Fn(f32) -> [f32; N]) -> [f32; N] {
    let (fours, rest) = values.as_chunks::<4>();
    let mut lanes = [[0f32; 4]; N];
    for four in fours {
        for (i, v) in four.iter().enumerate() {
            let terms = f(*v);
            for n in 0..N {
                lanes[n][i] += terms[n];
            }
        }
    }
    let mut sums = lanes.map(|l| l[0] + l[1] + (l[2] + l[3]));
    for v in rest {
        let terms = f(*v);
        for n in 0..N {
            sums[n] += terms[n];
        }
    }
    sums
}

/// Σ (value − scale · q)² for the best q.
pub fn squared_error<G: QuantGrid>(values: &[f32], scale: f32) -> f32 {
    let inverse = inverse_of(scale);
    sums(values, |v| [(v - scale * G::nearest(v * inverse)).powi(2)])[0]
}

/// The best scale for values ≈ scale · q. It may be negative: grids are asymmetric, and the sign decides which side gets
/// the larger magnitude.
pub fn fit_scale<G: QuantGrid>(values: &[f32]) -> f32 {
    let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return 0.0;
    }
    let mut best = BestScale { gain: 0.0, scale: 0.0 };
    for candidate in -CANDIDATES..=CANDIDATES {
        let scale = largest / (G::END + candidate as f32 * G::SPACING);
        best.refine::<G>(values, -scale, ROUNDS);
        best.refine::<G>(values, scale, ROUNDS);
    }
    best.refine::<G>(values, best.scale, LAST_ROUNDS);
    best.scale
}

/// The best scale so far. For fixed q the best scale is Σxq / Σqq, which reduces the squared error by (Σxq)² / Σqq.
struct BestScale {
    gain: f32,
    scale: f32,
}

impl BestScale {
    fn refine<G: QuantGrid>(&mut self, values: &[f32], mut scale: f32, rounds: usize) {
        for _ in 0..rounds {
            let inverse = inverse_of(scale);
            let [xq, qq] = sums(values, |v| {
                let q = G::nearest(v * inverse);
                [v * q, q * q]
            });
            if qq <= 0.0 {
                return;
            }
            scale = xq / qq;
            if xq * scale > self.gain {
                *self = Self { gain: xq * scale, scale };
            }
        }
    }
}

/// Step and offset: values ≈ step · q − offset, with 0 ≤ q ≤ `max` and step ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AffineFit {
    pub step: f32,
    pub offset: f32,
}

impl AffineFit {
    #[inline]
    pub fn quantise(self, value: f32, max: f32) -> f32 {
        round((value + self.offset) * inverse_of(self.step), 0.0, max)
    }

    /// Σ (value − (step · q − offset))² for the best q.
    pub fn squared_error(self, values: &[f32], max: f32) -> f32 {
        let inverse = inverse_of(self.step);
        let error = |v: f32| {
            let q = round((v + self.offset) * inverse, 0.0, max);
            v - (self.step * q - self.offset)
        };
        sums(values, |v| [error(v).powi(2)])[0]
    }
}

/// Which offsets a format can store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OffsetRange {
    Any,
    NonNegative,
}

/// Finds the best step and offset for `values`.
pub fn fit_affine(values: &[f32], max: f32, side: OffsetRange) -> AffineFit {
    let start = match side {
        OffsetRange::Any => f32::INFINITY,
        OffsetRange::NonNegative => 0.0,
    };
    let low = values.iter().fold(start, |m, &v| m.min(v));
    let high = values.iter().fold(low, |m, &v| m.max(v));
    if !(high > low && (high - low).is_finite()) {
        return AffineFit { step: 0.0, offset: if low.is_finite() { -low } else { 0.0 } };
    }
    let line = AffineProblem { values, max, low, side, x: sums(values, |v| [v - low])[0] };
    let obvious = |steps: f32| AffineFit { step: (high - low) / steps, offset: -low };
    let mut best = (f32::NEG_INFINITY, obvious(max));
    for candidate in -CANDIDATES..=CANDIDATES {
        // Between neighbouring candidates the ends move by less than half a step.
        line.refine(obvious(max + candidate as f32 * 0.4), ROUNDS, &mut best);
    }
    line.refine(best.1, LAST_ROUNDS, &mut best);
    best.1
}

/// Fixed inputs of the search for an [`AffineFit`]. Sums are over the values minus `low`, so that a large common offset
/// does not cancel the differences.
struct AffineProblem<'a> {
    values: &'a [f32],
    max: f32,
    low: f32,
    side: OffsetRange,
    /// Σ of the values minus `low`.
    x: f32,
}

impl AffineProblem<'_> {
    /// Repeats least squares for the q that `fit` gives. `best` holds the largest error reduction and its fit.
    fn refine(&self, mut fit: AffineFit, rounds: usize, best: &mut (f32, AffineFit)) {
        let (low, max, n) = (self.low, self.max, self.values.len() as f32);
        for _ in 0..rounds {
            let (inverse, shift) = (inverse_of(fit.step), fit.offset);
            let [q1, qq, xq] = sums(self.values, |v| {
                let q = round((v + shift) * inverse, 0.0, max);
                [q, q * q, (v - low) * q]
            });
            let determinant = n * qq - q1 * q1;
            if determinant <= 0.0 {
                return;
            }
            // values − low ≈ step · q + rise, with rise = −offset − low
            let mut step = (n * xq - self.x * q1) / determinant;
            let mut rise = (qq * self.x - q1 * xq) / determinant;
            if self.side == OffsetRange::NonNegative && rise > -low {
                rise = -low;
                step = ((xq + low * q1) / qq).max(0.0);
            }
            let gain =
                2.0 * (step * xq + rise * self.x - step * rise * q1) - step * step * qq - n * rise * rise;
            fit = AffineFit { step, offset: -(rise + low) };
            if gain > best.0 {
                *best = (gain, fit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_grids_are_found() {
        let values: Vec<f32> = (-8..8).map(|q| q as f32 * 0.25).collect();
        assert_eq!(fit_scale::<SignedRange<8>>(&values), 0.25);
        let mirrored: Vec<f32> = values.iter().map(|v| -v).collect();
        assert_eq!(fit_scale::<SignedRange<8>>(&mirrored), -0.25);
        let values: Vec<f32> = (0..16).map(|q| q as f32 * 0.5 - 2.0).collect();
        assert_eq!(fit_affine(&values, 15.0, OffsetRange::NonNegative), AffineFit { step: 0.5, offset: 2.0 });
    }

    #[test]
    fn rounding_is_to_the_nearest_even() {
        for i in -400..400 {
            let x = i as f32 * 0.05;
            assert_eq!(round(x, -16.0, 15.0), x.round_ties_even().clamp(-16.0, 15.0), "{x}");
        }
        assert_eq!(round(f32::INFINITY, -16.0, 15.0), 15.0);
        assert!(round(f32::NAN, -16.0, 15.0).is_nan());
    }

    #[test]
    fn an_offset_may_be_anything_or_not_negative() {
        let values: Vec<f32> = (0..16).map(|q| q as f32 * 0.5 + 2.0).collect();
        assert_eq!(fit_affine(&values, 15.0, OffsetRange::Any), AffineFit { step: 0.5, offset: -2.0 });
        let fit = fit_affine(&values, 15.0, OffsetRange::NonNegative);
        assert!(fit.offset >= 0.0 && fit.step > 0.0);
    }

    #[test]
    fn a_large_common_part_does_not_drown_the_differences() {
        let values: Vec<f32> = (0..32).map(|i| -100.0 + ((i * 7) % 32) as f32 / 64.0).collect();
        let fit = fit_affine(&values, 15.0, OffsetRange::NonNegative);
        assert!(fit.squared_error(&values, 15.0) < 32.0 * 1e-3 * 1e-1, "{fit:?}");
    }
}
