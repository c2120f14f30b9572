//! Routes tokens to experts: softmax over the router's logits, the largest of them, and their weights.
//! Decided by the logits alone, so that backends with equal logits choose equal experts.

use super::OpRow;
use super::moe_route_by_score::{by_key, choose, sparse_mixer};
use crate::graph::{ExpertChoice, ExpertScoring, Routing};

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "moe_route", formula: "top n_used of softmax(logits): indices, weights" };

/// One token: logits (n_experts), out (2, n_used): expert indices, largest first, then weights
pub fn scalar(logits: &[f32], routing: &Routing, out: &mut [f32]) {
    let (indices, weights) = out.split_at_mut(routing.n_used);
    match routing.choice.scoring {
        ExpertScoring::Softmax if !routing.choice.is_by_key() => by_logits(logits, indices, weights),
        ExpertScoring::Softmax | ExpertScoring::Sigmoid => {
            by_key(logits, &routing.choice, indices, weights);
        }
        ExpertScoring::SparseMixer { jitter } => sparse_mixer(logits, jitter, indices, weights),
    }
    if routing.renormalize {
        let sum = weights.iter().sum::<f32>() + routing.choice.sum_epsilon;
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    if let Some(scale) = routing.choice.scale {
        weights.iter_mut().for_each(|w| *w *= scale);
    }
    if let Some(scale) = &routing.expert_scale {
        for (index, weight) in indices.iter().zip(weights) {
            *weight *= scale[*index as usize];
        }
    }
}

/// The largest logits, and their softmax.
fn by_logits(logits: &[f32], indices: &mut [f32], weights: &mut [f32]) {
    let max = logits.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let sum: f32 = logits.iter().map(|l| (l - max).exp()).sum();
    choose(logits, indices, |_| true);
    for (index, weight) in indices.iter().zip(weights) {
        *weight = (logits[*index as usize] - max).exp() / sum;
    }
}

impl ExpertChoice {
    /// Whether experts are chosen by another order than that of their logits.
    pub(crate) fn is_by_key(&self) -> bool {
        self.selection_bias.is_some() || self.groups.is_some()
    }
}

/// The expert in one slot of a token's route, clamped to a valid index.
pub fn expert(route: &[f32], slot: usize, n_experts: usize) -> usize {
    (route[slot] as usize).min(n_experts - 1)
}

/// The weights of a token's route: (n_used)
pub fn weights(route: &[f32]) -> &[f32] {
    &route[route.len() / 2..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(logits: &[f32], n_used: usize, renormalize: bool) -> Vec<f32> {
        let n_experts = logits.len();
        let choice = ExpertChoice::default();
        let routing = Routing { n_experts, n_used, renormalize, expert_scale: None, choice };
        let mut out = vec![-1.0; 2 * n_used];
        scalar(logits, &routing, &mut out);
        out
    }

    #[test]
    fn of_equals_the_first() {
        assert_eq!(route(&[1.0, 3.0, 3.0, 2.0], 3, false)[..3], [1.0, 2.0, 3.0]);
        assert_eq!(route(&[0.0, -0.0, 0.0], 2, false)[..2], [0.0, 1.0]);
        assert_eq!(route(&[5.0; 4], 4, true), [0.0, 1.0, 2.0, 3.0, 0.25, 0.25, 0.25, 0.25]);
    }

    #[test]
    fn weights_are_shares_of_all_or_of_the_chosen() {
        let ln = |x: f32| x.ln();
        let logits = [ln(1.0), ln(4.0), ln(3.0), ln(2.0)];
        for (got, want) in route(&logits, 2, false).iter().zip([1.0, 2.0, 0.4, 0.3]) {
            assert!((got - want).abs() < 1e-6);
        }
        for (got, want) in route(&logits, 2, true).iter().zip([1.0, 2.0, 4.0 / 7.0, 3.0 / 7.0]) {
            assert!((got - want).abs() < 1e-6);
        }
        let scaled = Routing {
            n_experts: 4,
            n_used: 2,
            renormalize: true,
            expert_scale: Some([1.0, 7.0, 14.0, 0.0].into()),
            choice: ExpertChoice::default(),
        };
        let mut out = [0.0; 4];
        scalar(&logits, &scaled, &mut out);
        assert!((out[2] - 4.0).abs() < 1e-5 && (out[3] - 6.0).abs() < 1e-5, "{out:?}");
    }

    #[test]
    fn what_is_no_number_is_chosen_last_and_shows_in_the_weights() {
        let nan = f32::NAN;
        let out = route(&[nan, 1.0, nan, 2.0], 3, true);
        assert_eq!(out[..3], [3.0, 1.0, 0.0]);
        assert!(out[3..].iter().all(|w| w.is_nan()));
        assert_eq!(route(&[nan; 4], 2, false)[..2], [0.0, 1.0]);
        let infinite = [f32::NEG_INFINITY, f32::INFINITY, f32::INFINITY];
        assert_eq!(route(&infinite, 2, false)[..2], [1.0, 2.0]);
        for bad in [nan, f32::INFINITY, -1.0, 1e30] {
            assert!(expert(&[bad, 0.0], 0, 4) < 4);
        }
    }
}
