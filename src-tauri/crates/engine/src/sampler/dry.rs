//! DRY: makes tokens less likely that would go on repeating a passage of the text, the longer the passage the more.
//!
//! By p-e-w (text-generation-webui, pull request 5677), with the sequence breakers of llama.cpp: tokens that contain a
//! breaker, or begin one that the tokens after them finish.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Candidates, SamplerStage};
use crate::tokenizer::{Special, TokenId, Tokenizer};

/// Longest breaker, in bytes.
const MAX_BREAKER_BYTES: usize = 40;

/// Most tokens of a breaker after its first one.
const MAX_TAIL_TOKENS: usize = 20;

/// Parameters of the penalty `multiplier · base^(length - allowed_length)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrySettings {
    /// 0: off.
    pub multiplier: f32,
    /// At least 1.
    pub base: f32,
    /// Longest repetition without a penalty, in tokens.
    pub allowed_length: u32,
    /// Number of recent tokens that are searched. `None`: all.
    pub last_n: Option<u32>,
    /// Where repetitions end.
    pub breakers: SequenceBreakers,
}

impl Default for DrySettings {
    fn default() -> Self {
        Self {
            multiplier: 0.0,
            base: 1.75,
            allowed_length: 2,
            last_n: None,
            breakers: SequenceBreakers::default(),
        }
    }
}

impl DrySettings {
    /// Whether it can change a draw.
    pub fn is_on(&self) -> bool {
        self.multiplier > 0.0 && self.multiplier.is_finite() && self.base >= 1.0 && self.last_n != Some(0)
    }
}

/// Tokens that end a repetition, each with the tokens that must follow it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceBreakers(BTreeMap<TokenId, Vec<Vec<TokenId>>>);

impl SequenceBreakers {
    /// Finds the tokens of a vocabulary that contain a breaker or begin one.
    pub fn new(tokenizer: &Tokenizer, breakers: &[String]) -> Self {
        let mut found: BTreeMap<TokenId, Vec<Vec<TokenId>>> = BTreeMap::new();
        let breakers: Vec<&str> = breakers
            .iter()
            .map(|breaker| &breaker[..breaker.floor_char_boundary(MAX_BREAKER_BYTES)])
            .filter(|breaker| !breaker.is_empty())
            .collect();
        for id in 0..tokenizer.n_vocab() as TokenId {
            let bytes = tokenizer.token_bytes(id);
            for breaker in &breakers {
                for tail in tails(tokenizer, &bytes, breaker) {
                    let tails = found.entry(id).or_default();
                    if !tails.contains(&tail) {
                        tails.push(tail);
                    }
                }
            }
        }
        Self(found)
    }

    /// Number of tokens of the longest breaker that begins at `at` of `reversed` and ends before it. `None`: there is
    /// none.
    fn match_at(&self, reversed: &[TokenId], at: usize) -> Option<usize> {
        let tails = self.0.get(&reversed[at])?;
        let is_there = |tail: &&Vec<TokenId>| {
            tail.len() <= at && tail.iter().zip(reversed[..at].iter().rev()).all(|(a, b)| a == b)
        };
        tails.iter().filter(is_there).map(Vec::len).max()
    }
}

/// What must follow a token of these bytes so that the text has the breaker. An empty tail: nothing.
fn tails(tokenizer: &Tokenizer, bytes: &[u8], breaker: &str) -> Vec<Vec<TokenId>> {
    let whole = breaker.as_bytes();
    if bytes.windows(whole.len()).any(|window| window == whole) {
        return vec![Vec::new()];
    }
    let begins = (1..whole.len()).filter(|n| breaker.is_char_boundary(*n) && bytes.ends_with(&whole[..*n]));
    begins
        .map(|n| {
            let mut tail = tokenizer.encode(&breaker[n..], Special::Plain);
            tail.truncate(MAX_TAIL_TOKENS);
            tail
        })
        .collect()
}

/// Lowers tokens that would lengthen a repetition.
#[derive(Debug)]
pub struct DryStage {
    settings: DrySettings,
    /// Longest repetition that a token would lengthen. (n_vocab)
    lengths: Vec<u32>,
    /// Tokens with a length.
    touched: Vec<TokenId>,
    /// The searched history, newest first.
    reversed: Vec<TokenId>,
    /// Per place of `reversed`: how many tokens from there are the newest ones.
    matches: Vec<usize>,
}

