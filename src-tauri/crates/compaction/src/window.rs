//! The sliding window: the system prompt and the newest turns stay, the oldest are dropped. Keys
//! are recomputed, not rotated. Rotated keys would still depend on dropped tokens and add rounding;
//! a recomputed prompt is exactly the prompt that is shown. That stays cheap since cuts are rare
//! and large: between two of them every prompt extends the one before. The first tokens, which
//! models attend to whatever they say (attention sinks), belong to the template and system prompt
//! and always stay.

use super::{CompactedView, Compressor, Next, PromptDraft, TokenBudget, Transcript, fewest};

pub struct Window;

impl Compressor for Window {
    fn next<E>(
        &self,
        talk: &Transcript,
        room: TokenBudget,
        count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
    ) -> Result<Next, E> {
        let view = |n_turns| CompactedView { n_turns, summaries: Vec::new() };
        cut(talk, room, &view, count)
    }
}

/// Leaves out as few more turns as bring the prompt down to the aim; where that can't be, all but the last.
pub(super) fn cut<E>(
    talk: &Transcript,
    room: TokenBudget,
    view: &dyn Fn(usize) -> CompactedView,
    count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
) -> Result<Next, E> {
    let most = talk.n_turns.saturating_sub(1);
    let mut counted = |n| count(&PromptDraft::Shown(&view(n)));
    let few = fewest(talk.n_compacted + 1..most + 1, room.aim, &mut counted)?;
    let n_turns = few.unwrap_or(most);
    let n_least = counted(n_turns)?;
    Ok(if n_least <= room.limit { Next::Compact(view(n_turns)) } else { Next::TooLong { n_least } })
}
