//! Fits a conversation into its model's context: splits it into turns, counts with the real
//! vocabulary and template, and applies the strategy's decision. Every omission is reported.

use std::ops::Range;

use compaction::{
    ASK, ASKED, CompactedView, Next, PromptDraft, Strategy, SummaryRequest, TokenBudget, Transcript,
    TurnSummary,
};
use engine::AttentionEviction;
use engine::model::OBSERVATION_TOKENS;

use crate::render::Vocabulary;
use contract::protocol::{ChatOptions, CompactedRange, Compression, Prompt, PromptMessage, SummaryTask};
use contract::{Error, ErrorKind, Result};

/// What a prompt has become.
#[derive(Debug)]
pub enum Fit {
    /// It is shown so.
    Ready {
        messages: Vec<PromptMessage>,
        compacted: Option<CompactedRange>,
        forget: Option<AttentionEviction>,
    },
    /// First a summary has to be made.
    Wanting(SummaryTask),
}

/// Why it is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Only where it has to be.
    Need,
    /// Somebody asked for it.
    Asked,
}

/// What the tokens of messages are counted with.
pub trait Counts {
    /// Of the whole prompt.
    fn n_tokens(&self, messages: &[PromptMessage], options: &ChatOptions) -> Result<usize>;

    /// Of `head`, and of what the template has between it and the first question.
    fn n_first(&self, head: &[PromptMessage], options: &ChatOptions) -> Result<usize>;
}

impl Counts for Vocabulary<'_> {
    fn n_tokens(&self, messages: &[PromptMessage], options: &ChatOptions) -> Result<usize> {
        Vocabulary::n_tokens(self, messages, options)
    }

    fn n_first(&self, head: &[PromptMessage], options: &ChatOptions) -> Result<usize> {
        let [a, b] = ["a", "b"].map(|question| {
            let mut messages = head.to_vec();
            messages.push(message("user", question));
            self.prepare(&Prompt::Chat(messages), options).map(|prepared| prepared.ids)
        });
        Ok(a?.iter().zip(&b?).take_while(|(a, b)| a == b).count())
    }
}

/// A conversation that is to fit.
pub struct Fitting<'a> {
    counts: &'a dyn Counts,
    options: &'a ChatOptions,
    compression: &'a Compression,
    messages: &'a [PromptMessage],
    /// of `messages`: the system prompt, then turns
    turns: Vec<Range<usize>>,
    room: TokenBudget,
    talk: Transcript,
    /// The texts of `talk.summaries`.
    texts: Vec<&'a str>,
}

impl<'a> Fitting<'a> {
    pub fn new(
        counts: &'a dyn Counts,
        options: &'a ChatOptions,
        compression: &'a Compression,
        messages: &'a [PromptMessage],
        room: TokenBudget,
    ) -> Self {
        let turns = turns(messages);
        let turn_of = |id: &String| turns.iter().position(|turn| has(&messages[turn.clone()], id));
        // The last turn is always shown.
        let most = turns.len().saturating_sub(1);
        let compacted =
            compression.compacted_until.as_ref().and_then(turn_of).map_or(0, |turn| turn + 1).min(most);
        let mut talk = Transcript { n_turns: turns.len(), n_compacted: compacted, summaries: Vec::new() };
        let mut texts = Vec::new();
        for summary in &compression.summaries {
            let (Some(first), Some(last)) = (turn_of(&summary.first), turn_of(&summary.until)) else {
                continue;
            };
            if first <= last {
                talk.summaries.push(TurnSummary { turns: first..last + 1, level: summary.level });
                texts.push(summary.text.as_str());
            }
        }
        Self { counts, options, compression, messages, turns, room, talk, texts }
    }