impl DryStage {
    pub fn new(settings: &DrySettings, n_vocab: usize) -> Self {
        Self {
            settings: settings.clone(),
            lengths: vec![0; n_vocab],
            touched: Vec::new(),
            reversed: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Fills `lengths` for the tokens that followed an earlier occurrence of the newest tokens.
    fn find_repetitions(&mut self, history: &[TokenId]) {
        let allowed = self.settings.allowed_length as usize;
        let last_n = self.settings.last_n.map_or(usize::MAX, |n| n as usize);
        self.touched.drain(..).for_each(|id| self.lengths[id as usize] = 0);
        self.reversed.clear();
        self.reversed.extend(history.iter().rev().take(last_n));
        if self.reversed.len() <= allowed {
            return;
        }
        // No repetition reaches over a breaker.
        let breaker = (0..self.reversed.len())
            .find_map(|at| Some(at - self.settings.breakers.match_at(&self.reversed, at)?));
        let longest = breaker.unwrap_or(self.reversed.len());
        if longest < allowed {
            return;
        }
        match_prefix(&self.reversed, &mut self.matches);
        for at in 1..self.reversed.len() {
            let length = self.matches[at].min(longest);
            let next = self.reversed[at - 1];
            let Some(known) = self.lengths.get_mut(next as usize).filter(|_| length >= allowed) else {
                continue;
            };
            if *known == 0 {
                self.touched.push(next);
            }
            // Stored one longer, so that 0 says that there is none.
            *known = (*known).max(u32::try_from(length).unwrap_or(u32::MAX - 1) + 1);
        }
    }
}

impl SamplerStage for DryStage {
    fn apply(&mut self, candidates: &mut Candidates, history: &[TokenId]) {
        self.find_repetitions(history);
        if self.touched.is_empty() {
            return;
        }
        let DrySettings { multiplier, base, allowed_length, .. } = self.settings;
        for candidate in &mut candidates.items {
            let Some(length) = self.lengths.get(candidate.id as usize).and_then(|n| n.checked_sub(1)) else {
                continue;
            };
            candidate.logit -= penalty(multiplier, base, length - allowed_length);
        }
        candidates.n_sorted = 0;
    }
}

/// `multiplier · base^exponent`, finite, by multiplication alone: equal on every platform.
fn penalty(multiplier: f32, base: f32, exponent: u32) -> f32 {
    let (mut power, mut factor, mut left) = (1.0_f64, f64::from(base), exponent);
    while left > 0 {
        if left & 1 == 1 {
            power = (power * factor).min(f64::from(f32::MAX));
        }
        factor = (factor * factor).min(f64::from(f32::MAX));
        left >>= 1;
    }
    (f64::from(multiplier) * power).min(f64::from(f32::MAX)) as f32
}

/// `matches[at]` becomes the length of the longest common prefix of `text` and `text[at..]` (the Z-function), in linear
/// time. That of the start is 0.
fn match_prefix(text: &[TokenId], matches: &mut Vec<usize>) {
    matches.clear();
    matches.resize(text.len(), 0);
    let (mut left, mut right) = (0, 0);
    for at in 1..text.len() {
        let mut n = if at < right { matches[at - left].min(right - at) } else { 0 };
        while at + n < text.len() && text[n] == text[at + n] {
            n += 1;
        }
        matches[at] = n;
        if at + n > right {
            (left, right) = (at, at + n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{Candidate, SamplerChain, Sampling, XtcSettings};

    /// What is subtracted from each token's logit.
    fn penalties(settings: &DrySettings, history: &[TokenId]) -> Vec<f32> {
        let mut candidates = Candidates::with_capacity(8);
        candidates.items.extend((0..8).map(|id| Candidate { id, logit: 0.0 }));
        DryStage::new(settings, 8).apply(&mut candidates, history);
        candidates.items.iter().map(|candidate| -candidate.logit).collect()
    }

    fn settings() -> DrySettings {
        DrySettings { multiplier: 0.5, base: 2.0, ..DrySettings::default() }
    }

    #[test]
    fn a_longer_repetition_is_a_larger_penalty() {
        let check = |history: &[TokenId], token: usize, expected: f32| {
            let mut all = vec![0.0; 8];
            all[token] = expected;
            assert_eq!(penalties(&settings(), history), all, "{history:?}");
        };
        check(&[1, 2, 3], 0, 0.0);
        check(&[2, 3, 4, 3], 0, 0.0);
        // 2 3 came before, and 4 followed: 0.5 · 2^(2-2)
        check(&[2, 3, 4, 2, 3], 4, 0.5);
        check(&[1, 2, 3, 4, 1, 2, 3], 4, 1.0);
        check(&[0, 1, 2, 3, 4, 0, 1, 2, 3], 4, 2.0);
        // of two occurrences the longer one counts
        check(&[1, 2, 3, 4, 5, 2, 3, 4, 1, 2, 3], 4, 1.0);
    }

    #[test]
    fn a_run_of_one_token_repeats_itself() {
        // 5 5 5 5: the newest three were followed by 5.
        assert_eq!(penalties(&settings(), &[5, 5, 5, 5])[5], 1.0);
        assert_eq!(penalties(&settings(), &[5, 5])[5], 0.0);
    }

    #[test]
    fn each_parameter_does_what_it_says() {
        let history = [1, 2, 3, 4, 1, 2, 3];
        let of = |settings: DrySettings| penalties(&settings, &history)[4];
        assert_eq!(of(DrySettings { allowed_length: 3, ..settings() }), 0.5);
        assert_eq!(of(DrySettings { allowed_length: 4, ..settings() }), 0.0);
        assert_eq!(of(DrySettings { allowed_length: 1, ..settings() }), 2.0);
        assert_eq!(of(DrySettings { last_n: Some(6), ..settings() }), 0.5);
        assert_eq!(of(DrySettings { last_n: Some(4), ..settings() }), 0.0);
        assert_eq!(of(DrySettings { base: 1.75, multiplier: 0.8, ..settings() }), 0.8 * 1.75);
        assert!(
            of(DrySettings { base: 1e30, multiplier: 1e30, allowed_length: 0, ..settings() }).is_finite()
        );
        assert!(!DrySettings::default().is_on() && settings().is_on());
        assert!(!DrySettings { base: 0.5, ..settings() }.is_on());
    }

    #[test]
    fn breakers_end_repetitions() {
        let with = |breakers: &[(TokenId, &[TokenId])]| {
            let mut map: BTreeMap<TokenId, Vec<Vec<TokenId>>> = BTreeMap::new();
            for (id, tail) in breakers {
                map.entry(*id).or_default().push(tail.to_vec());
            }
            DrySettings { breakers: SequenceBreakers(map), ..settings() }
        };
        let history = [1, 2, 3, 4, 1, 2, 3];
        assert_eq!(penalties(&with(&[(6, &[])]), &history)[4], 1.0);
        assert_eq!(penalties(&with(&[(1, &[])]), &history)[4], 0.5, "2 3 is left");
        assert_eq!(penalties(&with(&[(2, &[])]), &history)[4], 0.0, "3 is left");
        assert_eq!(penalties(&with(&[(1, &[2])]), &history)[4], 0.0, "1 2 is a breaker");
        assert_eq!(penalties(&with(&[(1, &[4])]), &history)[4], 1.0, "1 4 is none");
    }

    /// A plain search, against the linear one.
    #[test]
    fn matches_are_those_of_a_plain_search() {
        let mut rng = crate::sampler::Rng::new(3);
        let mut found = Vec::new();
        for _ in 0..200 {
            let text: Vec<TokenId> =
                (0..rng.next_u64() % 40).map(|_| (rng.next_u64() % 3) as TokenId).collect();
            match_prefix(&text, &mut found);
            for at in 1..text.len() {
                let plain = text.iter().zip(&text[at..]).take_while(|(a, b)| a == b).count();
                assert_eq!(found[at], plain, "{text:?} {at}");
            }
        }
    }

    #[test]
    fn dry_and_xtc_are_stages_of_the_chain() {
        let dry = DrySettings { multiplier: 4.0, allowed_length: 1, ..DrySettings::default() };
        let greedy = Sampling { temperature: 0.0, dry, ..Sampling::default() };
        let mut chain = SamplerChain::new(&greedy, 4);
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0, 0.0], &[1, 0]), Some(0));
        assert_eq!(chain.sample(&[3.0, 2.0, 1.0, 0.0], &[1, 0, 1]), Some(1), "0 followed 1 before");
        let xtc = XtcSettings { probability: 1.0, threshold: 0.1 };
        let sampling = Sampling { temperature: 1.0, top_k: 2, min_p: 0.0, xtc, ..Sampling::default() };
        let logits: Vec<f32> = [0.15f32, 0.5, 0.05, 0.3].iter().map(|p| p.ln()).collect();
        let mut chain = SamplerChain::new(&sampling, 4);
        assert!((0..50).all(|_| chain.sample(&logits, &[]) == Some(3)), "the second of the two most likely");
    }
}
