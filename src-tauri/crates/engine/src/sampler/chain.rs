//! The stages in order, and the final draw.

use kernels::{TopKEntry, ops::top_k::LARGEST_LOGIT};

use super::dry::DryStage;
use super::exp::exp;
use super::frequency::FrequencyPenaltyStage;
use super::greedy::likeliest;
use super::logit_bias::LogitBiasStage;
use super::min_p::MinPStage;
use super::penalty::RepeatPenaltyStage;
use super::temperature::TemperatureStage;
use super::top_k::TopKStage;
use super::top_p::TopPStage;
use super::xtc::XtcStage;
use super::{Candidate, Candidates, Rng, SamplerStage, Sampling, by_likelihood};
use crate::tokenizer::TokenId;

/// Sampler of one reply. Allocates when created, never per token.
#[derive(Debug)]
pub struct SamplerChain {
    stages: Vec<Box<dyn SamplerStage>>,
    candidates: Candidates,
    /// `None` for greedy sampling.
    rng: Option<Rng>,
    /// Before the last draw.
    rng_before: Option<Rng>,
    needs: CandidateNeeds,
}

/// Candidates that can affect the draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateNeeds {
    /// Any token.
    All,
    /// The `n` most likely, plus one for each token that the other stages may lower.
    Likeliest { n: usize, lowered: LoweredTokens },
}

/// Bounds on the tokens that stages make less likely.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LoweredTokens {
    /// The last tokens of the history, by the repetition penalty or DRY.
    last_n: usize,
    /// By a bias.
    n_biased: usize,
    /// All tokens of the history from this position on, by the penalties of the reply.
    reply_from: Option<usize>,
}

impl LoweredTokens {
    fn n_at_most(self, n_history: usize) -> usize {
        let n_reply = self.reply_from.map_or(0, |from| n_history.saturating_sub(from));
        self.last_n.min(n_history).saturating_add(self.n_biased).saturating_add(n_reply)
    }
}

/// Least number of candidates that are gathered before the unlikely ones are dropped.
const MIN_GATHERED: usize = 256;

/// Where more tokens than this may be lowered, whole rows cost less than selecting from them.
const MAX_LOWERED: usize = 1024;

impl CandidateNeeds {
    /// Where stages only lower tokens, one that is likely after them was likely before. `lowered` is `None` where
    /// they may raise some.
    fn of(sampling: &Sampling, lowered: Option<LoweredTokens>, draws: bool) -> Self {
        match (lowered, draws, sampling.top_k) {
            (None, _, _) | (Some(_), true, 0) => Self::All,
            (Some(lowered), false, _) => Self::Likeliest { n: 1, lowered },
            (Some(lowered), true, k) => Self::Likeliest { n: k as usize, lowered },
        }
    }
}

impl SamplerChain {
    /// Creates the chain. A meaningless value (NaN, a negative temperature) turns its stage off.
    pub fn new(sampling: &Sampling, n_vocab: usize) -> Self {
        Self::after_prompt(sampling, 0, n_vocab)
    }

    /// As `new`, for histories that begin with `n_prompt` tokens which are no part of the reply.
    pub fn after_prompt(sampling: &Sampling, n_prompt: usize, n_vocab: usize) -> Self {
        let mut stages: Vec<Box<dyn SamplerStage>> = Vec::new();
        let mut lowered = Some(LoweredTokens::default());
        if !sampling.logit_bias.is_empty() {
            let stage = LogitBiasStage::new(&sampling.logit_bias);
            lowered =
                stage.n_lowered().map(|n_biased| LoweredTokens { n_biased, ..LoweredTokens::default() });
            stages.push(Box::new(stage));
        }
        let is_penalty = |penalty: &f32| penalty.is_finite() && *penalty > 0.0 && *penalty != 1.0;
        let penalty = Some(sampling.repeat_penalty).filter(is_penalty).filter(|_| sampling.repeat_last_n > 0);
        if let Some(penalty) = penalty {
            let last_n = sampling.repeat_last_n as usize;
            stages.push(Box::new(RepeatPenaltyStage::new(penalty, last_n, n_vocab)));
            lowered = lowered.filter(|_| penalty > 1.0).map(|lowered| LoweredTokens { last_n, ..lowered });
        }
        let [presence, frequency] = [sampling.presence_penalty, sampling.frequency_penalty]
            .map(|penalty| if penalty.is_finite() { penalty } else { 0.0 });
        if presence != 0.0 || frequency != 0.0 {
            stages.push(Box::new(FrequencyPenaltyStage::new((presence, frequency), n_prompt, n_vocab)));
            lowered = lowered
                .filter(|_| presence >= 0.0 && frequency >= 0.0)
                .map(|lowered| LoweredTokens { reply_from: Some(n_prompt), ..lowered });
        }
        if sampling.dry.is_on() {
            stages.push(Box::new(DryStage::new(&sampling.dry, n_vocab)));
            let last_n = sampling.dry.last_n.map_or(usize::MAX, |n| n as usize);
            lowered = lowered.map(|lowered| LoweredTokens { last_n: lowered.last_n.max(last_n), ..lowered });
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
            if sampling.xtc.is_on() {
                let seed = sampling.seed.unwrap_or_else(|| Rng::unseeded().next_u64());
                stages.push(Box::new(XtcStage::new(sampling.xtc, seed)));
            }
            stages.push(Box::new(TemperatureStage { temperature: sampling.temperature }));
        }
        let rng = draws.then(|| sampling.seed.map_or_else(Rng::unseeded, Rng::new));
        let needs = CandidateNeeds::of(sampling, lowered, draws);
        Self { stages, candidates: Candidates::with_capacity(n_vocab), rng, rng_before: None, needs }
    }

