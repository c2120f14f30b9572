//! Separates reasoning that a server leaves in the text: an answer that begins with `<think>` is
//! split at `</think>`. Where only the end tag comes, all text before it was reasoning. Elsewhere
//! in an answer the tags are ordinary text.

use super::answer_piece::Delta;

/// Tags that open and close reasoning. `true`: templates write the opening tag into the prompt, so
/// that the closing one may come alone.
const TAGS: [(&str, &str, bool); 6] = [
    ("<think>", "</think>", true),
    ("<seed:think>", "</seed:think>", true),
    ("[THINK]", "[/THINK]", true),
    ("◁think▷", "◁/think▷", true),
    ("<thinking>", "</thinking>", false),
    ("<thought>", "</thought>", false),
];

/// Of a line, as much as tells whether its end is in code.
const MAX_LINE_BYTES: usize = 4096;

/// Where in the answer this is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum TagState {
    /// Nothing has come but what may begin a tag.
    #[default]
    Before,
    /// White space after either tag is dropped.
    Opened(usize),
    Inside(usize),
    Behind,
    /// Text in which a closing tag may come alone.
    Unsettled,
    Text,
}

#[derive(Debug, Default)]
pub struct Thinking {
    state: TagState,
    /// What may be a part of a tag.
    held: String,
    context: LineContext,
    /// The server separates reasoning itself.
    is_apart: bool,
}

impl Thinking {
    /// Reasoning came in a separate field, so the text holds none.
    pub fn came_apart(&mut self) {
        self.is_apart = true;
        if self.state == TagState::Unsettled {
            self.state = TagState::Text;
        }
    }

    pub fn push(&mut self, text: &str) -> Delta {
        let mut delta = Delta::default();
        if text.is_empty() {
            return delta;
        }
        self.held.push_str(text);
        while self.step(&mut delta, false) {}
        delta
    }

    /// What was held back is no tag.
    pub fn end(&mut self) -> Delta {
        let mut delta = Delta::default();
        if self.state == TagState::Unsettled {
            while self.step(&mut delta, true) {}
        }
        let held = std::mem::take(&mut self.held);
        match self.state {
            TagState::Inside(_) => delta.reasoning.push_str(&held),
            TagState::Behind if held.trim().is_empty() => {}
            TagState::Before
            | TagState::Opened(_)
            | TagState::Behind
            | TagState::Unsettled
            | TagState::Text => delta.text.push_str(&held),
        }
        delta
    }

    /// Makes one transition. Returns true if another may follow.
    fn step(&mut self, delta: &mut Delta, is_end: bool) -> bool {
        let held = std::mem::take(&mut self.held);
        match self.state {
            TagState::Before => {
                let bare = held.trim_start();
                if let Some((at, rest)) = starts_with_tag(bare, |tag| tag.0) {
                    self.state = TagState::Opened(at);
                    self.held = rest.to_owned();
                } else if let Some((_, rest)) = starts_with_tag(bare, |tag| tag.1) {
                    self.state = TagState::Behind;
                    self.held = rest.to_owned();
                } else if TAGS.iter().any(|tag| tag.0.starts_with(bare) || tag.1.starts_with(bare)) {
                    self.held = held;
                    return false;
                } else {
                    self.state = if self.is_apart { TagState::Text } else { TagState::Unsettled };
                    self.held = held;
                }
                true
            }
            TagState::Opened(_) | TagState::Behind => {
                let bare = held.trim_start();
                if bare.is_empty() {
                    return false;
                }
                self.held = bare.to_owned();
                self.state = match self.state {
                    TagState::Opened(at) => TagState::Inside(at),
                    _ => TagState::Text,
                };
                true
            }
            TagState::Inside(tag) => {
                let close = TAGS[tag].1;
                if let Some((reasoning, rest)) = held.split_once(close) {
                    delta.reasoning.push_str(reasoning);
                    self.state = TagState::Behind;
                    self.held = rest.to_owned();
                    return true;
                }
                let at = held.len() - n_begun(&held, close);
                delta.reasoning.push_str(&held[..at]);
                self.held = held[at..].to_owned();
                false
            }
            TagState::Unsettled => self.step_unsettled(held, delta, is_end),
            TagState::Text => {
                delta.text.push_str(&held);
                false
            }
        }
    }

    fn step_unsettled(&mut self, held: String, delta: &mut Delta, is_end: bool) -> bool {
        let alone = || TAGS.iter().filter(|tag| tag.2);
        let found = alone().filter_map(|tag| Some((held.find(tag.1)?, tag.1.len()))).min();
        let opened = alone().filter_map(|tag| held.find(tag.0)).min();
        let Some((at, n_tag)) = found.filter(|(at, _)| opened.is_none_or(|opened| *at < opened)) else {
            if opened.is_some() {
                // Both tags in an answer are text about tags.
                self.state = TagState::Text;
                self.held = held;
                return true;
            }
            let n_held = alone().map(|tag| n_begun(&held, tag.0).max(n_begun(&held, tag.1))).max();
            let at = if is_end { held.len() } else { held.len() - n_held.unwrap_or(0) };
            self.context.advance(&held[..at]);
            delta.text.push_str(&held[..at]);
            self.held = held[at..].to_owned();
            return false;
        };
        let (before, after) = (&held[..at], &held[at + n_tag..]);
        self.context.advance(before);
        match self.context.is_markup(after, is_end) {
            None => {
                delta.text.push_str(before);
                self.held = held[at..].to_owned();
                false
            }
            Some(true) => {
                delta.text.push_str(before);
                delta.reasoning = std::mem::take(&mut delta.text);
                delta.is_revision = true;
                self.state = TagState::Behind;
                self.held = after.to_owned();
                true
            }
            Some(false) => {
                self.context.advance(&held[at..at + n_tag]);
                delta.text.push_str(&held[..at + n_tag]);
                self.held = after.to_owned();
                true
            }
        }
    }
}

