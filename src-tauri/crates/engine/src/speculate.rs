//! Speculation: guesses at the next tokens, which one run of the model checks together.
//!
//! Exact: every token is still drawn from the model's own logits by the request's own sampler, in order; a guess only
//! decides how many positions one run computes. What was guessed wrong is taken back. Which guesses are worth a row
//! follows from counts of what came true and from what runs cost, so that speculation ends by itself where it doesn't
//! pay, and begins again where it would.

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

/// Where guesses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftSource {
    /// Earlier places of the text itself.
    Lookup,
    /// The scheduler's draft model; without one there are no guesses.
    Model,
}

/// How many guesses are checked in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftLength {
    /// As many as pay, at most so many.
    Paying(usize),
    /// Always so many where there are guesses; for tests and measurements.
    Always(usize),
}

/// How a request speculates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculation {
    pub source: DraftSource,
    pub length: DraftLength,
}

/// DraftSource that one run checks at most. A cancel waits for a run, and windows keep `kv::size::WINDOW_REWIND_TOKENS` positions to go
/// back over.
pub const MAX_DRAFT_TOKENS: usize = 48;

/// The longest draft where none is asked for: longer ones hardly pay more, and the text would come in lumps.
pub const DEFAULT_DRAFT_TOKENS: usize = 32;

/// DraftSource that are less likely to be reached are not even considered.
const MIN_CHANCE: f32 = 0.02;

impl DraftLength {
    pub fn most(self) -> usize {
        let (Self::Paying(n) | Self::Always(n)) = self;
        n.min(MAX_DRAFT_TOKENS)
    }
}

/// The guesses at one text.
#[derive(Debug)]
pub(crate) struct Drafter {
    pub speculation: Speculation,
    source: DrafterState,
    acceptance: AcceptanceStats,
    /// DraftSource at the tokens to come, and the chance that each and all before it come true.
    draft: Vec<TokenId>,
    chances: Vec<f32>,
}

#[derive(Debug)]
enum DrafterState {
    Lookup(PromptLookup),
    Model(DraftModelStats),
}

/// What the draft model's guesses were worth so far.
#[derive(Debug)]
struct DraftModelStats {
    /// of each guess of the draft
    evidence: Vec<DraftEvidence>,
    /// guesses of it that came true; None: one didn't
    n_true: Option<usize>,
    /// tokens for the cost of a plain one, fading
    speed: f32,
    /// tokens until it guesses again, and how long the next pause is
    n_paused: usize,
    pause: usize,
}

/// Tokens without a draft after drafts didn't pay, the first time and at most.
const PAUSE: (usize, usize) = (16, 512);

/// What one draft says of the speed.
const SPEED_STEP: f32 = 0.2;

impl Drafter {
    /// For a text of at most `n_ctx` tokens that begins with `history`.
    pub fn new(speculation: Speculation, n_ctx: usize, history: &[TokenId]) -> Self {
        let n = speculation.length.most();
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

    /// DraftSource what follows `history`, at most `n` tokens. True: the draft model is to guess.
    pub fn guess(&mut self, history: &[TokenId], n: usize) -> bool {
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
        lookup.guess(history, n.min(self.speculation.length.most()), &mut self.draft);
        for at in 0..self.draft.len() {
            // every guess that comes true makes the match longer
            let chance = self.chance(DraftEvidence::Match(n_matched + at));
            if chance < MIN_CHANCE {
                self.draft.truncate(at);
                break;
            }
            self.chances.push(chance);
        }
        false
    }

    /// A guess of the draft model; the chance that it and all before it come true.
    pub fn add(&mut self, guess: TokenId, evidence: DraftEvidence) -> f32 {
        let chance = self.chance(evidence);
        self.draft.push(guess);
        self.chances.push(chance);
        if let DrafterState::Model(ahead) = &mut self.source {
            ahead.evidence.push(evidence);
        }
        chance
    }

    /// Of the next guess; 1 where it is checked in any case.
    fn chance(&self, evidence: DraftEvidence) -> f32 {
        match self.speculation.length {
            DraftLength::Paying(_) => self.chances.last().unwrap_or(&1.0) * self.acceptance.rate(evidence),
            DraftLength::Always(_) => 1.0,
        }
    }

    /// The last guesses.
    pub fn draft(&self) -> &[TokenId] {
        &self.draft
    }

    /// For each of them, how likely it is that it and all before it come true; 1 where it is checked in any case.
    pub fn chances(&self) -> &[f32] {
        &self.chances
    }

    /// The last token of `history` has come.
    pub fn observe(&mut self, history: &[TokenId]) {
        let (Some(&token), before) = (history.last(), &history[..history.len() - 1]) else { return };
        match &mut self.source {
            DrafterState::Lookup(lookup) => {
                if let (Some(n), Some(guess)) = (lookup.n_matched(), lookup.next(before)) {
                    self.acceptance.observe(DraftEvidence::Match(n), token == guess);
                }
                lookup.observe(history);
            }
            DrafterState::Model(ahead) => {
                ahead.n_paused = ahead.n_paused.saturating_sub(1);
                let Some(at) = ahead.n_true else { return };
                let (Some(&guess), Some(&evidence)) = (self.draft.get(at), ahead.evidence.get(at)) else {
                    return;
                };
                self.acceptance.observe(evidence, token == guess);
                ahead.n_true = (token == guess).then_some(at + 1);
            }
        }
    }

    /// The draft brought `n_tokens` for the cost of so many plain ones. Where that doesn't pay, the draft model pauses.
    pub fn record_payoff(&mut self, n_tokens: usize, cost: f32) {
        let DrafterState::Model(ahead) = &mut self.source else { return };
        ahead.speed += SPEED_STEP * (n_tokens as f32 / cost.max(f32::MIN_POSITIVE) - ahead.speed);
        if ahead.speed < 1.0 {
            ahead.n_paused = ahead.pause;
            ahead.pause = (ahead.pause * 2).min(PAUSE.1);
            // one draft after the pause decides
            ahead.speed = 1.0;
        } else if ahead.speed > 1.1 {
            ahead.pause = PAUSE.0;
        }
    }
}
