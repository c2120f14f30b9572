//! Speculative decoding: drafted tokens that one run of the model checks together.
//!
//! Exact: every token is sampled from the model's own logits by the request's sampler, in order. A draft only decides
//! how many positions one run computes, and rejected tokens are removed.
//!
//! Measured acceptance rates and run times decide how many tokens are worth a row. Speculation stops by itself where
//! it does not pay, and resumes where it would.

use serde::{Deserialize, Serialize};

use crate::TokenId;

mod acceptance;
mod assistant;
mod context_tokens;
mod costs;
mod draft_block;
mod draft_model;
mod plan;
mod prompt_lookup;
mod script;

pub use acceptance::{AcceptanceStats, DraftEvidence};
pub(crate) use assistant::propose_by_assistant;
use context_tokens::ContextTokens;
pub use costs::RunCosts;
pub(crate) use draft_block::{BlockText, PendingHidden, propose_by_block};
pub(crate) use draft_model::DraftModel;
pub(crate) use plan::{DraftCandidate, DraftPlan, UndraftedRun};
pub use prompt_lookup::PromptLookup;
pub use script::Script;

/// Where drafts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftSource {
    /// Earlier occurrences in the text itself.
    Lookup,
    /// The scheduler's draft model. Without one there are no drafts.
    Model,
    /// The model's own draft block or its assistant, where it was loaded with one, and earlier occurrences in the text.
    Block,
}

/// How many drafted tokens one run checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftLength {
    /// As many as pay, up to this bound.
    Paying(usize),
    /// Always this many, for tests and measurements.
    Always(usize),
}

/// How a request speculates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculation {
    /// Where drafts come from.
    pub source: DraftSource,
    /// How many tokens are drafted.
    pub length: DraftLength,
}

/// Drafted tokens that one run checks at most. A cancellation waits for a run, and windows keep
/// `kv::size::WINDOW_REWIND_TOKENS` positions to rewind over.
pub const MAX_DRAFT_TOKENS: usize = 48;
// A GPU multiplies a draft under verification as it does an answer.
const _: () = assert!(MAX_DRAFT_TOKENS + 1 < kernels::MIN_PROMPT_ROWS);

/// Default bound. Longer drafts hardly pay more, and text would arrive in bursts.
pub const DEFAULT_DRAFT_TOKENS: usize = 32;

/// Tokens that are less likely to be reached are not drafted.
const MIN_CHANCE: f32 = 0.02;

impl DraftLength {
    /// Returns the bound, at most `MAX_DRAFT_TOKENS`.
    pub fn max_tokens(self) -> usize {
        let (Self::Paying(n) | Self::Always(n)) = self;
        n.min(MAX_DRAFT_TOKENS)
    }
}

/// Drafts for one text.
#[derive(Debug)]
pub(crate) struct Drafter {
    pub speculation: Speculation,
    /// `None`: nothing is drafted from the text.
    lookup: Option<PromptLookup>,
    /// `None`: no draft model or draft block drafts.
    ahead: Option<DraftModelStats>,
    acceptance: AcceptanceStats,
    /// Drafted tokens, and for each the probability that it and all before it are accepted.
    draft: Vec<TokenId>,
    chances: Vec<f32>,
    /// What a draft block may draft beside the common tokens.
    context: ContextTokens,
}

/// Payoff of the draft model or the draft block so far.
#[derive(Debug)]
struct DraftModelStats {
    /// One per drafted token.
    evidence: Vec<DraftEvidence>,
    /// Accepted tokens of the draft. `None` after a rejection.
    n_true: Option<usize>,
    /// Moving average of tokens per cost of a plain token.
    speed: f32,
    /// Tokens until the next draft, and the length of the next pause.
    n_paused: usize,
    pause: usize,
}

/// Tokens without a draft after drafts did not pay: first pause, and longest.
const PAUSE: (usize, usize) = (16, 256);

/// Where a match is at least as likely to come true, the draft block does not draft.
const CERTAIN_MATCH: f32 = 0.85;

/// Weight of one draft in the moving average. Drafts that pay are often wrong, also several times in a row.
const SPEED_STEP: f32 = 0.08;

/// Speed that is assumed after a pause: a few wrong drafts begin another.
const RESUMED_SPEED: f32 = 1.06;

impl Drafter {
    /// Creates a drafter for a text of at most `n_ctx` tokens that begins with `history`.
    pub fn new(speculation: Speculation, n_ctx: usize, history: &[TokenId]) -> Self {
        let n = speculation.length.max_tokens();
        let (looks_up, asks) = match speculation.source {
            DraftSource::Lookup => (true, false),
            DraftSource::Model => (false, true),
            DraftSource::Block => (true, true),
        };
        let lookup = looks_up.then(|| {
            let mut lookup = PromptLookup::new(n_ctx);
            lookup.observe(history);
            lookup
        });
        let ahead = asks.then(|| DraftModelStats {
            evidence: Vec::with_capacity(n),
            n_true: None,
            speed: 1.2,
            n_paused: 0,
            pause: PAUSE.0,
        });
        let (draft, chances) = (Vec::with_capacity(n), Vec::with_capacity(n));
        Self {
            speculation,
            lookup,
            ahead,
            acceptance: AcceptanceStats::default(),
            draft,
            chances,
            context: ContextTokens::default(),
        }
    }