    /// What is shown of it.
    pub fn fit(&self, why: Why) -> Result<Fit> {
        let shown = self.shown_now();
        let n_now = self.count(&PromptDraft::Shown(&shown))?;
        if why == Why::Need && n_now <= self.room.budget {
            return Ok(self.ready(&shown, None, None));
        }
        let room = if why == Why::Asked { self.room.halved(n_now) } else { self.room };
        let next =
            compaction::next(self.compression.strategy, &self.talk, room, &mut |sketch| self.count(sketch))?;
        match next {
            // Where nothing more can go, nothing is done.
            Next::Compact(view) if why == Why::Asked && view.n_turns <= self.talk.n_compacted => {
                Ok(self.ready(&shown, None, None))
            }
            Next::Compact(view) => {
                let n_after = self.count(&PromptDraft::Shown(&view))?;
                Ok(self.ready(&view, Some(self.compacted_range(&view, n_now, n_after)), None))
            }
            Next::SummaryRequest(wish) => Ok(Fit::Wanting(self.wanted(&wish))),
            Next::Forget { n_most, n_keep, n_protected } => {
                let n_first = self.n_first()?;
                let n_newest = n_protected.max(OBSERVATION_TOKENS);
                // A long system prompt leaves less to be chosen from, but something.
                let n_keep = n_keep.max(n_first + n_newest + n_most / 16);
                if n_keep + OBSERVATION_TOKENS >= n_most {
                    return Err(too_long(n_now, n_keep, self.room.limit));
                }
                let forget =
                    AttentionEviction { max_tokens: n_most, n_kept: n_keep, n_oldest: n_first, n_newest };
                Ok(self.ready(&shown, Some(self.forgotten(n_now, n_keep)), Some(forget)))
            }
            // A prompt that fits, if only just, is not refused for want of room for a long answer.
            Next::TooLong { .. } if why == Why::Need && n_now <= self.room.limit => {
                Ok(self.ready(&shown, None, None))
            }
            Next::TooLong { n_least } => Err(too_long(n_now, n_least, self.room.limit)),
        }
    }

    /// What is worth making while nothing is answered.
    pub fn ahead(&self) -> Result<Option<SummaryTask>> {
        let wish = compaction::ahead(self.compression.strategy, &self.talk, self.room, &mut |sketch| {
            self.count(sketch)
        })?;
        Ok(wish.map(|wish| self.wanted(&wish)))
    }

    /// The messages as they are shown now, whether they fit or not.
    pub fn messages_now(&self) -> Vec<PromptMessage> {
        self.show(&self.shown_now())
    }

    /// What is shown without further ado: as before.
    fn shown_now(&self) -> CompactedView {
        let n_turns = self.talk.n_compacted;
        let summaries = &self.talk.summaries;
        let is_in = |turns: &Range<usize>| turns.end <= n_turns;
        let within = |at: usize, other: usize| {
            let (a, b) = (&summaries[at], &summaries[other]);
            b.level > a.level
                && is_in(&b.turns)
                && b.turns.start <= a.turns.start
                && a.turns.end <= b.turns.end
        };
        let mut shown: Vec<usize> = (0..summaries.len())
            .filter(|&at| self.compression.strategy == Strategy::Summary && is_in(&summaries[at].turns))
            .filter(|&at| !(0..summaries.len()).any(|other| within(at, other)))
            .collect();
        shown.sort_by_key(|&at| summaries[at].turns.start);
        CompactedView { n_turns, summaries: shown }
    }

    fn ready(
        &self,
        view: &CompactedView,
        compacted: Option<CompactedRange>,
        forget: Option<AttentionEviction>,
    ) -> Fit {
        Fit::Ready { messages: self.show(view), compacted, forget }
    }

    fn count(&self, sketch: &PromptDraft) -> Result<usize> {
        let messages = match sketch {
            PromptDraft::Shown(view) => self.show(view),
            PromptDraft::Asking(wish) => self.ask(wish),
        };
        self.counts.n_tokens(&messages, self.options)
    }

    /// The system prompt, summaries, and the turns that are left.
    fn show(&self, view: &CompactedView) -> Vec<PromptMessage> {
        let start = self.turns.get(view.n_turns).map_or(self.messages.len(), |turn| turn.start);
        let mut shown = self.head().to_vec();
        shown.extend(self.told(&view.summaries));
        shown.extend_from_slice(&self.messages[start..]);
        shown
    }

    /// The prompt that asks for a summary: what is to be summarised as it was said, so that the model's state of the
    /// conversation serves for it.
    fn ask(&self, wish: &SummaryRequest) -> Vec<PromptMessage> {
        let mut asking = self.head().to_vec();
        asking.extend(self.told(&wish.after));
        if let (Some(first), Some(last)) = (
            self.turns.get(wish.turns.start),
            wish.turns.end.checked_sub(1).and_then(|at| self.turns.get(at)),
        ) && !wish.turns.is_empty()
        {
            asking.extend_from_slice(&self.messages[first.start..last.end]);
        }
        asking.push(message("user", ASK));
        asking
    }

