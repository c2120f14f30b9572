//! Replies with tagged parts: `<think>` … `</think>`, `<tool_call>` … `</tool_call>` and the like.
//!
//! Reasoning tags that are text count only at the beginning of a reply; tokens count anywhere. Call tags that are
//! text count only if the request has tools.

use super::calls;
use super::format::{ReplyFormat, TagPair, opens};
use super::tool_call::ToolSchemas;
use super::{ReplyPiece, ReplySink, marked};
use crate::stop::held_suffix;

/// Beginnings of a reply that is a call without tags.
const BARE_BEGINNINGS: &[&str] =
    &["{\"name\":", "{\"type\":\"function\"", "{\"function\":", "{\"parameters\":", "[{\"name\":"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagState {
    /// Only white space so far: an opening tag may follow.
    Start,
    Reasoning(usize),
    /// After a closing tag: white space before the text is dropped.
    After,
    Text,
    Call(usize),
    /// Everything so far may be a call without tags.
    Bare,
}

#[derive(Debug, Clone)]
pub struct TagParser {
    reasoning: Vec<TagPair>,
    calls: Vec<TagPair>,
    /// Separators without content.
    fences: Vec<String>,
    bare_calls: bool,
    /// Control tokens with a meaning.
    known: Vec<String>,
    tools: ToolSchemas,
    state: TagState,
    held: String,
    /// Bytes of `held` that were searched for the end of the call.
    n_searched: usize,
    /// White space at the beginning of reasoning is dropped.
    reasoning_begun: bool,
    /// White space before the call. Dropped unless the call cannot be read.
    gap: String,
}

impl TagParser {
    pub fn new(format: &ReplyFormat, prompt: &str, tools: ToolSchemas) -> Self {
        let opened = format.reasoning.iter().position(|tag| opens(prompt, tag));
        let calls = format.calls.iter().filter(|tag| tag.is_token || !tools.is_empty()).cloned().collect();
        Self {
            reasoning: format.reasoning.clone(),
            calls,
            fences: format.fences.clone(),
            bare_calls: format.bare_calls && !tools.is_empty(),
            known: format.mark_texts.clone(),
            tools,
            state: opened.map_or(TagState::Start, TagState::Reasoning),
            held: String::new(),
            n_searched: 0,
            reasoning_begun: false,
            gap: String::new(),
        }
    }

    /// Returns whether this control token is part of the format.
    pub fn knows(&self, text: &str) -> bool {
        self.known.iter().any(|known| known == text)
    }

    pub fn push(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        self.held.push_str(piece);
        while self.step(show) {}
    }

    pub fn finish(&mut self, show: &mut ReplySink<'_>) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            TagState::Reasoning(_) => reason(&held, show),
            TagState::After if held.trim().is_empty() => {}
            TagState::Start | TagState::Text | TagState::After => say(&held, show),
            TagState::Call(tag) => _ = self.call(tag, &held, false, show),
            TagState::Bare => match calls::parse(&marked::shown(&held), &self.tools) {
                Some(calls) => calls.into_iter().for_each(|call| show(ReplyPiece::Call(call))),
                None => say(&held, show),
            },
        }
        self.state = TagState::Start;
    }

    /// Makes one transition. Returns true if another may follow.
    fn step(&mut self, show: &mut ReplySink<'_>) -> bool {
        match self.state {
            TagState::Start => self.step_start(),
            TagState::Reasoning(tag) => self.step_reasoning(tag, show),
            TagState::After => {
                let text = self.held.trim_start().len();
                self.held.drain(..self.held.len() - text);
                self.state = if text > 0 { TagState::Text } else { TagState::After };
                text > 0
            }
            TagState::Text => self.step_text(show),
            TagState::Call(tag) => self.step_call(tag, show),
            TagState::Bare => {
                if may_be_bare(&self.held) {
                    return false;
                }
                self.state = TagState::Text;
                true
            }
        }
    }

    fn step_start(&mut self) -> bool {
        let text = self.held.trim_start();
        if text.is_empty() {
            return false;
        }
        let n_blank = self.held.len() - text.len();
        if let Some(tag) = self.reasoning.iter().position(|tag| text.starts_with(&tag.open)) {
            self.held.drain(..n_blank + self.reasoning[tag].open.len());
            self.state = TagState::Reasoning(tag);
            return true;
        }
        // A model may close a block that was never opened.
        if let Some(tag) = self.reasoning.iter().find(|tag| text.starts_with(&tag.close)) {
            self.held.drain(..n_blank + tag.close.len());
            self.state = TagState::After;
            return true;
        }
        if self.reasoning.iter().any(|tag| tag.open.starts_with(text) || tag.close.starts_with(text)) {
            return false;
        }
        self.state = if self.bare_calls && may_be_bare(text) { TagState::Bare } else { TagState::Text };
        true
    }

    fn step_reasoning(&mut self, tag: usize, show: &mut ReplySink<'_>) -> bool {
        if !self.reasoning_begun {
            let blank = self.held.len() - self.held.trim_start().len();
            self.held.drain(..blank);
            self.reasoning_begun = !self.held.is_empty();
        }
        let close = &self.reasoning[tag].close;
        if let Some(at) = self.held.find(close.as_str()) {
            reason(self.held[..at].trim_end(), show);
            self.held.drain(..at + close.len());
            self.state = TagState::After;
            self.reasoning_begun = false;
            return true;
        }
        // White space at the end of reasoning is dropped too, so it waits for what follows.
        let held = held_suffix(&self.held, close);
        let solid = self.held[..self.held.len() - held].trim_end().len();
        if solid > 0 {
            reason(&self.held[..solid], show);
            self.held.drain(..solid);
        }
        false
    }

    /// Iterates over what may open something inside the text: the tag, the bytes to drop, and the next state.
    fn openings(&self) -> impl Iterator<Item = (&str, usize, TagState)> {
        let n_taken = |tag: &TagPair| if tag.keeps_open { 0 } else { tag.open.len() };
        let calls = self.calls.iter().enumerate();
        let calls = calls.map(move |(at, tag)| (tag.open.as_str(), n_taken(tag), TagState::Call(at)));
        let reasoning = self.reasoning.iter().enumerate().filter(|(_, tag)| tag.is_token);
        let reasoning =
            reasoning.map(|(at, tag)| (tag.open.as_str(), tag.open.len(), TagState::Reasoning(at)));
        let fences = self.fences.iter().map(|fence| (fence.as_str(), fence.len(), TagState::After));
        calls.chain(reasoning).chain(fences)
    }

    fn step_text(&mut self, show: &mut ReplySink<'_>) -> bool {
        let found = self.openings().filter_map(|(open, n_taken, state)| {
            self.held.find(open).map(|at| (at, open.len(), n_taken, state))
        });
        if let Some((at, _, n_taken, state)) =
            found.min_by_key(|(at, n_open, ..)| (*at, std::cmp::Reverse(*n_open)))
        {
            let after = at + n_taken;
            let said = self.held[..at].trim_end();
            say(said, show);
            self.gap = self.held[said.len()..at].to_string();
            self.held.drain(..after);
            (self.state, self.n_searched) = (state, 0);
            return true;
        }
        let held = self.openings().map(|(open, ..)| held_suffix(&self.held, open)).max();
        let mut solid = self.held.len() - held.unwrap_or(0);
        if held.is_some() {
            // White space before a tag is dropped, so it waits for what follows.
            solid = self.held[..solid].trim_end().len();
        }
        if solid > 0 {
            say(&self.held[..solid], show);
            self.held.drain(..solid);
        }
        false
    }

    fn step_call(&mut self, at: usize, show: &mut ReplySink<'_>) -> bool {
        let tag = &self.calls[at];
        // Without an end tag a call ends at the next opening tag.
        let end = if tag.close.is_empty() { &tag.open } else { &tag.close };
        let from = self.held.floor_char_boundary(self.n_searched.saturating_sub(end.len()));
        let Some(found) = self.held[from..].find(end.as_str()) else {
            self.n_searched = self.held.len();
            return false;
        };
        let (body, n_taken) = match (tag.close.is_empty(), tag.keeps_open) {
            (true, _) => (from + found, from + found + end.len()),
            (false, true) => (from + found + end.len(), from + found + end.len()),
            (false, false) => (from + found, from + found + end.len()),
        };
        let is_closed = !tag.close.is_empty();
        let text = self.held[..body].to_string();
        self.held.drain(..n_taken);
        self.n_searched = 0;
        let is_call = self.call(at, &text, is_closed, show);
        self.state = match (is_closed, is_call) {
            (false, _) => TagState::Call(at),
            (true, true) => TagState::After,
            (true, false) => TagState::Text,
        };
        true
    }

    /// Shows the calls of a body, or the body as text with its tags. Returns true for calls.
    fn call(&mut self, at: usize, body: &str, is_closed: bool, show: &mut ReplySink<'_>) -> bool {
        let gap = std::mem::take(&mut self.gap);
        let written = marked::written(body);
        if let Some(calls) = calls::parse(&written, &self.tools) {
            calls.into_iter().for_each(|call| show(ReplyPiece::Call(call)));
            return true;
        }
        let tag = &self.calls[at];
        let open = if tag.keeps_open { "" } else { tag.open_text.as_str() };
        let close = if is_closed && !tag.keeps_open { tag.close_text.as_str() } else { "" };
        show(ReplyPiece::Malformed("The model tried to call a tool, but its call could not be parsed."));
        show(ReplyPiece::Text(&format!("{gap}{open}{written}{close}")));
        false
    }
}

fn say(text: &str, show: &mut ReplySink<'_>) {
    let text = marked::shown(text);
    if !text.is_empty() {
        show(ReplyPiece::Text(&text));
    }
}

fn reason(text: &str, show: &mut ReplySink<'_>) {
    let text = marked::shown(text);
    if !text.is_empty() {
        show(ReplyPiece::Reasoning(&text));
    }
}

/// Returns whether a call without tags may begin like this.
fn may_be_bare(text: &str) -> bool {
    let longest = BARE_BEGINNINGS.iter().map(|it| it.len()).max().unwrap_or(0);
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(longest).collect();
    BARE_BEGINNINGS.iter().any(|begins| begins.starts_with(&compact) || compact.starts_with(begins))
}
