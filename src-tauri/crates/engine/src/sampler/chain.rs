//! The stages in order, and the final draw.

use kernels::TopKEntry;
use kernels::ops::top_k::LARGEST_LOGIT;

use super::exp::exp;
use super::greedy::likeliest;
use super::min_p::MinPStage;
use super::penalty::RepeatPenaltyStage;
use super::temperature::TemperatureStage;
use super::top_k::TopKStage;
use super::top_p::TopPStage;
use super::{Candidate, Candidates, Rng, SamplerStage, Sampling};
use crate::tokenizer::TokenId;

/// Sampler of one reply. Allocates when created, never per token.
#[derive(Debug)]
pub struct SamplerChain {
    stages: Vec<Box<dyn SamplerStage>>,
    candidates: Candidates,
    /// `None` for greedy sampling.
    rng: Option<Rng>,
    needs: CandidateNeeds,
}

/// Candidates that can affect the draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateNeeds {
    /// Any token.
    All,
    /// The `n` most likely, plus one for each of the last `last_n` tokens, which a penalty may lower.
    Likeliest { n: usize, last_n: usize },
}

impl CandidateNeeds {
    /// A penalty only lowers tokens of the history, so a token that is likely after it was likely before.
    fn of(sampling: &Sampling, penalty: Option<f32>, draws: bool) -> Self {
        let last_n = penalty.map_or(0, |_| sampling.repeat_last_n as usize);
        match (draws, sampling.top_k) {
            _ if penalty.is_some_and(|penalty| penalty < 1.0) => Self::All,
            (false, _) => Self::Likeliest { n: 1, last_n },
            (true, 0) => Self::All,
            (true, k) => Self::Likeliest { n: k as usize, last_n },
        }
    }
}

impl SamplerChain {
    /// Creates the chain. A meaningless value (NaN, a negative temperature) turns its stage off.
    pub fn new(sampling: &Sampling, n_vocab: usize) -> Self {
        let mut stages: Vec<Box<dyn SamplerStage>> = Vec::new();
        let is_penalty = |penalty: &f32| penalty.is_finite() && *penalty > 0.0 && *penalty != 1.0;
        let penalty = Some(sampling.repeat_penalty).filter(is_penalty).filter(|_| sampling.repeat_last_n > 0);
        if let Some(penalty) = penalty {
            stages.push(Box::new(RepeatPenaltyStage::new(penalty, sampling.repeat_last_n as usize, n_vocab)));
        }
        let draws = sampling.temperature > 0.0;
        if draws {
            if sampling.top_k > 0 {
                stages.push(Box::new(TopKStage { k: sampling.top_k as usize }));
            }
            if sampling.top_p < 1.0 {
                stages.push(Box::new(TopPStage { p: sampling.top_p }));
            }
            if sampling.min_p > 0.0 {
                stages.push(Box::new(MinPStage { p: sampling.min_p }));
            }
            stages.push(Box::new(TemperatureStage { temperature: sampling.temperature }));
        }
        let rng = draws.then(|| sampling.seed.map_or_else(Rng::unseeded, Rng::new));
        let needs = CandidateNeeds::of(sampling, penalty, draws);
        Self { stages, candidates: Candidates::with_capacity(n_vocab), rng, needs }
    }

    /// Returns how many of the most likely tokens the draw needs after `n_history` tokens. `None`: all.
    pub fn n_top(&self, n_history: usize) -> Option<usize> {
        match self.needs {
            CandidateNeeds::All => None,
            CandidateNeeds::Likeliest { n, last_n } => Some(n.saturating_add(last_n.min(n_history))),
        }
    }

    /// Draws the next token after `history` (oldest first). `logits`: (n_vocab). NaN and -∞ are never drawn. `None`
    /// if nothing is left.
    pub fn sample(&mut self, logits: &[f32], history: &[TokenId]) -> Option<TokenId> {
        let candidates = &mut self.candidates;
        candidates.items.clear();
        candidates.items.extend((0..).zip(logits).filter(|(_, l)| **l > f32::NEG_INFINITY).map(
            |(id, &l)| Candidate {
                id,
                // +∞ counts as very likely, so that differences stay numbers.
                logit: l.min(LARGEST_LOGIT),
            },
        ));
        candidates.n_sorted = 0;
        self.finish(history)
    }