    /// Returns how many of the most likely tokens the draw needs after `n_history` tokens. `None`: all.
    pub fn n_top(&self, n_history: usize) -> Option<usize> {
        match self.needs {
            CandidateNeeds::All => None,
            CandidateNeeds::Likeliest { n, lowered } => {
                let n_lowered = lowered.n_at_most(n_history);
                (n_lowered <= MAX_LOWERED).then(|| n.saturating_add(n_lowered))
            }
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

    /// As `sample`, of the tokens whose bits are set in `mask`, lowest first. Logits must be numbers.
    pub fn sample_masked(&mut self, logits: &[f32], mask: &[u32], history: &[TokenId]) -> Option<TokenId> {
        let n_top = self.n_top(history.len()).map(|n| n.max(1));
        let max_items = n_top.map_or(usize::MAX, |n| n.saturating_mul(2).max(MIN_GATHERED));
        // Tokens as likely as the least likely of those that are kept come after it.
        let mut least = f32::NEG_INFINITY;
        let items = &mut self.candidates.items;
        items.clear();
        for (id, &logit) in (0u32..).zip(logits) {
            let is_allowed = || mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
            if logit > least && is_allowed() {
                items.push(Candidate { id, logit: logit.min(LARGEST_LOGIT) });
                if let (Some(n), true) = (n_top, items.len() == max_items) {
                    least = items.select_nth_unstable_by(n - 1, by_likelihood).1.logit;
                    items.truncate(n);
                }
            }
        }
        self.candidates.n_sorted = 0;
        self.finish(history)
    }

    /// The candidates of the last draw with the logarithms of their probabilities, most likely first, ties by lower id.
    /// Greedy sampling has one.
    pub fn last_shares(&self) -> Vec<(TokenId, f32)> {
        let items = &self.candidates.items;
        if self.rng.is_none() {
            return likeliest(items).map(|id| (id, 0.0)).into_iter().collect();
        }
        let Some(largest) = self.candidates.largest() else { return Vec::new() };
        let above = |c: &Candidate| f64::from(c.logit) - f64::from(largest);
        let log_sum = items.iter().map(|c| above(c).exp()).sum::<f64>().ln();
        let mut sorted: Vec<&Candidate> = items.iter().collect();
        sorted.sort_unstable_by(|a, b| by_likelihood(a, b));
        sorted.into_iter().map(|c| (c.id, (above(c) - log_sum) as f32)).collect()
    }

    /// Takes the last draw back, so that the next one uses the same random number.
    pub fn take_back_draw(&mut self) {
        if self.rng_before.is_some() {
            self.rng = self.rng_before.take();
        }
    }

    fn finish(&mut self, history: &[TokenId]) -> Option<TokenId> {
        self.rng_before.clone_from(&self.rng);
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
    use super::super::{DrySettings, LogitBias, XtcSettings};
    use super::*;

    fn greedy() -> Sampling {
        Sampling { temperature: 0.0, ..Sampling::default() }
    }

    fn bias(biases: &[(TokenId, f32)]) -> Vec<LogitBias> {
        biases.iter().map(|&(token, bias)| LogitBias { token, bias }).collect()
    }

    fn dry(multiplier: f32) -> DrySettings {
        DrySettings { multiplier, allowed_length: 1, ..DrySettings::default() }
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
                    let sampling = Sampling {
                        temperature,
                        top_k,
                        top_p,
                        min_p,
                        repeat_penalty,
                        repeat_last_n,
                        seed,
                        presence_penalty: if top_k == 7 { 0.6 } else { 0.0 },
                        frequency_penalty: if top_p < 0.95 { 0.3 } else { 0.0 },
                        dry: dry(if top_k == 1 { 0.0 } else { 2.0 }),
                        xtc: XtcSettings {
                            probability: if top_k == 400 { 0.5 } else { 0.0 },
                            threshold: 0.05,
                        },
                        logit_bias: bias(if top_k == 40 { &[(3, -2.0), (9, -100.0)] } else { &[] }),
                    };
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
        for sampling in [
            Sampling { top_k: 0, ..open() },
            Sampling { repeat_penalty: 0.9, ..greedy() },
            Sampling { presence_penalty: -0.1, ..greedy() },
            Sampling { frequency_penalty: -0.1, presence_penalty: 1.0, ..greedy() },
            Sampling { logit_bias: bias(&[(1, -9.0), (2, 0.5)]), ..greedy() },
        ] {
            assert_eq!(SamplerChain::new(&sampling, 9).n_top(5), None, "{sampling:?}");
        }
    }

    #[test]
    fn masked_tokens_are_drawn_as_if_there_were_no_others() {
        let n_vocab = 3000;
        let mut rng = Rng::new(8);
        for (top_k, temperature) in [(0, 1.0), (1, 1.0), (40, 1.0), (40, 0.0), (900, 0.5)] {
            let sampling = Sampling { top_k, temperature, seed: Some(3), repeat_penalty: 1.2, ..open() };
            let [mut masked, mut whole] = [(); 2].map(|()| SamplerChain::new(&sampling, n_vocab));
            let mut history = Vec::new();
            for step in 1..20_u64 {
                let logits: Vec<f32> = (0..n_vocab).map(|_| (rng.next_u64() % 70) as f32 / 8.0).collect();
                // Many tokens, few, and none of the last ones.
                let mask: Vec<u32> = (0..90).map(|_| rng.next_u64() as u32 >> (step % 33).min(31)).collect();
                let is_allowed = |id: usize| mask.get(id / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
                let alone: Vec<f32> = (0..n_vocab)
                    .map(|id| if is_allowed(id) { logits[id] } else { f32::NEG_INFINITY })
                    .collect();
                let expected = whole.sample(&alone, &history);
                assert_eq!(masked.sample_masked(&logits, &mask, &history), expected, "{top_k} {step}");
                masked.take_back_draw();
                assert_eq!(masked.sample_masked(&logits, &mask, &history), expected, "{top_k} {step} again");
                history.extend(expected);
            }
        }
        assert_eq!(SamplerChain::new(&open(), 3).sample_masked(&[1.0, 2.0, 3.0], &[0], &[]), None);
        assert_eq!(SamplerChain::new(&open(), 3).sample_masked(&[1.0, 2.0, 3.0], &[2], &[]), Some(1));
    }

    #[test]
    fn penalties_of_the_reply_count_its_tokens_and_not_the_prompts() {
        let check = |(presence_penalty, frequency_penalty): (f32, f32), history: &[TokenId], expected| {
            let sampling = Sampling { presence_penalty, frequency_penalty, ..greedy() };
            let mut chain = SamplerChain::after_prompt(&sampling, 2, 3);
            assert_eq!(chain.sample(&[3.0, 2.0, 1.0], history), Some(expected), "{history:?}");
            // The same from the most likely tokens, whose order changes.
            let mut chain = SamplerChain::after_prompt(&sampling, 2, 3);
            let top = kernels::ops::top_k::scalar(&[3.0, 2.0, 1.0], 3);
            assert_eq!(chain.sample_top(&top, history), Some(expected), "{history:?}");
        };
        check((1.5, 0.0), &[0, 0], 0);
        check((1.5, 0.0), &[0, 0, 0], 1);
        check((1.5, 0.0), &[0, 0, 0, 1], 0);
        check((0.0, 0.6), &[0, 0, 0], 0);
        check((0.0, 0.6), &[0, 0, 0, 0], 1);
        check((0.0, 0.6), &[1, 1, 0, 0, 1, 1], 0);
        check((0.5, 0.6), &[0, 0, 0], 1);
        check((-5.0, 0.0), &[0, 0, 2], 2);
        check((f32::NAN, f32::INFINITY), &[0, 0, 0, 0], 0);
        let mut chain = SamplerChain::new(&Sampling { frequency_penalty: 0.6, ..greedy() }, 3);
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[0, 0]), Some(1), "counts carry on between draws");
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[0, 0, 1, 1]), Some(0));
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[0]), Some(0), "a shorter history is counted again");
    }

    #[test]
    fn biases_come_first_and_ban_or_force() {
        let check = |biases: &[(TokenId, f32)], expected| {
            let mut chain = SamplerChain::new(&Sampling { logit_bias: bias(biases), ..greedy() }, 3);
            assert_eq!(chain.sample(&[3.0, 2.0, 1.0], &[]), expected, "{biases:?}");
        };
        check(&[(0, -1.5)], Some(1));
        check(&[(0, -0.5)], Some(0));
        check(&[(2, 100.0)], Some(2));
        check(&[(2, 1.0), (2, 1.5)], Some(2));
        check(&[(0, f32::NAN), (9, 5.0)], Some(0));
        check(&[(0, -100.0), (1, -100.0)], Some(2));
        check(&[(0, -100.0), (1, -60.0), (1, -60.0), (2, f32::NEG_INFINITY)], None);
        let sampling = Sampling { logit_bias: bias(&[(2, 100.0)]), ..open() };
        assert_eq!(support(&sampling, &[3.0, 2.0, 1.0]), [2]);
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
