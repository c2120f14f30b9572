//! Chooses experts by scores with a bias, within the best groups, or one after another (SparseMixer).

use crate::graph::{ExpertChoice, ExpertScoring, GroupLimit, GroupScore};

/// The largest keys, and their scores.
pub(super) fn by_key(logits: &[f32], choice: &ExpertChoice, indices: &mut [f32], weights: &mut [f32]) {
    let mut scores = scores(logits, choice.scoring);
    if let Some(bias) = &choice.selection_bias {
        scores.iter_mut().zip(bias.iter()).for_each(|(score, bias)| *score += bias);
    }
    let keys = scores;
    match choice.groups {
        Some(limit) => {
            let remains = remaining_groups(&keys, limit);
            choose(&keys, indices, |expert| remains[expert * limit.n_groups / keys.len()]);
        }
        None => choose(&keys, indices, |_| true),
    }
    let scores = self::scores(logits, choice.scoring);
    for (index, weight) in indices.iter().zip(weights) {
        *weight = scores[*index as usize];
    }
}

/// (n_experts)
fn scores(logits: &[f32], scoring: ExpertScoring) -> Vec<f32> {
    match scoring {
        ExpertScoring::Sigmoid => logits.iter().map(|l| 1.0 / (1.0 + (-l).exp())).collect(),
        ExpertScoring::Softmax | ExpertScoring::SparseMixer { .. } => {
            let max = logits.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
            let sum: f32 = logits.iter().map(|l| (l - max).exp()).sum();
            logits.iter().map(|l| (l - max).exp() / sum).collect()
        }
    }
}

/// Whether each group is among the best.
fn remaining_groups(keys: &[f32], limit: GroupLimit) -> Vec<bool> {
    let n_each = keys.len() / limit.n_groups;
    let score = |group: &[f32]| {
        let mut best = [f32::NEG_INFINITY; 2];
        for &key in group {
            if key > best[0] {
                best = [key, best[0]];
            } else if key > best[1] {
                best[1] = key;
            }
        }
        match limit.score {
            GroupScore::Max => best[0],
            GroupScore::TopTwo => best[0] + if n_each > 1 { best[1] } else { 0.0 },
        }
    };
    let group_scores: Vec<f32> = keys.chunks_exact(n_each).map(score).collect();
    let mut chosen = vec![0.0; limit.n_used];
    choose(&group_scores, &mut chosen, |_| true);
    (0..limit.n_groups).map(|group| chosen.contains(&(group as f32))).collect()
}

/// One expert after another, each weighed among those near it that are left.
pub(super) fn sparse_mixer(logits: &[f32], jitter: f32, indices: &mut [f32], weights: &mut [f32]) {
    choose(logits, indices, |_| true);
    for slot in 0..indices.len() {
        let best = logits[indices[slot] as usize];
        let is_left = |expert: usize| !indices[..slot].contains(&(expert as f32));
        // 0 / 0 counts as near.
        let is_far = |logit: f32| (best - logit) / logit.abs().max(best) > 2.0 * jitter;
        let near = (0..logits.len()).filter(|e| is_left(*e)).map(|e| logits[e]).filter(|l| !is_far(*l));
        let sum: f32 = near.map(|logit| (logit - best).exp()).sum();
        weights[slot] = 1.0 / sum;
    }
}

/// Writes the indices of the largest keys, largest first, among the experts that `counts`.
pub(super) fn choose(keys: &[f32], indices: &mut [f32], counts: impl Fn(usize) -> bool) {
    let mut last = None;
    for index in indices {
        let left = (0..keys.len()).filter(|e| counts(*e) && last.is_none_or(|last| precedes(keys, last, *e)));
        let best = left.reduce(|best, e| if precedes(keys, e, best) { e } else { best });
        let best = best.expect("n_used is at most the number of experts that count");
        *index = best as f32;
        last = Some(best);
    }
}

/// Whether expert `a` is chosen before `b`: by key, on ties the first; NaN comes last.
fn precedes(keys: &[f32], a: usize, b: usize) -> bool {
    let (x, y) = (keys[a], keys[b]);
    match (x.is_nan(), y.is_nan()) {
        (false, true) => true,
        (true, false) => false,
        (true, true) => a < b,
        (false, false) => x > y || x == y && a < b,
    }
}

#[cfg(test)]
mod tests {
    use super::super::moe_route::scalar;
    use super::*;
    use crate::graph::Routing;

    fn route_by(logits: &[f32], choice: ExpertChoice, n_used: usize, renormalize: bool) -> Vec<f32> {
        let routing = Routing { n_experts: logits.len(), n_used, renormalize, expert_scale: None, choice };
        let mut out = vec![-1.0; 2 * n_used];
        scalar(logits, &routing, &mut out);
        out
    }

    fn check_near(got: &[f32], want: &[f32]) {
        assert_eq!(got.len(), want.len());
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?}, not {want:?}");
    }

    #[test]
    fn a_bias_chooses_and_does_not_weigh() {
        let logit = |p: f32| (p / (1.0 - p)).ln();
        let logits = [0.5, 0.8, 0.6, 0.2].map(logit);
        let sigmoid = ExpertChoice { scoring: ExpertScoring::Sigmoid, ..ExpertChoice::default() };
        check_near(&route_by(&logits, sigmoid.clone(), 2, false), &[1.0, 2.0, 0.8, 0.6]);
        let biased = ExpertChoice { selection_bias: Some([0.0, -0.5, 0.0, 0.6].into()), ..sigmoid };
        check_near(&route_by(&logits, biased.clone(), 2, false), &[3.0, 2.0, 0.2, 0.6]);
        let scaled = ExpertChoice { scale: Some(2.5), sum_epsilon: 0.2, ..biased };
        check_near(&route_by(&logits, scaled, 2, true), &[3.0, 2.0, 0.5, 1.5]);
    }

    #[test]
    fn groups_restrict_the_choice() {
        let logits = [4.0, 0.0, 2.5, 2.4, 3.0, 1.0].map(|x: f32| (x / 10.0 / (1.0 - x / 10.0)).ln());
        let of = |score, n_used| {
            let groups = Some(GroupLimit { n_groups: 3, n_used, score });
            ExpertChoice { scoring: ExpertScoring::Sigmoid, groups, ..ExpertChoice::default() }
        };
        check_near(&route_by(&logits, of(GroupScore::Max, 1), 2, false), &[0.0, 1.0, 0.4, 0.0]);
        check_near(&route_by(&logits, of(GroupScore::TopTwo, 1), 2, false), &[2.0, 3.0, 0.25, 0.24]);
        check_near(&route_by(&logits, of(GroupScore::TopTwo, 2), 2, false), &[0.0, 2.0, 0.4, 0.25]);
    }

    #[test]
    fn sparse_mixer_weighs_among_the_near() {
        let mixer = |jitter| ExpertChoice {
            scoring: ExpertScoring::SparseMixer { jitter },
            ..ExpertChoice::default()
        };
        // near the best: within a fifth of it; near the second: 3.9 and 4.0 of it
        let logits = [3.9, 5.0, 1.0, 4.9];
        let share = |x: f32| 1.0 / (1.0 + x.exp());
        check_near(&route_by(&logits, mixer(0.1), 2, false), &[1.0, 3.0, share(-0.1), 1.0]);
        let both = 1.0 / (1.0 + (-1.0f32).exp());
        check_near(&route_by(&logits, mixer(0.103), 2, false), &[1.0, 3.0, share(-0.1), both]);
        check_near(&route_by(&[0.0, 0.0], mixer(0.01), 2, false), &[0.0, 1.0, 0.5, 1.0]);
    }
}