    /// Draws from at least `n_top` most likely tokens, sorted, ties by lower id, with finite logits.
    pub fn sample_top(&mut self, likeliest: &[TopKEntry], history: &[TokenId]) -> Option<TokenId> {
        let candidates = &mut self.candidates;
        candidates.items.clear();
        let candidate = |likely: &TopKEntry| Candidate { id: likely.id, logit: likely.logit };
        candidates.items.extend(likeliest.iter().map(candidate));
        candidates.n_sorted = candidates.items.len();
        self.finish(history)
    }

    fn finish(&mut self, history: &[TokenId]) -> Option<TokenId> {
        let candidates = &mut self.candidates;
        for stage in &mut self.stages {
            stage.apply(candidates, history);
        }
        match &mut self.rng {
            None => likeliest(&candidates.items),
            Some(rng) => draw(candidates, rng),
        }
    }

    /// Advances as if a token had been drawn, so that later draws are unchanged.
    pub fn skip(&mut self) {
        self.rng.iter_mut().for_each(|rng| _ = rng.next_f64());
    }
}

/// Draws by probability. The order of the candidates affects the result, so it is fixed first: sorted ones stay, the
/// rest follows by id.
fn draw(candidates: &mut Candidates, rng: &mut Rng) -> Option<TokenId> {
    let largest = candidates.largest()?;
    let n_sorted = candidates.n_sorted;
    candidates.items[n_sorted..].sort_unstable_by_key(|c| c.id);
    candidates.weights.clear();
    let weight = |c: &Candidate| exp(f64::from(c.logit) - f64::from(largest));
    candidates.weights.extend(candidates.items.iter().map(weight));
    let total: f64 = candidates.weights.iter().sum();
    let mut left = rng.next_f64() * total;
    let mut last = None;
    for (candidate, &weight) in candidates.items.iter().zip(&candidates.weights) {
        if weight > 0.0 {
            last = Some(candidate.id);
            if left < weight {
                break;
            }
            left -= weight;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greedy() -> Sampling {
        Sampling { temperature: 0.0, ..Sampling::default() }
    }

    fn open() -> Sampling {
        Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: Some(1), ..Sampling::default() }
    }

    #[test]
    fn greedy_takes_the_most_likely() {
        let check = |logits: &[f32], expected: Option<TokenId>| {
            assert_eq!(
                SamplerChain::new(&greedy(), logits.len()).sample(logits, &[]),
                expected,
                "{logits:?}"
            );
        };
        check(&[0.0, 2.0, 1.0], Some(1));
        check(&[2.0, 2.0, 1.0], Some(0));
        check(&[f32::NAN, 2.0, f32::NAN], Some(1));
        check(&[-5.0, f32::NEG_INFINITY], Some(0));
        check(&[1.0, f32::INFINITY, 2.0], Some(1));
        check(&[f32::NAN, f32::NAN], None);
        check(&[f32::NEG_INFINITY], None);
        check(&[], None);
    }

    #[test]
    fn the_penalty_counts_a_token_once_and_only_in_its_window() {
        let sampling = Sampling { repeat_penalty: 2.0, repeat_last_n: 2, ..greedy() };
        let mut chain = SamplerChain::new(&sampling, 3);
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[]), Some(0));
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[0, 0]), Some(1));
        assert_eq!(chain.sample(&[4.5, 2.0, 1.0], &[0, 0]), Some(0));
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[0, 2, 2]), Some(0));
        assert_eq!(chain.sample(&[-1.0, -1.5, -9.0], &[0]), Some(1));
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[4_000_000_000]), Some(0));
    }

    /// Ids that can be drawn from these logits.
    fn support(sampling: &Sampling, logits: &[f32]) -> Vec<TokenId> {
        let mut chain = SamplerChain::new(sampling, logits.len());
        let mut seen: Vec<TokenId> = (0..2000).filter_map(|_| chain.sample(logits, &[])).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    #[test]
    fn stages_keep_the_expected_candidates() {
        // Probabilities 0.5, 0.3, 0.15, 0.05.
        let logits: Vec<f32> = [0.15f32, 0.5, 0.05, 0.3].iter().map(|p| p.ln()).collect();
        let check = |sampling: Sampling, expected: &[TokenId]| {
            assert_eq!(support(&sampling, &logits), expected, "{sampling:?}");
        };
        check(open(), &[0, 1, 2, 3]);
        check(Sampling { top_k: 1, ..open() }, &[1]);
        check(Sampling { top_k: 2, ..open() }, &[1, 3]);
        check(Sampling { top_k: 99, ..open() }, &[0, 1, 2, 3]);
        check(Sampling { top_p: 0.79, ..open() }, &[1, 3]);
        check(Sampling { top_p: 0.81, ..open() }, &[0, 1, 3]);
        check(Sampling { top_p: 0.0, ..open() }, &[1]);
        check(Sampling { min_p: 0.29, ..open() }, &[0, 1, 3]);
        check(Sampling { min_p: 0.31, ..open() }, &[1, 3]);
        check(Sampling { min_p: 5.0, ..open() }, &[1]);
        check(Sampling { temperature: 1e-6, ..open() }, &[1]);
        check(Sampling { temperature: f32::NAN, ..open() }, &[1]);
        check(Sampling { top_k: 3, top_p: 0.8, min_p: 0.5, ..open() }, &[1, 3]);
    }

    #[test]
    fn frequencies_follow_the_probabilities() {
        let p = [0.15f64, 0.5, 0.05, 0.3];
        let logits: Vec<f32> = p.iter().map(|p| p.ln() as f32).collect();
        let mut chain = SamplerChain::new(&open(), 4);
        let mut count = [0usize; 4];
        for _ in 0..50_000 {
            count[chain.sample(&logits, &[]).expect("there are numbers") as usize] += 1;
        }
        for (n, p) in count.iter().zip(p) {
            assert!((*n as f64 / 50_000.0 - p).abs() < 0.01, "{count:?}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let logits: Vec<f32> = (0..500).map(|i| ((i * 7919) % 101) as f32 / 20.0).collect();
        let draw = |seed| {
            let mut chain =
                SamplerChain::new(&Sampling { seed: Some(seed), ..Sampling::default() }, logits.len());
            (0..50).filter_map(|_| chain.sample(&logits, &[])).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    /// All kinds of settings, over logits with many ties.
    #[test]
    fn top_tokens_draw_as_all_tokens_do() {
        let n_vocab = 400;
        let mut rng = Rng::new(5);
        let mut row =
            || -> Vec<f32> { (0..n_vocab).map(|_| (rng.next_u64() % 90) as f32 / 8.0 - 4.0).collect() };
        let penalties = [(1.0, 64), (1.3, 8), (7.0, 64), (1.1, 0)];
        for temperature in [0.0, 0.7, 2.0] {
            for (top_k, top_p) in [(1, 1.0), (7, 0.9), (40, 0.5), (400, 1.0), (1000, 0.99)] {
                for (repeat_penalty, repeat_last_n) in penalties {
                    let (min_p, seed) = (0.02, Some(9));
                    let sampling =
                        Sampling { temperature, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed };
                    let (mut whole, mut few) =
                        (SamplerChain::new(&sampling, n_vocab), SamplerChain::new(&sampling, n_vocab));
                    let mut history = Vec::new();
                    for _ in 0..30 {
                        let logits = row();
                        let n = few.n_top(history.len()).expect("no setting here looks at all tokens");
                        let expected = whole.sample(&logits, &history);
                        let likeliest = kernels::ops::top_k::scalar(&logits, n);
                        assert_eq!(few.sample_top(&likeliest, &history), expected, "{sampling:?}");
                        history.extend(expected);
                        // Likely tokens are among the last ones too.
                        history.push(likeliest[0].id);
                    }
                }
            }
        }
        for sampling in [Sampling { top_k: 0, ..open() }, Sampling { repeat_penalty: 0.9, ..greedy() }] {
            assert_eq!(SamplerChain::new(&sampling, 9).n_top(5), None, "{sampling:?}");
        }
    }

    #[test]
    fn nan_is_never_drawn() {
        let mut logits = vec![f32::NAN; 300];
        (logits[7], logits[130]) = (1.0, 1.1);
        assert_eq!(support(&Sampling { seed: Some(1), ..Sampling::default() }, &logits), [7, 130]);
        assert_eq!(support(&open(), &logits), [7, 130]);
        assert_eq!(SamplerChain::new(&open(), 2).sample(&[f32::NAN; 2], &[]), None);
    }
}
