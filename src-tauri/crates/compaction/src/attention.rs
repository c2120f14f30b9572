//! Attention: the prompt stays complete; the model's state forgets, per layer and head, the tokens
//! that the newest ones attend to least. Not exact, unlike the others: remaining tokens have seen
//! the evicted ones, and move up to their positions.

use super::{CompactedView, Compressor, Next, PromptDraft, TokenBudget, Transcript};

/// The newest tokens that are kept, as a part of those that are kept at all.
const PROTECTED: usize = 4;

pub struct Attention;

impl Compressor for Attention {
    fn next<E>(
        &self,
        talk: &Transcript,
        room: TokenBudget,
        count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
    ) -> Result<Next, E> {
        // The last question has to stand in the context whole.
        let last = CompactedView { n_turns: talk.n_turns.saturating_sub(1), summaries: Vec::new() };
        let n_least = count(&PromptDraft::Shown(&last))?;
        if n_least > room.budget {
            return Ok(Next::TooLong { n_least });
        }
        Ok(Next::Forget { n_most: room.budget, n_keep: room.aim, n_protected: room.aim / PROTECTED })
    }
}
