//! Speculation: guesses at the next tokens, which one run of the model checks together.
//!
//! Exact: every token is still drawn from the model's own logits by the request's own sampler, in order; a guess only
//! decides how many positions one run computes. What was guessed wrong is taken back. Which guesses are worth a row
//! follows from counts of what came true and from what runs cost, so that speculation ends by itself where it doesn't
//! pay, and begins again where it would.

use serde::{Deserialize, Serialize};

use crate::TokenId;

mod costs;
mod lookup;
mod model;
mod odds;
mod plan;

pub use costs::Costs;
pub use lookup::Lookup;
pub(crate) use model::DraftModel;
pub use odds::{Clue, Odds};
pub(crate) use plan::{Base, Candidate, Plan};

/// Where guesses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guesses {
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
    pub guesses: Guesses,
    pub length: DraftLength,
}

/// Guesses that one run checks at most. A cancel waits for a run, and windows keep `kv::size::REWIND` positions to go
/// back over.
pub const LONGEST_DRAFT: usize = 48;

/// The longest draft where none is asked for: longer ones hardly pay more, and the text would come in lumps.
pub const DEFAULT_DRAFT: usize = 32;

/// Guesses that are less likely to be reached are not even considered.
const LEAST_CHANCE: f32 = 0.02;

impl DraftLength {
    pub fn most(self) -> usize {
        let (Self::Paying(n) | Self::Always(n)) = self;
        n.min(LONGEST_DRAFT)
    }
}

/// The guesses at one text.
#[derive(Debug)]
pub(crate) struct Guesser {
    pub speculation: Speculation,
    source: Source,
    odds: Odds,
    /// Guesses at the tokens to come, and the chance that each and all before it come true.
    draft: Vec<TokenId>,
    chances: Vec<f32>,
}

#[derive(Debug)]
enum Source {
    Lookup(Lookup),
    Model(Ahead),
}

/// What the draft model's guesses were worth so far.
#[derive(Debug)]
struct Ahead {
    /// of each guess of the draft
    clues: Vec<Clue>,
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

impl Guesser {
    /// For a text of at most `n_ctx` tokens that begins with `history`.
    pub fn new(speculation: Speculation, n_ctx: usize, history: &[TokenId]) -> Self {
        let n = speculation.length.most();
        let source = match speculation.guesses {
            Guesses::Lookup => {
                let mut lookup = Lookup::new(n_ctx);
                lookup.saw(history);
                Source::Lookup(lookup)
            }
            Guesses::Model => {
                let clues = Vec::with_capacity(n);
                Source::Model(Ahead { clues, n_true: None, speed: 1.2, n_paused: 0, pause: PAUSE.0 })
            }
        };
        let (draft, chances) = (Vec::with_capacity(n), Vec::with_capacity(n));
        Self { speculation, source, odds: Odds::default(), draft, chances }
    }

    /// Guesses what follows `history`, at most `n` tokens. True: the draft model is to guess.
    pub fn guess(&mut self, history: &[TokenId], n: usize) -> bool {
        self.draft.clear();
        self.chances.clear();
        let lookup = match &mut self.source {
            Source::Lookup(lookup) => lookup,
            Source::Model(ahead) => {
                ahead.clues.clear();
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
            let chance = self.chance(Clue::Match(n_matched + at));
            if chance < LEAST_CHANCE {
                self.draft.truncate(at);
                break;
            }
            self.chances.push(chance);
        }
        false
    }

    /// A guess of the draft model; the chance that it and all before it come true.
    pub fn add(&mut self, guess: TokenId, clue: Clue) -> f32 {
        let chance = self.chance(clue);
        self.draft.push(guess);
        self.chances.push(chance);
        if let Source::Model(ahead) = &mut self.source {
            ahead.clues.push(clue);
        }
        chance
    }

    /// Of the next guess; 1 where it is checked in any case.
    fn chance(&self, clue: Clue) -> f32 {
        match self.speculation.length {
            DraftLength::Paying(_) => self.chances.last().unwrap_or(&1.0) * self.odds.of(clue),
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
    pub fn saw(&mut self, history: &[TokenId]) {
        let (Some(&token), before) = (history.last(), &history[..history.len() - 1]) else { return };
        match &mut self.source {
            Source::Lookup(lookup) => {
                if let (Some(n), Some(guess)) = (lookup.n_matched(), lookup.next(before)) {
                    self.odds.saw(Clue::Match(n), token == guess);
                }
                lookup.saw(history);
            }
            Source::Model(ahead) => {
                ahead.n_paused = ahead.n_paused.saturating_sub(1);
                let Some(at) = ahead.n_true else { return };
                let (Some(&guess), Some(&clue)) = (self.draft.get(at), ahead.clues.get(at)) else { return };
                self.odds.saw(clue, token == guess);
                ahead.n_true = (token == guess).then_some(at + 1);
            }
        }
    }

    /// The draft brought `n_tokens` for the cost of so many plain ones. Where that doesn't pay, the draft model pauses.
    pub fn paid(&mut self, n_tokens: usize, cost: f32) {
        let Source::Model(ahead) = &mut self.source else { return };
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
