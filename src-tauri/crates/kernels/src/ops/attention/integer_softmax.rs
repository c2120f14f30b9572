//! Softmax whose weights are integers, as the left operand of `integer_panel`.

use super::{CHUNK, Partial, softmax as in_floats};
use crate::cpu::isa::{Mac, levels};
use crate::ops::dot::{LANES, sum_lanes};
use crate::ops::integer_panel::MAX_B;

/// Largest integer of a weight.
const MAX_WEIGHT: f32 = 32_767.0;
/// Largest sum of a chunk's integers: times the largest value it fits into 32 bits. Rounding adds up to half a unit each.
const MAX_SUM: f32 = i32::MAX as f32 / MAX_B - CHUNK as f32;
/// 1.5 · 2^23: adding it rounds to the nearest integer in the low mantissa bits.
const ROUND: f32 = 12_582_912.0;

/// Integers q of weights: e^(score − max) ≈ q · unit.
#[derive(Clone, Copy, Debug)]
pub struct IntegerWeights {
    /// The largest score, and the sum of the integers times `unit`.
    pub partial: Partial,
    /// Weight of the integer 1: the smaller, the fewer scores come near the largest.
    pub unit: f32,
}

/// scores (a multiple of 16, at most `CHUNK`; -inf where hidden) → q. The scores are overwritten.
pub type IntegerSoftmax = fn(scores: &mut [f32], q: &mut [i16]) -> IntegerWeights;

#[inline(always)]
fn softmax<M: Mac>(scores: &mut [f32], q: &mut [i16]) -> IntegerWeights {
    let Partial { max, sum: exact } = in_floats::<M>(scores);
    let units = MAX_SUM / exact;
    let units = if units > MAX_WEIGHT { MAX_WEIGHT } else { units };
    let mut sum = [0.0; LANES];
    for (s, q) in scores.chunks_exact(LANES).zip(q.chunks_exact_mut(LANES)) {
        for i in 0..LANES {
            let rounded = M::mac(s[i], units, ROUND);
            q[i] = rounded.to_bits() as i16;
            // An undefined score makes the sum so.
            sum[i] += rounded - ROUND;
        }
    }
    let unit = 1.0 / units;
    IntegerWeights { partial: Partial { max, sum: sum_lanes(sum) * unit }, unit }
}

levels!(
    /// The kernel at each instruction-set level.
    pub INTEGER_SOFTMAX = softmax(scores: &mut [f32], q: &mut [i16]) -> IntegerWeights);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::IsaLevel;

    /// Checks all levels on scores that differ by up to `spread`.
    fn check(spread: f32, n_hidden: usize) {
        let mut scores: Vec<f32> =
            (0..CHUNK).map(|i| (i * 37 % CHUNK) as f32 / CHUNK as f32 * spread).collect();
        let shown = CHUNK - n_hidden;
        scores[shown..].fill(f32::NEG_INFINITY);
        let largest = scores.iter().copied().fold(f32::MIN, f32::max);
        let sum: f32 = scores.iter().map(|score| (score - largest).exp()).sum();
        for level in IsaLevel::present() {
            let mut q = vec![7i16; CHUNK];
            let found = INTEGER_SOFTMAX.at(level)(&mut scores.clone(), &mut q);
            assert_eq!(found.partial.max, largest, "{level}");
            for (score, q) in scores.iter().zip(&q) {
                let want = (score - largest).exp();
                assert!(
                    (f32::from(*q) * found.unit - want).abs() <= 0.51 * found.unit,
                    "{level}: {score} {q}"
                );
            }
            let total: i64 = q.iter().map(|q| i64::from(*q)).sum();
            assert!(total * MAX_B as i64 <= i64::from(i32::MAX), "{level}: {total}");
            assert!((found.partial.sum - total as f32 * found.unit).abs() < 1e-5 * sum, "{level}");
            assert!((found.partial.sum - sum).abs() < 1e-3 * sum, "{level}: {} {sum}", found.partial.sum);
        }
    }

    #[test]
    fn weights_are_within_half_a_unit_and_fit() {
        for spread in [0.0, 1.0, 20.0, 200.0] {
            check(spread, 0);
            check(spread, 100);
        }
    }

    #[test]
    fn an_undefined_score_leaves_no_sum() {
        let mut scores = [1.0; LANES];
        scores[3] = f32::NAN;
        for level in IsaLevel::present() {
            let found = INTEGER_SOFTMAX.at(level)(&mut scores.clone(), &mut [0; LANES]);
            assert!(found.partial.sum.is_nan(), "{level}");
        }
    }
}
