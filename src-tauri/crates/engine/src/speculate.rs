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
mod costs;
mod draft_model;
mod plan;
mod prompt_lookup;

pub use acceptance::{AcceptanceStats, DraftEvidence};
pub use costs::RunCosts;
pub(crate) use draft_model::DraftModel;
pub(crate) use plan::{DraftCandidate, DraftPlan, UndraftedRun};
pub use prompt_lookup::PromptLookup;

/// Where drafts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftSource {
    /// Earlier occurrences in the text itself.
    Lookup,
    /// The scheduler's draft model. Without one there are no drafts.
    Model,
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
    source: DrafterState,
    acceptance: AcceptanceStats,
    /// Drafted tokens, and for each the probability that it and all before it are accepted.
    draft: Vec<TokenId>,
    chances: Vec<f32>,
}

#[derive(Debug)]
enum DrafterState {
    Lookup(PromptLookup),
    Model(DraftModelStats),
}

/// Payoff of the draft model so far.
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
const PAUSE: (usize, usize) = (16, 512);

/// Weight of one draft in the moving average.
const SPEED_STEP: f32 = 0.2;

impl Drafter {
    /// Creates a drafter for a text of at most `n_ctx` tokens that begins with `history`.
    pub fn new(speculation: Speculation, n_ctx: usize, history: &[TokenId]) -> Self {
        let n = speculation.length.max_tokens();
        let source = match speculation.source {
            DraftSource::Lookup => {
                let mut lookup = PromptLookup::new(n_ctx);
                lookup.observe(history);
                DrafterState::Lookup(lookup)
            }
            DraftSource::Model => {
                let evidence = Vec::with_capacity(n);
                DrafterState::Model(DraftModelStats {
                    evidence,
                    n_true: None,
                    speed: 1.2,
                    n_paused: 0,
                    pause: PAUSE.0,
                })
            }
        };
        let (draft, chances) = (Vec::with_capacity(n), Vec::with_capacity(n));
        Self { speculation, source, acceptance: AcceptanceStats::default(), draft, chances }
    }

    /// Drafts what follows `history`, at most `n` tokens. Returns true if the draft model is to draft instead.
    pub fn propose(&mut self, history: &[TokenId], n: usize) -> bool {
        self.draft.clear();
        self.chances.clear();
        let lookup = match &mut self.source {
            DrafterState::Lookup(lookup) => lookup,
            DrafterState::Model(ahead) => {
                ahead.evidence.clear();
                ahead.n_true = Some(0);
                return match self.speculation.length {
                    DraftLength::Paying(_) => ahead.n_paused == 0,
                    DraftLength::Always(_) => true,
                };
            }
        };
        let Some(n_matched) = lookup.n_matched() else { return false };
        lookup.propose(history, n.min(self.speculation.length.max_tokens()), &mut self.draft);
        for at in 0..self.draft.len() {
            // Every accepted token makes the match longer.
            let chance = self.chance(DraftEvidence::Match(n_matched + at));
            if chance < MIN_CHANCE {
                self.draft.truncate(at);
                break;
            }
            self.chances.push(chance);
        }
        false
    }

    /// Adds a token of the draft model. Returns the probability that it and all before it are accepted.
    pub fn add(&mut self, drafted: TokenId, evidence: DraftEvidence) -> f32 {
        let chance = self.chance(evidence);
        self.draft.push(drafted);
        self.chances.push(chance);
        if let DrafterState::Model(ahead) = &mut self.source {
            ahead.evidence.push(evidence);
        }
        chance
    }

    /// Probability for the next token. 1 if it is checked in any case.
    fn chance(&self, evidence: DraftEvidence) -> f32 {
        match self.speculation.length {
            DraftLength::Paying(_) => self.chances.last().unwrap_or(&1.0) * self.acceptance.rate(evidence),
            DraftLength::Always(_) => 1.0,
        }
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
        match &mut self.source {
            DrafterState::Lookup(lookup) => {
                if let (Some(n), Some(drafted)) = (lookup.n_matched(), lookup.next(before)) {
                    self.acceptance.observe(DraftEvidence::Match(n), token == drafted);
                }
                lookup.observe(history);
            }
            DrafterState::Model(ahead) => {
                ahead.n_paused = ahead.n_paused.saturating_sub(1);
                let Some(at) = ahead.n_true else { return };
                let (Some(&drafted), Some(&evidence)) = (self.draft.get(at), ahead.evidence.get(at)) else {
                    return;
                };
                self.acceptance.observe(evidence, token == drafted);
                ahead.n_true = (token == drafted).then_some(at + 1);
            }
        }
    }

    /// Records that a draft yielded `n_tokens` for the cost of that many plain ones. If drafts do not pay, the draft
    /// model pauses.
    pub fn record_payoff(&mut self, n_tokens: usize, cost: f32) {
        let DrafterState::Model(ahead) = &mut self.source else { return };
        ahead.speed += SPEED_STEP * (n_tokens as f32 / cost.max(f32::MIN_POSITIVE) - ahead.speed);
        if ahead.speed < 1.0 {
            ahead.n_paused = ahead.pause;
            ahead.pause = (ahead.pause * 2).min(PAUSE.1);
            // One draft after the pause decides.
            ahead.speed = 1.0;
        } else if ahead.speed > 1.1 {
            ahead.pause = PAUSE.0;
        }
    }
}
