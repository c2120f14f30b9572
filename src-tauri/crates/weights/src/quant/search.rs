//! Finding scales: the choices that make the squared error of a block small. Candidates around the obvious scale,
//! each improved by least squares for its own rounding, the best kept.

/// Numbers of candidates on each side of the obvious scale, and how far apart they lie (in steps of q).
const CANDIDATES: i32 = 10;
const SPACING: f32 = 0.125;

/// The whole number nearest to `x` within `low..=high`, a tie to the even one; NaN stays. Adding 1.5 · 2²³ leaves no
/// room for a fraction: two additions, where the processor of any x86-64 has no instruction for rounding.
#[inline]
pub fn round(x: f32, low: f32, high: f32) -> f32 {
    const NO_FRACTION: f32 = 12_582_912.0;
    x.clamp(low, high) + NO_FRACTION - NO_FRACTION
}

/// Σ f(value), as four sums side by side: a sum in order would be computed one by one.
#[inline]
pub fn sum(values: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (fours, rest) = values.as_chunks::<4>();
    let mut sums = [0f32; 4];
    for four in fours {
        for (sum, v) in sums.iter_mut().zip(four) {
            *sum += f(*v);
        }
    }
    rest.iter().fold(sums[0] + sums[1] + (sums[2] + sums[3]), |sum, v| sum + f(*v))
}

/// The scale (with the sign of `side` on the longer end) for values ≈ scale · q with −n ≤ q < n.
pub fn fit_scale(values: &[f32], n: i32, side: f32) -> f32 {
    let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return 0.0;
    }
    let mut best = (f32::INFINITY, 0.0);
    for candidate in -CANDIDATES..=CANDIDATES {
        let mut scale = -side * largest / (n as f32 + candidate as f32 * SPACING);
        // Rounding with the solved scale may differ; a second round has always sufficed.
        for _ in 0..2 {
            let error = squared_error(values, scale, n);
            if error < best.0 {
                best = (error, scale);
            }
            scale = solve_scale(values, scale, n);
        }
        let error = squared_error(values, scale, n);
        if error < best.0 {
            best = (error, scale);
        }
    }
    best.1
}

#[inline]
fn quantise(value: f32, inverse: f32, n: i32) -> f32 {
    round(value * inverse, -n as f32, (n - 1) as f32)
}

fn inverse_of(scale: f32) -> f32 {
    if scale != 0.0 { 1.0 / scale } else { 0.0 }
}

/// Σ (value − scale · q)² with the best q in −n..n.
pub fn squared_error(values: &[f32], scale: f32, n: i32) -> f32 {
    let inverse = inverse_of(scale);
    sum(values, |v| (v - scale * quantise(v, inverse, n)).powi(2))
}

/// The least-squares scale for the q that `scale` gives.
fn solve_scale(values: &[f32], scale: f32, n: i32) -> f32 {
    let inverse = inverse_of(scale);
    let xq = sum(values, |v| v * quantise(v, inverse, n));
    let qq = sum(values, |v| quantise(v, inverse, n).powi(2));
    if qq > 0.0 { xq / qq } else { scale }
}

/// A step and an offset: values ≈ step · q − offset, 0 ≤ q ≤ `max`, step ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Affine {
    pub step: f32,
    pub offset: f32,
}

impl Affine {
    #[inline]
    pub fn quantise(self, value: f32, max: f32) -> f32 {
        round((value + self.offset) * inverse_of(self.step), 0.0, max)
    }

    /// Σ (value − (step · q − offset))² with the best q.
    pub fn squared_error(self, values: &[f32], max: f32) -> f32 {
        let inverse = inverse_of(self.step);
        let error = |v: f32| {
            let q = round((v + self.offset) * inverse, 0.0, max);
            v - (self.step * q - self.offset)
        };
        sum(values, |v| error(v).powi(2))
    }

    /// Least squares for the q that this choice gives.
    fn solve(self, values: &[f32], max: f32, side: Offset) -> Self {
        let n = values.len() as f32;
        let inverse = inverse_of(self.step);
        let q_of = |v: f32| round((v + self.offset) * inverse, 0.0, max);
        let x = sum(values, |v| v);
        let q1 = sum(values, q_of);
        let qq = sum(values, |v| q_of(v).powi(2));
        let xq = sum(values, |v| v * q_of(v));
        let determinant = n * qq - q1 * q1;
        if determinant <= 0.0 {
            return self;
        }
        let solved =
            Self { step: (n * xq - x * q1) / determinant, offset: -(qq * x - q1 * xq) / determinant };
        match side {
            Offset::Any => solved,
            Offset::NotNegative if solved.offset >= 0.0 => solved,
            Offset::NotNegative if qq > 0.0 => Self { step: (xq / qq).max(0.0), offset: 0.0 },
            Offset::NotNegative => self,
        }
    }
}

/// Which offsets a format can write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offset {
    Any,
    NotNegative,
}

/// The best step and offset ≥ 0 found for `values`.
pub fn fit_affine(values: &[f32], max: f32) -> Affine {
    fit(values, max, Offset::NotNegative)
}

/// The best step and offset found for `values`.
pub fn fit_line(values: &[f32], max: f32) -> Affine {
    fit(values, max, Offset::Any)
}

fn fit(values: &[f32], max: f32, side: Offset) -> Affine {
    let start = match side {
        Offset::Any => f32::INFINITY,
        Offset::NotNegative => 0.0,
    };
    let low = values.iter().fold(start, |m, &v| m.min(v));
    let high = values.iter().fold(low, |m, &v| m.max(v));
    if !(high > low && (high - low).is_finite()) {
        return Affine { step: 0.0, offset: if low.is_finite() { -low } else { 0.0 } };
    }
    let mut best = (f32::INFINITY, Affine::default());
    for candidate in -CANDIDATES..=CANDIDATES {
        let step = (high - low) / (max + candidate as f32 * SPACING * 2.0);
        let mut fit = Affine { step, offset: -low };
        for _ in 0..3 {
            let error = fit.squared_error(values, max);
            if error < best.0 {
                best = (error, fit);
            }
            fit = fit.solve(values, max, side);
        }
        let error = fit.squared_error(values, max);
        if error < best.0 {
            best = (error, fit);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_grids_are_found() {
        let values: Vec<f32> = (-8..8).map(|q| q as f32 * 0.25).collect();
        assert_eq!(fit_scale(&values, 8, -1.0), 0.25);
        let values: Vec<f32> = (0..16).map(|q| q as f32 * 0.5 - 2.0).collect();
        assert_eq!(fit_affine(&values, 15.0), Affine { step: 0.5, offset: 2.0 });
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
    fn a_line_may_begin_above_zero() {
        let values: Vec<f32> = (0..16).map(|q| q as f32 * 0.5 + 2.0).collect();
        assert_eq!(fit_line(&values, 15.0), Affine { step: 0.5, offset: -2.0 });
    }

    #[test]
    fn an_offset_is_never_negative() {
        let fit = fit_affine(&[3.0, 4.0, 5.0, 6.0], 15.0);
        assert!(fit.offset == 0.0 && fit.step > 0.0);
    }
}
