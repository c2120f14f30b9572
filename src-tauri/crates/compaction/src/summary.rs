//! Summaries: the model rewrites older turns, and when there are many summaries, condenses those. A
//! summary continues those before it and need not repeat them. They are requested while the context
//! is only half full, so that they are ready when it is full.

use super::{
    CompactedView, Compressor, Next, PromptDraft, SummaryRequest, TokenBudget, Transcript, TurnSummary,
    fewest, window,
};

/// Summaries that are combined into one of the next level.
const GROUP: usize = 4;

/// Turns at the end that are not summarised before they must be: what is spoken of now is best left in its own words.
const NEWEST: usize = 2;

/// What the model is asked for.
pub const ASK: &str = "Summarise everything above for yourself, briefly: names, numbers, facts, decisions, what is still \
                       open. Write only the summary.";
/// The question that a summary stands as the answer to: a form that every template takes.
pub const ASKED: &str = "Summarise our conversation so far.";

pub struct Summary;

impl Compressor for Summary {
    fn next<E>(
        &self,
        talk: &Transcript,
        room: TokenBudget,
        count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
    ) -> Result<Next, E> {
        let most = talk.n_turns.saturating_sub(1);
        let n_least = count(&PromptDraft::Shown(&CompactedView { n_turns: most, summaries: Vec::new() }))?;
        if n_least > room.limit {
            return Ok(Next::TooLong { n_least });
        }
        let chain = chain(&talk.summaries, most);
        let end = end_of(&talk.summaries, &chain);
        if end > talk.n_compacted {
            let view = CompactedView { n_turns: end, summaries: chain.clone() };
            if count(&PromptDraft::Shown(&view))? <= room.budget {
                return Ok(Next::Compact(view));
            }
        }
        if chain.len() >= GROUP {
            return Ok(Next::SummaryRequest(merged(&talk.summaries, chain, room)));
        }
        if let Some(wish) = wish(talk, &chain, room, most, count)? {
            return Ok(Next::SummaryRequest(wish));
        }
        // What is too long even to be summarised goes without.
        let view = |n_turns| CompactedView { n_turns, summaries: chain.clone() };
        window::cut(
            &Transcript { n_compacted: talk.n_compacted.max(end), ..talk.clone() },
            room,
            &view,
            count,
        )
    }
}

impl Summary {
    /// What is worth making ahead of need.
    pub(super) fn ahead<E>(
        &self,
        talk: &Transcript,
        room: TokenBudget,
        count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
    ) -> Result<Option<SummaryRequest>, E> {
        let most = talk.n_turns.saturating_sub(NEWEST);
        let chain = chain(&talk.summaries, most);
        let end = end_of(&talk.summaries, &chain);
        let shown = CompactedView { n_turns: end, summaries: chain.clone() };
        let n_now = count(&PromptDraft::Shown(&shown))?;
        if n_now <= room.aim {
            return Ok(None);
        }
        if chain.len() >= GROUP {
            return Ok(Some(merged(&talk.summaries, chain, room)));
        }
        wish(talk, &chain, room.halved(n_now), most, count)
    }
}

/// A summary of as many turns after the chain as bring the prompt down to the aim, and as it can be made of at once.
fn wish<E>(
    talk: &Transcript,
    chain: &[usize],
    room: TokenBudget,
    most: usize,
    count: &mut dyn FnMut(&PromptDraft) -> Result<usize, E>,
) -> Result<Option<SummaryRequest>, E> {
    let start = end_of(&talk.summaries, chain);
    if start >= most {
        return Ok(None);
    }
    let n_tokens = room.summary();
    let asking = |end| SummaryRequest { after: chain.to_vec(), turns: start..end, level: 0, n_tokens };
    let mut shown =
        |n_turns| count(&PromptDraft::Shown(&CompactedView { n_turns, summaries: chain.to_vec() }));
    let aim = room.aim.saturating_sub(n_tokens);
    let mut end = fewest(start + 1..most + 1, aim, &mut shown)?.unwrap_or(most);
    // What does not fit into one prompt is summarised piece by piece.
    while count(&PromptDraft::Asking(&asking(end)))? + n_tokens > room.limit {
        if end == start + 1 {
            return Ok(None);
        }
        end = start + (end - start) / 2;
    }
    Ok(Some(asking(end)))
}

fn merged(summaries: &[TurnSummary], after: Vec<usize>, room: TokenBudget) -> SummaryRequest {
    let level = after.iter().map(|&at| summaries[at].level).max().unwrap_or(0) + 1;
    SummaryRequest { after, turns: 0..0, level, n_tokens: room.summary() }
}

/// The summaries to show: of those that overlap the highest, then the longest, in order, within the first `most` turns.
fn chain(summaries: &[TurnSummary], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..summaries.len()).filter(|&at| summaries[at].turns.end <= most).collect();
    order.sort_by_key(|&at| {
        (std::cmp::Reverse(summaries[at].level), std::cmp::Reverse(summaries[at].turns.len()))
    });
    let mut chain: Vec<usize> = Vec::new();
    for at in order {
        let turns = &summaries[at].turns;
        let is_free = |&other: &usize| {
            let other = &summaries[other].turns;
            other.end <= turns.start || turns.end <= other.start
        };
        if !turns.is_empty() && chain.iter().all(is_free) {
            chain.push(at);
        }
    }
    chain.sort_by_key(|&at| summaries[at].turns.start);
    chain
}

fn end_of(summaries: &[TurnSummary], chain: &[usize]) -> usize {
    chain.last().map_or(0, |&at| summaries[at].turns.end)
}