    fn head(&self) -> &[PromptMessage] {
        &self.messages[..self.turns.first().map_or(self.messages.len(), |turn| turn.start)]
    }

    /// Summaries as the model's own words, in a form that every template takes.
    fn told(&self, summaries: &[usize]) -> Vec<PromptMessage> {
        if summaries.is_empty() {
            return Vec::new();
        }
        let texts: Vec<&str> = summaries.iter().map(|&at| self.texts[at].trim()).collect();
        vec![message("user", ASKED), message("assistant", &texts.join("\n\n"))]
    }

    fn wanted(&self, wish: &SummaryRequest) -> SummaryTask {
        let turns = match (wish.turns.is_empty(), wish.after.first(), wish.after.last()) {
            (true, Some(&first), Some(&last)) => {
                self.talk.summaries[first].turns.start..self.talk.summaries[last].turns.end
            }
            _ => wish.turns.clone(),
        };
        let (first, until) = self.ends(turns);
        SummaryTask { messages: self.ask(wish), first, until, level: wish.level, n_tokens: wish.n_tokens }
    }

    fn compacted_range(&self, view: &CompactedView, n_before: usize, n_after: usize) -> CompactedRange {
        let (first, until) = self.ends(0..view.n_turns);
        // A stretch that had to go without a summary is left out, and said to be.
        let told = view.summaries.last().map_or(0, |&at| self.talk.summaries[at].turns.end);
        let strategy = if told < view.n_turns { Strategy::Window } else { self.compression.strategy };
        CompactedRange {
            strategy,
            first,
            until,
            messages: clamp(self.messages[..self.end(view.n_turns)].iter().map(|it| it.ids.len()).sum()),
            summary: self.told(&view.summaries).pop().map(|told| told.content),
            tokens_before: clamp(n_before),
            tokens_after: clamp(n_after),
            limit: clamp(self.room.limit),
        }
    }

    /// Tokens of the system prompt, and of what the template has before the first question.
    fn n_first(&self) -> Result<usize> {
        self.counts.n_first(self.head(), self.options)
    }

    fn forgotten(&self, n_before: usize, n_after: usize) -> CompactedRange {
        let (first, until) = self.ends(0..self.turns.len().saturating_sub(1));
        CompactedRange {
            strategy: Strategy::Attention,
            first,
            until,
            messages: 0,
            summary: None,
            tokens_before: clamp(n_before),
            tokens_after: clamp(n_after.min(n_before)),
            limit: clamp(self.room.limit),
        }
    }

    /// Where the first `n` turns end.
    fn end(&self, n: usize) -> usize {
        n.checked_sub(1).and_then(|at| self.turns.get(at)).map_or(0, |turn| turn.end)
    }

    /// The first and the last message of some turns.
    fn ends(&self, turns: Range<usize>) -> (String, String) {
        let messages = || self.turns.get(turns.clone()).into_iter().flatten();
        let mut ids = messages().flat_map(|turn| &self.messages[turn.clone()]).flat_map(|it| &it.ids);
        let first = ids.next().cloned().unwrap_or_default();
        let last = ids.last().cloned();
        (first.clone(), last.unwrap_or(first))
    }
}

/// A turn begins with a question.
fn turns(messages: &[PromptMessage]) -> Vec<Range<usize>> {
    let head = messages.iter().take_while(|message| message.role == "system").count();
    let begins = |at: &usize| *at == head || messages[*at].role == "user";
    let starts: Vec<usize> = (head..messages.len()).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

fn has(messages: &[PromptMessage], id: &String) -> bool {
    messages.iter().any(|message| message.ids.contains(id))
}

fn message(role: &str, content: &str) -> PromptMessage {
    PromptMessage { role: role.into(), content: content.into(), ..PromptMessage::default() }
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The error for what cannot be made to fit: both numbers, and what can be done.
fn too_long(n_now: usize, n_least: usize, limit: usize) -> Error {
    let message = match n_least < n_now {
        true => format!(
            "This chat needs {n_now} tokens ({n_least} for the last message alone), but the context has {limit}."
        ),
        false => format!("This chat needs {n_now} tokens, but the context has {limit}."),
    };
    let remedy = "Shorten the message or split it, increase the context length in the settings, or choose a model with a longer context.";
    Error::new(ErrorKind::Limit, "request.context_full", message, remedy)
}

#[cfg(test)]
mod tests;
