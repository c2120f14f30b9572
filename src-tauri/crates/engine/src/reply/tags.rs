//! Replies with tagged parts: `<think>` … `</think>`, `<tool_call>` … `</tool_call>` and the like.
//!
//! Reasoning tags that are text count only at the beginning of a reply; tokens count anywhere. Call tags that are
//! text count only if the request has tools. A call may stand inside reasoning. An end tag inside an argument of a
//! call is a part of the argument.

use super::calls;
use super::cut_call::{CutBody, parse_cut};
use super::format::{ReplyFormat, TagPair, opens};
use super::open_argument::{MAX_INNER_ENDS, MAX_UNENDED_CALLS, end_behind_arguments, is_open};
use super::open_argument::{ends_in_long_blank, is_blank, may_be_bare, may_be_body};
use super::tool_call::{ToolCall, ToolSchemas};
use super::{ReplyEnd, ReplyPiece, ReplySink, marked};
use crate::stop::held_suffix;

/// Of a call inside reasoning, as much as shows whether it is one.
const MAX_HEAD_BYTES: usize = 256;

/// Tags in one reasoning that open no call. Beyond that, call tags in it are words: models that loop write thousands.
const MAX_REJECTED_CALLS: usize = 64;

/// Calls that are looked for once the reply has ended. Beyond that the rest is text.
const MAX_FINISHED_CALLS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagState {
    /// Only white space so far: an opening tag may follow.
    Start,
    Reasoning(usize),
    /// After a closing tag: white space is kept for text that follows text.
    After,
    Text,
    Call(OpenCall),
    /// Everything so far may be a call without tags.
    Bare,
}

/// A call whose end has not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenCall {
    /// Which of the call tags opened it.
    tag: usize,
    /// The reasoning that it stands in.
    reasoning: Option<usize>,
}

/// Where a call may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallEnd {
    /// Bytes of the body.
    n_body: usize,
    /// Bytes of the body and its end tag.
    n_taken: usize,
}