    /// Drafts what follows `history`, at most `n` tokens. Returns true if the draft model or the draft block is to draft
    /// instead.
    pub fn propose(&mut self, history: &[TokenId], n: usize) -> bool {
        self.draft.clear();
        self.chances.clear();
        self.propose_from_text(history, n);
        let Some(ahead) = &mut self.ahead else { return false };
        ahead.evidence.clear();
        ahead.n_true = None;
        let is_due = match self.speculation.length {
            DraftLength::Paying(_) => ahead.n_paused == 0,
            DraftLength::Always(_) => true,
        };
        // A certain match costs nothing.
        if !is_due || self.chances.first().is_some_and(|&chance| chance >= CERTAIN_MATCH) {
            return false;
        }
        ahead.n_true = Some(0);
        self.draft.clear();
        self.chances.clear();
        true
    }

    fn propose_from_text(&mut self, history: &[TokenId], n: usize) {
        let Some(lookup) = &self.lookup else { return };
        let Some(n_matched) = lookup.n_matched() else { return };
        // With a draft block as well, only real probabilities tell which of the two is to draft.
        let is_free = self.ahead.is_none();
        lookup.propose(history, n.min(self.speculation.length.max_tokens()), &mut self.draft);
        for at in 0..self.draft.len() {
            // Every accepted token makes the match longer.
            let evidence = DraftEvidence::Match(n_matched + at);
            let chance = if is_free { self.chance(evidence) } else { self.measured_chance(evidence) };
            if chance < MIN_CHANCE {
                self.draft.truncate(at);
                break;
            }
            self.chances.push(chance);
        }
    }

    /// Adds a token of the draft model or the draft block. Returns the probability that it and all before it are accepted.
    pub fn add(&mut self, drafted: TokenId, evidence: DraftEvidence) -> f32 {
        let chance = self.chance(evidence);
        self.draft.push(drafted);
        self.chances.push(chance);
        self.ahead.iter_mut().for_each(|ahead| ahead.evidence.push(evidence));
        chance
    }

    /// Probability for the next token. 1 if it is checked in any case.
    fn chance(&self, evidence: DraftEvidence) -> f32 {
        match self.speculation.length {
            DraftLength::Paying(_) => self.measured_chance(evidence),
            DraftLength::Always(_) => 1.0,
        }
    }

    fn measured_chance(&self, evidence: DraftEvidence) -> f32 {
        self.chances.last().unwrap_or(&1.0) * self.acceptance.rate(evidence)
    }

    /// Returns how many tokens of the last draft are of the draft model or the draft block.
    pub fn n_asked(&self) -> usize {
        self.ahead.as_ref().map_or(0, |ahead| ahead.evidence.len())
    }

    /// Returns the last draft.
    pub fn draft(&self) -> &[TokenId] {
        &self.draft
    }

    /// Returns for each drafted token the probability that it and all before it are accepted. 1 if it is checked in
    /// any case.
    pub fn chances(&self) -> &[f32] {
        &self.chances
    }

    /// Observes the last token of `history`.
    pub fn observe(&mut self, history: &[TokenId]) {
        let (Some(&token), before) = (history.last(), &history[..history.len() - 1]) else { return };
        if let Some(lookup) = &mut self.lookup {
            if let (Some(n), Some(drafted)) = (lookup.n_matched(), lookup.next(before)) {
                self.acceptance.observe(DraftEvidence::Match(n), token == drafted);
            }
            lookup.observe(history);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.n_paused = ahead.n_paused.saturating_sub(1);
            let Some(at) = ahead.n_true else { return };
            let (Some(&drafted), Some(&evidence)) = (self.draft.get(at), ahead.evidence.get(at)) else {
                return;
            };
            self.acceptance.observe(evidence, token == drafted);
            ahead.n_true = (token == drafted).then_some(at + 1);
        }
    }

    /// Records that a draft yielded `n_tokens` for the cost of that many plain ones. If drafts do not pay, the draft
    /// model pauses.
    pub fn record_payoff(&mut self, n_tokens: usize, cost: f32) {
        let Some(ahead) = &mut self.ahead else { return };
        ahead.speed += SPEED_STEP * (n_tokens as f32 / cost.max(f32::MIN_POSITIVE) - ahead.speed);
        if ahead.speed < 1.0 {
            ahead.n_paused = ahead.pause;
            ahead.pause = (ahead.pause * 2).min(PAUSE.1);
            ahead.speed = RESUMED_SPEED;
        } else if ahead.speed > 1.15 {
            ahead.pause = PAUSE.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of runs with a draft, where each of three drafted tokens is right with this chance.
    fn drafting_share(chance: f32) -> f32 {
        let speculation = Speculation { source: DraftSource::Model, length: DraftLength::Paying(3) };
        let (mut drafter, mut state) = (Drafter::new(speculation, 100_000, &[]), 7u64);
        let mut is_right = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 24) as f32) < chance
        };
        let (mut history, mut n_runs, mut n_drafts) = (vec![0], 0, 0);
        while history.len() < 4000 {
            n_runs += 1;
            let mut n_tokens = 1;
            if drafter.propose(&history, 3) {
                n_drafts += 1;
                n_tokens += (0..3).take_while(|_| is_right()).count();
                // A run of four rows, and three drafts.
                drafter.record_payoff(n_tokens, 1.6);
            }
            for _ in 0..n_tokens {
                history.push(0);
                drafter.observe(&history);
            }
        }
        n_drafts as f32 / n_runs as f32
    }

    #[test]
    fn drafts_go_on_where_they_pay_and_pause_where_they_do_not() {
        // 2.5 tokens from a run that costs 1.6: some wrong drafts in a row are no reason to stop.
        assert!(drafting_share(0.7) > 0.97, "{}", drafting_share(0.7));
        // 1.25 tokens.
        assert!(drafting_share(0.2) < 0.1, "{}", drafting_share(0.2));
        assert!(drafting_share(0.0) < 0.03, "{}", drafting_share(0.0));
    }
}
