//! Separates reasoning that a server leaves in the text: an answer that begins with `<think>` is
//! split at `</think>`. Elsewhere in an answer the tags are ordinary text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Where in the answer this is.
#[derive(Debug, Default, PartialEq, Eq)]
enum TagState {
    /// Nothing has come but what may begin the tag.
    #[default]
    Before,
    /// White space after either tag is dropped.
    Opened,
    Inside,
    Behind,
    Text,
}

/// What an event says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delta {
    pub text: String,
    pub reasoning: String,
}

#[derive(Debug, Default)]
pub struct Thinking {
    place: TagState,
    /// What may be a part of a tag.
    held: String,
}

impl Thinking {
    pub fn push(&mut self, text: &str) -> Delta {
        let mut delta = Delta::default();
        self.held.push_str(text);
        loop {
            let held = std::mem::take(&mut self.held);
            match self.place {
                TagState::Before => {
                    let bare = held.trim_start();
                    if let Some(rest) = bare.strip_prefix(OPEN) {
                        self.place = TagState::Opened;
                        self.held = rest.to_owned();
                    } else if OPEN.starts_with(bare) {
                        self.held = held;
                        return delta;
                    } else {
                        self.place = TagState::Text;
                        self.held = held;
                    }
                }
                TagState::Opened | TagState::Behind => {
                    let bare = held.trim_start();
                    if bare.is_empty() {
                        return delta;
                    }
                    self.held = bare.to_owned();
                    self.place =
                        if self.place == TagState::Opened { TagState::Inside } else { TagState::Text };
                }
                TagState::Inside => {
                    if let Some((reasoning, rest)) = held.split_once(CLOSE) {
                        delta.reasoning.push_str(reasoning);
                        self.place = TagState::Behind;
                        self.held = rest.to_owned();
                    } else {
                        let at = held.len() - n_begun(&held, CLOSE);
                        delta.reasoning.push_str(&held[..at]);
                        self.held = held[at..].to_owned();
                        return delta;
                    }
                }
                TagState::Text => {
                    delta.text.push_str(&held);
                    return delta;
                }
            }
        }
    }

    /// What was held back is no tag.
    pub fn end(&mut self) -> Delta {
        let held = std::mem::take(&mut self.held);
        match self.place {
            TagState::Inside => Delta { text: String::new(), reasoning: held },
            TagState::Before | TagState::Opened | TagState::Behind | TagState::Text => {
                Delta { text: held, reasoning: String::new() }
            }
        }
    }
}

/// Bytes at the end of `text` that may be the beginning of `tag`.
fn n_begun(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&n| text.ends_with(&tag[..n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_however_they_are_cut() {
        let cases = [
            ("<think>\nHm <b> </thin</think>\n\nYes <think>", "Yes <think>", "Hm <b> </thin"),
            ("No <think>x</think>", "No <think>x</think>", ""),
            ("  <thing>", "  <thing>", ""),
            ("<think>never ends </", "", "never ends </"),
            ("<thi", "<thi", ""),
            ("\n", "\n", ""),
            ("日本", "日本", ""),
        ];
        for (whole, text, reasoning) in cases {
            for n in 1..=whole.chars().count() {
                let mut thinking = Thinking::default();
                let letters: Vec<char> = whole.chars().collect();
                let mut got = Delta::default();
                let pieces = letters.chunks(n).map(|piece| thinking.push(&piece.iter().collect::<String>()));
                let pieces: Vec<Delta> = pieces.collect();
                for delta in pieces.into_iter().chain([thinking.end()]) {
                    got.text.push_str(&delta.text);
                    got.reasoning.push_str(&delta.reasoning);
                }
                assert_eq!(
                    (got.text.as_str(), got.reasoning.as_str()),
                    (text, reasoning),
                    "{whole:?} by {n}"
                );
            }
        }
    }
}
