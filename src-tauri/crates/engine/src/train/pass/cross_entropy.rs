//! Cross-entropy of one row of logits: −ln softmax(logits)[target], and its gradient.

use kernels::cpu::isa::BaselineMac;
use kernels::ops::dot::{LANES, sum_lanes};
use kernels::ops::exp::exp;

/// Returns the loss and overwrites the logits (n) by its gradient times `scale`: scale · (softmax − one-hot).
pub(super) fn cross_entropy(logits: &mut [f32], target: usize, scale: f32) -> f64 {
    let mut max = f32::NEG_INFINITY;
    for x in logits.iter() {
        max = if *x > max { *x } else { max };
    }
    let wanted = logits[target];
    // Lanes are emptied into a double, so that a large vocabulary adds no error.
    let mut sum = 0.0f64;
    for chunk in logits.chunks_mut(64 * LANES) {
        let mut lanes = [0.0f32; LANES];
        for part in chunk.chunks_mut(LANES) {
            for (x, lane) in part.iter_mut().zip(&mut lanes) {
                *x = exp::<BaselineMac>(*x - max);
                *lane += *x;
            }
        }
        sum += f64::from(sum_lanes(lanes));
    }
    let factor = (f64::from(scale) / sum) as f32;
    for x in logits.iter_mut() {
        *x *= factor;
    }
    logits[target] -= scale;
    sum.ln() + f64::from(max) - f64::from(wanted)
}

#[cfg(test)]
mod tests {
    use super::cross_entropy;

    #[test]
    fn equals_the_logarithm_of_a_softmax_and_its_slope() {
        let logits: Vec<f32> = (0..1500).map(|i| ((i * 37 % 101) as f32 - 50.0) / 9.0).collect();
        let loss = |logits: &[f32]| {
            let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
            sum.ln() - f64::from(logits[7])
        };
        let mut gradient = logits.clone();
        let found = cross_entropy(&mut gradient, 7, 0.5);
        assert!((found - loss(&logits)).abs() < 1e-6, "{found}");
        let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
        for (i, x) in logits.iter().enumerate() {
            let want = 0.5 * (f64::from(*x).exp() / sum - f64::from(u8::from(i == 7)));
            assert!((f64::from(gradient[i]) - want).abs() < 1e-7, "{i}");
        }
    }
}
