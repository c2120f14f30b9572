//! AdamW (Loshchilov and Hutter, arXiv 1711.05101) and the learning rate of each step.

use serde::{Deserialize, Serialize};

use super::pass::Parameter;

/// Settings of the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdamW {
    /// Decay of the mean and of the mean square of the gradient.
    pub betas: [f64; 2],
    /// Added to the root of the mean square.
    pub eps: f64,
    /// Share of each number that is subtracted per step, times the learning rate.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01 }
    }
}

/// Means of the gradients so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Moments {
    /// Steps taken.
    pub n_steps: u64,
    /// Of the gradient, per parameter.
    pub mean: Vec<Parameter>,
    /// Of its square.
    pub square: Vec<Parameter>,
}

impl Moments {
    pub fn new(parameters: &[Parameter]) -> Self {
        let zeros = || parameters.iter().map(|p| vec![0.0; p.len()]).collect();
        Self { n_steps: 0, mean: zeros(), square: zeros() }
    }
}

impl AdamW {
    /// Changes the parameters by one step.
    pub(crate) fn step(
        &self,
        lr: f64,
        moments: &mut Moments,
        gradients: &[Parameter],
        parameters: &mut [Parameter],
    ) {
        let [b1, b2] = self.betas;
        moments.n_steps += 1;
        let n = moments.n_steps as f64;
        let (left1, left2) = (1.0 - b1.powf(n), (1.0 - b2.powf(n)).sqrt());
        let keep = (1.0 - lr * self.weight_decay) as f32;
        let (step, eps, left2) = ((lr / left1) as f32, self.eps as f32, left2 as f32);
        let (b1, b2, new1, new2) = (b1 as f32, b2 as f32, (1.0 - b1) as f32, (1.0 - b2) as f32);
        let both = moments.mean.iter_mut().zip(&mut moments.square);
        for ((parameter, gradient), (mean, square)) in parameters.iter_mut().zip(gradients).zip(both) {
            let numbers = parameter.iter_mut().zip(gradient).zip(mean.iter_mut().zip(square));
            for ((x, g), (m, v)) in numbers {
                *m = b1 * *m + new1 * g;
                *v = b2 * *v + new2 * g * g;
                *x = *x * keep - step * *m / (v.sqrt() / left2 + eps);
            }
        }
    }
}

/// Returns the length of all gradients together.
pub(crate) fn norm(gradients: &[Parameter]) -> f64 {
    let squares = gradients.iter().flatten().map(|g| f64::from(*g) * f64::from(*g));
    squares.sum::<f64>().sqrt()
}

/// Scales gradients down to a length of `limit`. Returns the length before.
pub(crate) fn clip(gradients: &mut [Parameter], limit: f64) -> f64 {
    let length = norm(gradients);
    if length > limit {
        let factor = (limit / length) as f32;
        gradients.iter_mut().flatten().for_each(|g| *g *= factor);
    }
    length
}

/// Rises in a line during the warm-up, then falls along a cosine to a tenth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LearningRate {
    /// After the warm-up.
    pub peak: f64,
    /// Steps of the warm-up.
    pub warmup: u64,
    /// Steps in all.
    pub total: u64,
}

/// Share of the peak at the end.
const LAST_SHARE: f64 = 0.1;

impl LearningRate {
    /// Returns the rate of a step, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        let length = self.total.saturating_sub(self.warmup).max(1);
        let done = ((step - self.warmup) as f64 / length as f64).min(1.0);
        let wave = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
        self.peak * (LAST_SHARE + (1.0 - LAST_SHARE) * wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps by hand with betas 0.5: m = g/2, v = g²/2, both divided by ½; then the same gradient again.
    #[test]
    fn steps_by_hand() {
        let adam = AdamW { betas: [0.5, 0.5], eps: 0.0, weight_decay: 0.1 };
        let mut parameters = vec![vec![1.0f32, -2.0]];
        let mut moments = Moments::new(&parameters);
        let gradients = vec![vec![3.0f32, -0.5]];
        adam.step(0.1, &mut moments, &gradients, &mut parameters);
        let close = |found: &[f32], want: [f32; 2]| {
            assert!(found.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {want:?}");
        };
        close(&parameters[0], [0.99 - 0.1, -1.98 + 0.1]);
        adam.step(0.1, &mut moments, &gradients, &mut parameters);
        close(&parameters[0], [0.89 * 0.99 - 0.1, -1.88 * 0.99 + 0.1]);
    }

    #[test]
    fn a_gradient_of_zero_only_decays() {
        let mut parameters = vec![vec![2.0f32]];
        let mut moments = Moments::new(&parameters);
        AdamW::default().step(0.1, &mut moments, &[vec![0.0]], &mut parameters);
        assert_eq!(parameters[0][0], 2.0 * (1.0 - 0.001f32));
    }

    #[test]
    fn long_gradients_are_shortened() {
        let mut gradients = vec![vec![3.0f32], vec![4.0f32]];
        assert_eq!(clip(&mut gradients, 10.0), 5.0);
        assert_eq!(clip(&mut gradients, 1.0), 5.0);
        assert!((norm(&gradients) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_rate_rises_and_falls() {
        let rate = LearningRate { peak: 1.0, warmup: 4, total: 12 };
        let close =
            |step, want: f64| assert!((rate.at(step) - want).abs() < 1e-12, "{step} {}", rate.at(step));
        close(0, 0.25);
        close(3, 1.0);
        close(4, 1.0);
        close(8, 0.55);
        close(12, 0.1);
        close(99, 0.1);
    }
}
