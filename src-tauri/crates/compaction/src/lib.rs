//! Which parts of a conversation a model sees when not all of it fits: one file per strategy, plain
//! data in and out. A strategy sees the conversation's turns, can have any candidate counted
//! exactly, and decides the next step. It knows nothing of texts, models or the database, and
//! changes no message.
#![forbid(unsafe_code)]

use std::ops::Range;

pub use contract::CompactionMethod as Strategy;
use serde::{Deserialize, Serialize};

mod attention;
mod summary;
mod window;

pub use attention::Attention;
pub use summary::{ASK, ASKED, Summary};
pub use window::Window;

/// What this strategy does next; see `Compressor::next`.
pub fn next<E>(
    strategy: Strategy,
    talk: &Transcript,
    room: TokenBudget,
    count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
) -> Result<Next, E> {
    match strategy {
        Strategy::Window => Window.next(talk, room, count),
        Strategy::Summary => Summary.next(talk, room, count),
        Strategy::Attention => Attention.next(talk, room, count),
    }
}

/// What it would have made while nothing is answered, so that it is there when it is needed.
pub fn ahead<E>(
    strategy: Strategy,
    talk: &Transcript,
    room: TokenBudget,
    count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
) -> Result<Option<SummaryRequest>, E> {
    match strategy {
        Strategy::Window | Strategy::Attention => Ok(None),
        Strategy::Summary => Summary.ahead(talk, room, count),
    }
}

/// A conversation, counted in turns: a question with all that answers it. What stands before the first of them, the
/// system prompt, always stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The last one is to be answered.
    pub n_turns: usize,
    /// Turns that are left out already.
    pub n_compacted: usize,
    /// What the model has made of stretches of it.
    pub summaries: Vec<TurnSummary>,
}

/// A summary: the turns that it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSummary {
    pub turns: Range<usize>,
    /// 0: of messages; else of summaries of the level below.
    pub level: u32,
}

/// In tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    /// What the context holds: a prompt never has more.
    pub limit: usize,
    /// A prompt with more leaves too little for an answer.
    pub budget: usize,
    /// Target size of a shortened prompt: far enough below the budget that many turns pass until
    /// the next cut, and the model's state stays useful until then.
    pub aim: usize,
}

/// Longer summaries take longer to write than they are worth, however much room there is. Tokens.
const MAX_SUMMARY: usize = 512;

/// Of the context this part is left to the answer, unless less is asked for.
const ANSWER: usize = 4;

impl TokenBudget {
    /// For a context of `n_ctx` tokens and an answer of at most `max_tokens`.
    pub fn new(n_ctx: usize, max_tokens: Option<usize>) -> Self {
        let answer = max_tokens.unwrap_or(n_ctx).min(n_ctx / ANSWER);
        let budget = n_ctx - answer;
        Self { limit: n_ctx, budget, aim: budget / 2 }
    }

    /// Room for the same in half the tokens that it has now, if that is less.
    pub fn halved(self, n_tokens: usize) -> Self {
        Self { aim: self.aim.min(n_tokens / 2), ..self }
    }

    /// Most tokens of a summary.
    pub fn summary(self) -> usize {
        (self.aim / 4).clamp(1, MAX_SUMMARY)
    }
}

/// A way to show the conversation: without its first turns, and summaries in their place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedView {
    /// First turns that are left out.
    pub n_turns: usize,
    /// Indices of the summaries that stand there, in order.
    pub summaries: Vec<usize>,
}

/// A summary that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryRequest {
    /// Summaries that it continues, or that it is made of where it is one of summaries; indices.
    pub after: Vec<usize>,
    /// Turns that it reads; empty: it is made of summaries.
    pub turns: Range<usize>,
    pub level: u32,
    /// Most tokens that it may have.
    pub n_tokens: usize,
}

/// A prompt to be counted.
#[derive(Debug, Clone, Copy)]
pub enum PromptDraft<'a> {
    Shown(&'a CompactedView),
    /// The prompt that asks for a summary.
    Asking(&'a SummaryRequest),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Show it so: it fits.
    Compact(CompactedView),
    /// Have this made, then ask again.
    SummaryRequest(SummaryRequest),
    /// Show all of it, and let the state of the model forget tokens down to `n_keep` whenever it has `n_most`; the
    /// newest `n_protected` stay.
    Forget { n_most: usize, n_keep: usize, n_protected: usize },
    /// It takes at least `n_least` tokens.
    TooLong { n_least: usize },
}

/// One strategy.
pub trait Compressor {
    /// The next step towards a prompt of at most `room.budget` tokens. `count` says exactly how many a prompt has.
    fn next<E>(
        &self,
        talk: &Transcript,
        room: TokenBudget,
        count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
    ) -> Result<Next, E>;
}

/// The least number of first turns in `range` without which `count` gives at most `aim`; None: there is none.
/// `count` falls as more are left out; where a template makes it waver, the answer still holds.
fn fewest<E>(
    range: Range<usize>,
    aim: usize,
    count: &mut dyn FnMut(usize) -> Result<usize, E>,
) -> Result<Option<usize>, E> {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        match count(middle)? <= aim {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    for n in low..range.end {
        if count(n)? <= aim {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