#[derive(Debug, Clone)]
pub struct TagParser {
    reasoning: Vec<TagPair>,
    calls: Vec<TagPair>,
    /// Separators without content.
    fences: Vec<String>,
    bare_calls: bool,
    is_forced: bool,
    /// Control tokens with a meaning.
    known: Vec<String>,
    tools: ToolSchemas,
    state: TagState,
    held: String,
    /// Bytes of `held` that were searched for the end of the call.
    n_searched: usize,
    /// The first end tag of the call, which was taken for a part of an argument.
    first_end: Option<CallEnd>,
    /// End tags that were taken for parts of arguments.
    n_inner_ends: usize,
    /// Calls so far that ended at their first end tag because an argument never ended.
    n_unended: usize,
    /// Tags in the present reasoning that opened no call.
    n_rejected: usize,
    /// White space at the beginning of reasoning is dropped.
    reasoning_begun: bool,
    /// Text was shown before.
    has_said: bool,
    /// Reasoning was shown before, and something else since.
    has_reasoned: bool,
    resumes_reasoning: bool,
    /// White space around what stands between two texts. Shown with the second one.
    gap: String,
    /// White space before a call inside reasoning. Shown unless it is a call.
    gap_in_reasoning: String,
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
            is_forced: format.is_forced,
            known: format.mark_texts.clone(),
            tools,
            state: opened.map_or(TagState::Start, TagState::Reasoning),
            held: String::new(),
            n_searched: 0,
            first_end: None,
            n_inner_ends: 0,
            n_unended: 0,
            n_rejected: 0,
            reasoning_begun: false,
            has_said: false,
            has_reasoned: false,
            resumes_reasoning: false,
            gap: String::new(),
            gap_in_reasoning: String::new(),
        }
    }

    /// Returns whether this control token is part of the format.
    pub fn knows(&self, text: &str) -> bool {
        self.known.iter().any(|known| known == text)
    }

    pub fn push(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        // Looking through endless white space again for each piece would take the square of its length.
        let is_more_blank = is_blank(piece) && ends_in_long_blank(&self.held);
        self.held.push_str(piece);
        while !is_more_blank && self.step(show) {}
    }

    pub fn finish(&mut self, end: ReplyEnd, show: &mut ReplySink<'_>) {
        if end == ReplyEnd::Cut && self.finish_cut(show) {
            self.state = TagState::Start;
            return;
        }
        // Each round takes an end tag out of what is held.
        for _ in 0..MAX_FINISHED_CALLS {
            let TagState::Call(call) = self.state else { break };
            self.finish_call(call, show);
            while self.step(show) {}
        }
        if let TagState::Call(call) = self.state {
            let tag = &self.calls[call.tag];
            let open = if tag.keeps_open { "" } else { tag.open_text.as_str() };
            self.held = [open, &marked::written(&self.held)].concat();
            self.state = call.reasoning.map_or(TagState::Text, TagState::Reasoning);
        }
        let held = std::mem::take(&mut self.held);
        match self.state {
            TagState::Reasoning(_) => self.reason(&held, show),
            TagState::After | TagState::Text if held.trim().is_empty() && !self.gap.is_empty() => {}
            TagState::After if held.trim().is_empty() => {}
            TagState::Start | TagState::Text | TagState::After => self.say(&held, show),
            TagState::Call(_) => {}
            TagState::Bare => match calls::parse(&marked::shown(&held), &self.tools) {
                Some(calls) => calls.into_iter().for_each(|call| show(ReplyPiece::Call(call))),
                None => self.say(&held, show),
            },
        }
        self.state = TagState::Start;
    }

    /// Ends a reply that was cut inside a call. Returns false where there is none, or it cannot be read.
    fn finish_cut(&mut self, show: &mut ReplySink<'_>) -> bool {
        let is_inside = match self.state {
            TagState::Reasoning(_) => return false,
            TagState::Call(_) | TagState::Bare => true,
            TagState::Start | TagState::After | TagState::Text => false,
        };
        let body = marked::written(&self.held);
        let in_reasoning = matches!(self.state, TagState::Call(OpenCall { reasoning: Some(_), .. }));
        let in_tags = matches!(self.state, TagState::Call(_)) && !in_reasoning;
        let read = if is_inside { parse_cut(&body, &self.tools) } else { CutBody::Unreadable };
        match read {
            CutBody::Calls(calls) => calls.into_iter().for_each(|call| show(ReplyPiece::Call(call))),
            CutBody::NoName if in_tags || self.is_forced => show(ReplyPiece::CutCall),
            CutBody::Unreadable if self.is_forced && !is_inside && !body.trim().is_empty() => {
                show(ReplyPiece::CutCall);
            }
            CutBody::NoName | CutBody::Unreadable => return false,
        }
        self.held.clear();
        true
    }

    /// Ends a call with the reply, or at its first end tag if that makes sense of it.
    fn finish_call(&mut self, call: OpenCall, show: &mut ReplySink<'_>) {
        let whole = self.parse(call, &self.held);
        if whole.is_none()
            && let Some(end) = self.first_end
        {
            self.n_unended += 1;
            return self.end_call(call, end, !self.calls[call.tag].close.is_empty(), show);
        }
        self.state = TagState::Text;
        if call.reasoning.is_some() && whole.is_none() {
            return self.reject_call(call, show);
        }
        let held = std::mem::take(&mut self.held);
        self.call(call, &held, false, show);
    }

    /// Makes one transition. Returns true if another may follow.
    fn step(&mut self, show: &mut ReplySink<'_>) -> bool {
        match self.state {
            TagState::Start => self.step_start(),
            TagState::Reasoning(tag) => self.step_reasoning(tag, show),
            TagState::After => self.step_after(),
            TagState::Text => self.step_text(show),
            TagState::Call(call) => self.step_call(call, show),
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

    fn step_after(&mut self) -> bool {
        let text = self.held.trim_start();
        let n_blank = self.held.len() - text.len();
        let closed = self.reasoning.iter().find(|tag| text.starts_with(&tag.close));
        let n_closed = closed.map_or(0, |tag| tag.close.len());
        if n_closed == 0 && (text.is_empty() || self.reasoning.iter().any(|tag| tag.close.starts_with(text)))
        {
            return false;
        }
        let blank = self.held[..n_blank].to_owned();
        self.keep_gap(&blank);
        self.held.drain(..n_blank + n_closed);
        self.state = if n_closed == 0 { TagState::Text } else { TagState::After };
        true
    }

    fn step_reasoning(&mut self, tag: usize, show: &mut ReplySink<'_>) -> bool {
        if !self.reasoning_begun {
            let blank = self.held.len() - self.held.trim_start().len();
            self.held.drain(..blank);
            self.reasoning_begun = !self.held.is_empty();
        }
        let close = self.reasoning[tag].close.clone();
        let closed = self.held.find(close.as_str());
        let calls = if self.n_rejected < MAX_REJECTED_CALLS { self.calls.as_slice() } else { &[] };
        let call = calls.iter().enumerate().filter_map(|(at, call)| Some((self.held.find(&call.open)?, at)));
        let call = call.min_by_key(|(at, call)| (*at, std::cmp::Reverse(self.calls[*call].open.len())));
        if let Some((at, call)) = call.filter(|(at, _)| closed.is_none_or(|closed| *at < closed)) {
            let thought = self.held[..at].trim_end().to_owned();
            self.reason(&thought, show);
            let blank = self.held[thought.len()..at].to_owned();
            self.begin_call(OpenCall { tag: call, reasoning: Some(tag) }, &blank, at);
            return true;
        }
        if let Some(at) = closed {
            let thought = self.held[..at].trim_end().to_owned();
            self.reason(&thought, show);
            self.held.drain(..at + close.len());
            self.state = TagState::After;
            (self.reasoning_begun, self.resumes_reasoning) = (false, true);
            self.n_rejected = 0;
            return true;
        }
        // White space at the end of reasoning is dropped too, so it waits for what follows.
        let held = calls.iter().map(|call| held_suffix(&self.held, &call.open)).max().unwrap_or(0);
        let held = held.max(held_suffix(&self.held, &close));
        let solid = self.held[..self.held.len() - held].trim_end().len();
        if solid > 0 {
            let thought: String = self.held.drain(..solid).collect();
            self.reason(&thought, show);
        }
        false
    }

    /// Iterates over what may open something inside the text: the tag, the bytes to drop, and the next state.
    fn openings(&self) -> impl Iterator<Item = (&str, TagState)> {
        let calls = self.calls.iter().enumerate();
        let calls =
            calls.map(|(tag, it)| (it.open.as_str(), TagState::Call(OpenCall { tag, reasoning: None })));
        let reasoning = self.reasoning.iter().enumerate().filter(|(_, tag)| tag.is_token);
        let reasoning = reasoning.map(|(at, tag)| (tag.open.as_str(), TagState::Reasoning(at)));
        let fences = self.fences.iter().map(|fence| (fence.as_str(), TagState::After));
        calls.chain(reasoning).chain(fences)
    }

    fn step_text(&mut self, show: &mut ReplySink<'_>) -> bool {
        let found = self
            .openings()
            .filter_map(|(open, state)| self.held.find(open).map(|at| (at, open.len(), state)))
            .min_by_key(|(at, n_open, _)| (*at, std::cmp::Reverse(*n_open)));
        if let Some((at, n_open, state)) = found {
            let said = self.held[..at].trim_end().to_owned();
            let blank = self.held[said.len()..at].to_owned();
            self.say(&said, show);
            if let TagState::Call(call) = state {
                self.begin_call(call, &blank, at);
                return true;
            }
            self.keep_gap(&blank);
            self.held.drain(..at + n_open);
            self.state = state;
            return true;
        }
        let held = self.openings().map(|(open, _)| held_suffix(&self.held, open)).max();
        let mut solid = self.held.len() - held.unwrap_or(0);
        if held.is_some() {
            // White space before a tag may be dropped, so it waits for what follows.
            solid = self.held[..solid].trim_end().len();
        }
        if solid > 0 {
            let said: String = self.held.drain(..solid).collect();
            self.say(&said, show);
        }
        false
    }

    /// Enters a call whose opening tag is at `at`, after white space.
    fn begin_call(&mut self, call: OpenCall, blank: &str, at: usize) {
        if call.reasoning.is_some() {
            blank.clone_into(&mut self.gap_in_reasoning);
        } else {
            self.keep_gap(blank);
        }
        let tag = &self.calls[call.tag];
        let n_open = if tag.keeps_open { 0 } else { tag.open.len() };
        self.held.drain(..at + n_open);
        (self.n_searched, self.first_end, self.n_inner_ends) = (0, None, 0);
        self.state = TagState::Call(call);
    }

    fn step_call(&mut self, call: OpenCall, show: &mut ReplySink<'_>) -> bool {
        let tag = &self.calls[call.tag];
        if let Some(reasoning) = call.reasoning {
            let begun = &self.held[..self.held.floor_char_boundary(MAX_HEAD_BYTES)];
            if !tag.keeps_open && !may_be_body(&marked::written(begun)) {
                self.reject_call(call, show);
                return true;
            }
            if let Some(again) = self.step_unclosed(call, reasoning, show) {
                return again;
            }
        }
        let tag = &self.calls[call.tag];
        // Without an end tag a call ends at the next opening tag.
        let (is_closed, keeps_open) = (!tag.close.is_empty(), tag.keeps_open);
        let end = if is_closed { &tag.close } else { &tag.open };
        let from = self.held.floor_char_boundary(self.n_searched);
        let Some(found) = self.held[from..].find(end.as_str()) else {
            // The tag may have begun.
            self.n_searched = from.max(self.held.len() - held_suffix(&self.held, end));
            return false;
        };
        let (at, n_taken) = (from + found, from + found + end.len());
        let n_body = if is_closed && keeps_open { n_taken } else { at };
        let end = CallEnd { n_body, n_taken };
        let may_be_inner = self.n_inner_ends < MAX_INNER_ENDS && self.n_unended < MAX_UNENDED_CALLS;
        let is_inner = may_be_inner && is_open(&marked::written(&self.held[..at]));
        if is_inner {
            self.n_inner_ends += 1;
            self.first_end.get_or_insert(end);
            self.n_searched = n_taken;
            return true;
        }
        // What an open argument seemed to swallow is no call either: its first end was the end.
        let first = self.first_end.filter(|_| self.parse(call, &self.held[..n_body]).is_none());
        self.n_unended += usize::from(first.is_some());
        self.end_call(call, first.unwrap_or(end), is_closed, show);
        true
    }

    /// Looks for the end of the reasoning that a call stands in. None: it has not come before the call's own.
    fn step_unclosed(&mut self, call: OpenCall, reasoning: usize, show: &mut ReplySink<'_>) -> Option<bool> {
        let close = self.reasoning[reasoning].close.as_str();
        let end = self.calls[call.tag].close.as_str();
        let from = self.held.floor_char_boundary(self.n_searched.saturating_sub(close.len()));
        let at = end_behind_arguments(&self.held, close, end, from)?;
        if self.parse(call, &self.held[..at]).is_some() {
            self.end_call(call, CallEnd { n_body: at, n_taken: at }, false, show);
        } else {
            self.reject_call(call, show);
        }
        Some(true)
    }

    /// Takes the body of a call and its end tag, and shows its calls.
    fn end_call(&mut self, call: OpenCall, end: CallEnd, is_closed: bool, show: &mut ReplySink<'_>) {
        let body = self.held[..end.n_body].to_string();
        if call.reasoning.is_some() && self.parse(call, &body).is_none() {
            return self.reject_call(call, show);
        }
        self.held.drain(..end.n_taken);
        (self.n_searched, self.first_end, self.n_inner_ends) = (0, None, 0);
        let is_call = self.call(call, &body, is_closed, show);
        self.state = match (call.reasoning, is_closed, is_call) {
            (Some(reasoning), _, _) => TagState::Reasoning(reasoning),
            (None, false, _) => TagState::Call(call),
            (None, true, true) => TagState::After,
            (None, true, false) => TagState::Text,
        };
        if call.reasoning.is_some() {
            (self.reasoning_begun, self.resumes_reasoning) = (false, true);
        }
    }

    /// What seemed to open a call inside reasoning is a part of the reasoning.
    fn reject_call(&mut self, call: OpenCall, show: &mut ReplySink<'_>) {
        self.n_rejected += 1;
        let tag = &self.calls[call.tag];
        let open = tag.open_text.clone();
        if tag.keeps_open {
            let n_open = tag.open.len().min(self.held.len());
            self.held.drain(..n_open);
        }
        let thought = std::mem::take(&mut self.gap_in_reasoning) + &open;
        self.reason(&thought, show);
        (self.n_searched, self.first_end, self.n_inner_ends) = (0, None, 0);
        self.state = call.reasoning.map_or(TagState::Text, TagState::Reasoning);
    }

    /// Parses the body of a call. Inside reasoning only calls of tools that exist count.
    fn parse(&self, call: OpenCall, body: &str) -> Option<Vec<ToolCall>> {
        let calls = calls::parse(&marked::written(body), &self.tools)?;
        let exists = |it: &ToolCall| self.tools.is_empty() || self.tools.names().any(|name| name == it.name);
        (call.reasoning.is_none() || calls.iter().all(exists)).then_some(calls)
    }

    /// Shows the calls of a body, or the body as text with its tags. Returns true for calls.
    fn call(&mut self, call: OpenCall, body: &str, is_closed: bool, show: &mut ReplySink<'_>) -> bool {
        if let Some(calls) = self.parse(call, body) {
            calls.into_iter().for_each(|call| show(ReplyPiece::Call(call)));
            return true;
        }
        let written = marked::written(body);
        let tag = &self.calls[call.tag];
        let open = if tag.keeps_open { "" } else { tag.open_text.as_str() };
        let close = if is_closed && !tag.keeps_open { tag.close_text.as_str() } else { "" };
        let gap = std::mem::take(&mut self.gap);
        show(ReplyPiece::Malformed("The model tried to call a tool, but its call could not be parsed."));
        show(ReplyPiece::Text(&format!("{gap}{open}{written}{close}")));
        self.has_said = true;
        false
    }

    /// Keeps white space before or after a part that is no text: the larger of both.
    fn keep_gap(&mut self, blank: &str) {
        let size = |text: &str| (text.matches('\n').count(), text.len());
        if size(blank) > size(&self.gap) {
            blank.clone_into(&mut self.gap);
        }
    }

    fn say(&mut self, text: &str, show: &mut ReplySink<'_>) {
        let text = marked::shown(text);
        if text.is_empty() {
            return;
        }
        let gap = std::mem::take(&mut self.gap);
        let text = if self.has_said { gap + &text } else { text };
        self.has_said = true;
        show(ReplyPiece::Text(&text));
    }

    fn reason(&mut self, text: &str, show: &mut ReplySink<'_>) {
        let text = marked::shown(text);
        if text.is_empty() {
            return;
        }
        // Two thoughts are two paragraphs.
        let resumes = std::mem::take(&mut self.resumes_reasoning);
        let text = if resumes && self.has_reasoned { format!("\n\n{text}") } else { text };
        self.has_reasoned = true;
        show(ReplyPiece::Reasoning(&text));
    }
}