/// What stands before a closing tag: it tells markup from text about markup.
#[derive(Debug, Default)]
struct LineContext {
    line: String,
    is_in_fence: bool,
}

impl LineContext {
    fn advance(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                let line = self.line.trim_start();
                if line.starts_with("```") || line.starts_with("~~~") {
                    self.is_in_fence = !self.is_in_fence;
                }
                self.line.clear();
            } else if self.line.len() < MAX_LINE_BYTES {
                self.line.push(c);
            }
        }
    }

    /// Whether a tag between here and `after` is markup. None: more of `after` is needed to tell.
    fn is_markup(&self, after: &str, is_end: bool) -> Option<bool> {
        let before = self.line.as_str();
        let is_in_code = self.is_in_fence || before.matches('`').count() % 2 == 1;
        if is_in_code || before.ends_with(['"', '\'', '(', '“', '‘', '«', '„']) {
            return Some(false);
        }
        let mut next = after.chars();
        match next.next() {
            None => is_end.then_some(true),
            Some('.' | ',' | ';' | ':' | ')' | '`') => Some(false),
            Some(' ') if before.ends_with(' ') && !before.trim().is_empty() => match next.next() {
                None => is_end.then_some(true),
                Some(c) => Some(!c.is_lowercase()),
            },
            Some(_) => Some(true),
        }
    }
}

fn starts_with_tag(
    text: &str,
    of: fn(&(&'static str, &'static str, bool)) -> &'static str,
) -> Option<(usize, &str)> {
    TAGS.iter().enumerate().find_map(|(at, tag)| Some((at, text.strip_prefix(of(tag))?)))
}

/// Bytes at the end of `text` that may be the beginning of `tag`.
fn n_begun(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&n| tag.is_char_boundary(n) && text.ends_with(&tag[..n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it is cut, an answer comes apart into text and reasoning.
    fn check(whole: &str, text: &str, reasoning: &str) {
        for n in 1..=whole.chars().count() {
            let mut thinking = Thinking::default();
            let letters: Vec<char> = whole.chars().collect();
            let mut got = (String::new(), String::new());
            let pieces = letters.chunks(n).map(|piece| thinking.push(&piece.iter().collect::<String>()));
            let pieces: Vec<Delta> = pieces.collect();
            for delta in pieces.into_iter().chain([thinking.end()]) {
                if delta.is_revision {
                    got.1.push_str(&std::mem::take(&mut got.0));
                }
                got.0.push_str(&delta.text);
                got.1.push_str(&delta.reasoning);
            }
            assert_eq!((got.0.as_str(), got.1.trim_end()), (text, reasoning), "{whole:?} by {n}");
        }
    }

    #[test]
    fn tags_are_found_however_they_are_cut() {
        check("<think>\nHm <b> </thin</think>\n\nYes <think>", "Yes <think>", "Hm <b> </thin");
        check("No <think>x</think>", "No <think>x</think>", "");
        check("  <thing>", "  <thing>", "");
        check("<think>never ends </", "", "never ends </");
        check("<thi", "<thi", "");
        check("\n", "\n", "");
        check("日本", "日本", "");
        check("◁think▷a◁/think▷b", "b", "a");
        check("<thought>a</thought>b", "b", "a");
        check("[THINK]a[/THINK]b", "b", "a");
    }

    #[test]
    fn a_closing_tag_may_come_alone() {
        check("Okay, hi. I should greet.\n</think>\n\nHello", "Hello", "Okay, hi. I should greet.");
        check("hm</think>Hello", "Hello", "hm");
        check("Hm. </think> Hello", "Hello", "Hm.");
        check("hm</think>", "", "hm");
        check("\n</think>\n\nHello", "Hello", "");
        check("a\n</think>\nb </think> C", "b </think> C", "a");
        check("a\n[/THINK]\nb", "b", "a");
        for text in [
            "The tag </think> closes it.",
            "Write `</think>` at the end.",
            "Write \"</think>\" there.",
            "It ends with </think>.",
            "```\n</think>\n```\nSo.",
            "Between <think> and </think> it thinks.\n</think>",
            "a </thin",
        ] {
            check(text, text, "");
        }
    }

    #[test]
    fn reasoning_that_comes_apart_is_not_looked_for() {
        let mut thinking = Thinking::default();
        thinking.came_apart();
        assert_eq!(thinking.push("a\n</think>\nB").text, "a\n</think>\nB");
        let mut thinking = Thinking::default();
        thinking.came_apart();
        assert_eq!(thinking.push("</think>\n\nB").text, "B");
    }
}
