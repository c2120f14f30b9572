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
mod odds;
mod plan;

pub use costs::Costs;
pub use lookup::Lookup;
pub use odds::{Clue, Odds};
pub(crate) use plan::{Base, Candidate, Plan};

/// Where guesses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guesses {
    /// Earlier places of the text itself.
    Lookup,
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
pub const DEFAULT_DRAFT: usize = 24;

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
    lookup: Lookup,
    odds: Odds,
    /// Guesses at the tokens to come, and the chance that each and all before it come true.
    draft: Vec<TokenId>,
    chances: Vec<f32>,
}

impl Guesser {
    /// For a text of at most `n_ctx` tokens that begins with `history`.
    pub fn new(speculation: Speculation, n_ctx: usize, history: &[TokenId]) -> Self {
        let mut lookup = Lookup::new(n_ctx);
        lookup.saw(history);
        let n = speculation.length.most();
        let (draft, chances) = (Vec::with_capacity(n), Vec::with_capacity(n));
        Self { speculation, lookup, odds: Odds::default(), draft, chances }
    }

    /// Guesses what follows `history`, at most `n` tokens.
    pub fn guess(&mut self, history: &[TokenId], n: usize) {
        self.draft.clear();
        self.chances.clear();
        let Some(n_matched) = self.lookup.n_matched() else { return };
        self.lookup.guess(history, n.min(self.speculation.length.most()), &mut self.draft);
        let mut chance = 1.0;
        for at in 0..self.draft.len() {
            // every guess that comes true makes the match longer
            match self.speculation.length {
                DraftLength::Paying(_) => chance *= self.odds.of(Clue::Match(n_matched + at)),
                DraftLength::Always(_) => {}
            }
            if chance < LEAST_CHANCE {
                return self.draft.truncate(at);
            }
            self.chances.push(chance);
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
        let before = &history[..history.len() - 1];
        if let (Some(n), Some(guess)) = (self.lookup.n_matched(), self.lookup.next(before)) {
            self.odds.saw(Clue::Match(n), history.last() == Some(&guess));
        }
        self.lookup.saw(history);
    }
}
