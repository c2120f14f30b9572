//! Splits a reply into what is said and what is thought, piece by piece.
//!
//! A reply may begin with a block between tags such as `<think>` … `</think>`; some prompts open that block
//! themselves, so that the reply begins inside it. Half a tag is never shown: what may become one is held
//! back. A tag anywhere but at the beginning is ordinary text. Knows nothing of tokens or templates.

use crate::stop::held_suffix;

/// What a piece of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Text,
    Reasoning,
}

/// How a model marks its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasoningTags {
    pub open: &'static str,
    pub close: &'static str,
}

/// The tags that are in use.
pub const REASONING_TAGS: &[ReasoningTags] = &[
    ReasoningTags { open: "<think>", close: "</think>" },
    ReasoningTags { open: "<seed:think>", close: "</seed:think>" },
    ReasoningTags { open: "[THINK]", close: "[/THINK]" },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far: an opening tag may follow.
    Start,
    Reasoning(ReasoningTags),
    /// After a closing tag: white space before the text is dropped.
    AfterReasoning,
    Text,
}

/// Splits one reply.
#[derive(Debug, Clone)]
pub struct ReplySplitter {
    state: State,
    held: String,
    /// White space that begins the reasoning is dropped.
    reasoning_begun: bool,
}

impl ReplySplitter {
    /// `prompt` is the rendered prompt: if it ends with an opening tag, the reply begins as reasoning.
    pub fn after_prompt(prompt: &str) -> Self {
        let end = prompt.trim_end();
        let open = REASONING_TAGS.iter().find(|tags| end.ends_with(tags.open));
        let state = open.map_or(State::Start, |tags| State::Reasoning(*tags));
        Self { state, held: String::new(), reasoning_begun: false }
    }

    /// Takes the next piece and passes on what may be shown, in order.
    pub fn push(&mut self, piece: &str, show: &mut dyn FnMut(Part, &str)) {
        self.held.push_str(piece);
        while self.step(show) {}
    }

    /// The reply is over: what was held back is shown after all.
    pub fn finish(&mut self, show: &mut dyn FnMut(Part, &str)) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        match self.state {
            State::Reasoning(_) => show(Part::Reasoning, &held),
            State::AfterReasoning => {}
            State::Start | State::Text => show(Part::Text, &held),
        }
    }

    /// One transition; true if there may be another.
    fn step(&mut self, show: &mut dyn FnMut(Part, &str)) -> bool {
        match self.state {
            State::Start => self.step_start(),
            State::Reasoning(tags) => self.step_reasoning(tags, show),
            State::AfterReasoning => {
                let text = self.held.trim_start().len();
                self.held.drain(..self.held.len() - text);
                self.state = if text > 0 { State::Text } else { State::AfterReasoning };
                text > 0
            }
            State::Text => {
                if !self.held.is_empty() {
                    show(Part::Text, &self.held);
                    self.held.clear();
                }
                false
            }
        }
    }

    fn step_start(&mut self) -> bool {
        let text = self.held.trim_start();
        if text.is_empty() {
            return false;
        }
        if let Some(tags) = REASONING_TAGS.iter().find(|tags| text.starts_with(tags.open)) {
            let rest = self.held.len() - text.len() + tags.open.len();
            self.held.drain(..rest);
            self.state = State::Reasoning(*tags);
            return true;
        }
        if REASONING_TAGS.iter().any(|tags| tags.open.starts_with(text)) {
            return false;
        }
        self.state = State::Text;
        true
    }

    fn step_reasoning(&mut self, tags: ReasoningTags, show: &mut dyn FnMut(Part, &str)) -> bool {
        if !self.reasoning_begun {
            let blank = self.held.len() - self.held.trim_start().len();
            self.held.drain(..blank);
            self.reasoning_begun = !self.held.is_empty();
        }
        if let Some(at) = self.held.find(tags.close) {
            let thought = self.held[..at].trim_end();
            if !thought.is_empty() {
                show(Part::Reasoning, thought);
            }
            self.held.drain(..at + tags.close.len());
            self.state = State::AfterReasoning;
            return true;
        }
        // White space that ends the reasoning is dropped too, so it waits for what follows.
        let tag = held_suffix(&self.held, tags.close);
        let solid = self.held[..self.held.len() - tag].trim_end().len();
        if solid > 0 {
            show(Part::Reasoning, &self.held[..solid]);
            self.held.drain(..solid);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(prompt: &str, pieces: &[&str]) -> (String, String) {
        let (mut text, mut reasoning) = (String::new(), String::new());
        let mut show = |part: Part, s: &str| match part {
            Part::Text => text.push_str(s),
            Part::Reasoning => reasoning.push_str(s),
        };
        let mut splitter = ReplySplitter::after_prompt(prompt);
        pieces.iter().for_each(|piece| splitter.push(piece, &mut show));
        splitter.finish(&mut show);
        (text, reasoning)
    }

    fn check(prompt: &str, reply: &str, text: &str, reasoning: &str) {
        let expected = (text.to_string(), reasoning.to_string());
        assert_eq!(split(prompt, &[reply]), expected, "whole: {reply:?}");
        let chars: Vec<String> = reply.chars().map(String::from).collect();
        let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
        assert_eq!(split(prompt, &chars), expected, "by character: {reply:?}");
    }

    #[test]
    fn splits_replies() {
        check("", "Hello.", "Hello.", "");
        check("", "  Hello.", "  Hello.", "");
        check("", "<think>\nHm.\n</think>\n\nYes.", "Yes.", "Hm.");
        check("", "\n<think>a b\n\nc</think>Yes.", "Yes.", "a b\n\nc");
        check("", "<think>\n\n</think>\n\nYes.", "Yes.", "");
        check("…<think>\n", "Hm </thin </think> Yes", "Yes", "Hm </thin");
        check("", "<thinking is fun", "<thinking is fun", "");
        check("", "<thi", "<thi", "");
        check("", "The tag <think> opens.", "The tag <think> opens.", "");
        check("", "<think>never ends  ", "", "never ends  ");
        check("", "[THINK]x[/THINK]y", "y", "x");
        check("", "", "", "");
        check("", "<think>é …</think>é", "é", "é …");
    }

    #[test]
    fn half_a_tag_is_never_shown() {
        let mut splitter = ReplySplitter::after_prompt("<think>");
        for c in "ab</think".chars() {
            splitter.push(c.encode_utf8(&mut [0; 4]), &mut |_, s| assert!(!s.contains('<'), "{s}"));
        }
    }
}
