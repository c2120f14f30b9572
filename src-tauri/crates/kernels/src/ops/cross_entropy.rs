//! Cross-entropy of one row of logits: −ln softmax(logits)[target], and its gradient.

use super::dot::{LANES, sum_lanes};
use super::exp::exp;
use crate::cpu::isa::{Mac, levels};

/// Returns the loss and overwrites the logits (n) by its gradient times `scale`: scale · (softmax − one-hot).
pub type CrossEntropy = fn(logits: &mut [f32], target: usize, scale: f32) -> f64;

/// logits (n) → gradient; returns the loss
pub fn scalar(logits: &mut [f32], target: usize, scale: f32) -> f64 {
    let wanted = f64::from(logits[target]);
    let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
    for (i, x) in logits.iter_mut().enumerate() {
        let one = if i == target { 1.0 } else { 0.0 };
        *x = (f64::from(scale) * (f64::from(*x).exp() / sum - one)) as f32;
    }
    sum.ln() - wanted
}

#[inline(always)]
fn body<M: Mac>(logits: &mut [f32], target: usize, scale: f32) -> f64 {
    let max = largest(logits);
    let wanted = logits[target];
    // Lanes are emptied into a double, so that a large vocabulary adds no error.
    let mut sum = 0.0f64;
    for chunk in logits.chunks_mut(64 * LANES) {
        let mut lanes = [0.0f32; LANES];
        let mut parts = chunk.chunks_exact_mut(LANES);
        for part in &mut parts {
            for i in 0..LANES {
                part[i] = exp::<M>(part[i] - max);
                lanes[i] += part[i];
            }
        }
        for (x, lane) in parts.into_remainder().iter_mut().zip(&mut lanes) {
            *x = exp::<M>(*x - max);
            *lane += *x;
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

#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = x.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = if chunk[i] > lanes[i] { chunk[i] } else { lanes[i] };
        }
    }
    let all = lanes.iter().chain(tail);
    all.fold(f32::NEG_INFINITY, |max, x| if *x > max { *x } else { max })
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(logits: &mut [f32], target: usize, scale: f32) -> f64);
