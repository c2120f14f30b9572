//! Colours for the Markdown of answers on a terminal. The text stays as it is, marks included: it can be copied.
//!
//! Text comes in pieces of any length; a mark may be cut in two.

use std::io::IsTerminal;

const STRONG: &str = "\x1b[1m";
const QUOTE: &str = "\x1b[2m";
const CODE: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// Most marks of a heading.
const MAX_HEADING_MARKS: usize = 6;

/// Where a line of Markdown is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LinePosition {
    /// Its kind is not known yet.
    #[default]
    Start,
    /// In its text.
    Inside,
    /// In the opening or closing line of a code block.
    Fence,
}

/// Adds escape sequences to an answer while it comes.
#[derive(Debug, Default)]
pub struct MarkdownStyle {
    position: LinePosition,
    /// Characters whose meaning depends on the next one.
    pending: String,
    in_code_block: bool,
    in_code: bool,
    is_strong: bool,
    /// The style of the whole line; empty: plain.
    of_line: &'static str,
}

/// Returns whether standard output is a terminal on which styles are wanted (https://no-color.org).
pub fn has_styles() -> bool {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    std::io::stdout().is_terminal() && !is_unwanted
}

impl MarkdownStyle {
    /// Styles for standard output, if it takes any.
    pub fn for_stdout() -> Option<Self> {
        has_styles().then(Self::default)
    }

    /// The next piece with its styles. `text` has no control characters but line ends and tabs.
    pub fn add(&mut self, text: &str) -> String {
        let mut styled = String::with_capacity(text.len());
        text.chars().for_each(|c| self.take(c, &mut styled));
        styled
    }

    /// What is left, and the end of every style.
    pub fn end(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.pending);
        rest.push_str(PLAIN);
        *self = Self::default();
        rest
    }

    fn take(&mut self, c: char, styled: &mut String) {
        match (self.position, c) {
            (_, '\n') => self.end_line(styled),
            (LinePosition::Fence, c) => styled.push(c),
            (LinePosition::Start, ' ' | '#' | '`' | '~' | '>') => {
                self.pending.push(c);
                self.decide(styled);
            }
            (LinePosition::Start, c) => {
                self.begin_text(styled);
                self.take_inside(c, styled);
            }
            (LinePosition::Inside, c) => self.take_inside(c, styled),
        }
    }

    /// Finds the kind of a line as soon as its first marks show it.
    fn decide(&mut self, styled: &mut String) {
        let marks = self.pending.trim_start();
        if marks.starts_with("```") || marks.starts_with("~~~") {
            self.in_code_block = !self.in_code_block;
            self.position = LinePosition::Fence;
            styled.push_str(CODE);
            styled.push_str(&std::mem::take(&mut self.pending));
            return;
        }
        if self.in_code_block {
            return;
        }
        let n_hashes = marks.bytes().take_while(|byte| *byte == b'#').count();
        let is_heading = (1..=MAX_HEADING_MARKS).contains(&n_hashes) && marks[n_hashes..].starts_with(' ');
        if is_heading {
            self.of_line = STRONG;
        } else if marks.starts_with('>') {
            self.of_line = QUOTE;
        } else {
            return;
        }
        styled.push_str(self.of_line);
        styled.push_str(&std::mem::take(&mut self.pending));
        self.position = LinePosition::Inside;
    }

    /// The line is ordinary text; what was kept back belongs to it.
    fn begin_text(&mut self, styled: &mut String) {
        self.position = LinePosition::Inside;
        if self.in_code_block {
            styled.push_str(CODE);
        }
        let kept = std::mem::take(&mut self.pending);
        kept.chars().for_each(|c| self.take_inside(c, styled));
    }

    fn take_inside(&mut self, c: char, styled: &mut String) {
        if self.in_code_block {
            styled.push(c);
            return;
        }
        let has_star = std::mem::take(&mut self.pending) == "*";
        match c {
            '*' if self.in_code => styled.push(c),
            '*' if has_star => self.toggle_strong(styled),
            '*' => self.pending.push(c),
            c => {
                if has_star {
                    styled.push('*');
                }
                match c {
                    '`' => self.toggle_code(styled),
                    c => styled.push(c),
                }
            }
        }
    }

    fn toggle_strong(&mut self, styled: &mut String) {
        self.is_strong = !self.is_strong;
        match self.is_strong {
            true => styled.push_str(&format!("{STRONG}**")),
            false => styled.push_str(&format!("**{PLAIN}{}", self.of_line)),
        }
    }

    fn toggle_code(&mut self, styled: &mut String) {
        self.in_code = !self.in_code;
        match self.in_code {
            true => styled.push_str(&format!("{CODE}`")),
            false => {
                let strong = if self.is_strong { STRONG } else { "" };
                styled.push_str(&format!("`{PLAIN}{}{strong}", self.of_line));
            }
        }
    }

    fn end_line(&mut self, styled: &mut String) {
        styled.push_str(&std::mem::take(&mut self.pending));
        let is_styled = self.position == LinePosition::Fence
            || self.in_code
            || self.is_strong
            || self.in_code_block
            || !self.of_line.is_empty();
        if is_styled {
            styled.push_str(PLAIN);
        }
        styled.push('\n');
        *self = Self { in_code_block: self.in_code_block, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of styles that can be read: `<b>` strong, `<q>` quote, `<c>` code, `</>` plain.
    fn shown(styled: &str) -> String {
        styled.replace(STRONG, "<b>").replace(QUOTE, "<q>").replace(CODE, "<c>").replace(PLAIN, "</>")
    }

    #[test]
    fn marks_are_coloured_and_kept() {
        for (text, expected) in [
            ("plain text\n", "plain text\n"),
            ("# Title\ntext\n", "<b># Title</>\ntext\n"),
            ("####### no title\n", "####### no title\n"),
            ("#hashtag\n", "#hashtag\n"),
            ("> said\n", "<q>> said</>\n"),
            ("a **b** c\n", "a <b>**b**</> c\n"),
            ("2 * 3 * 4\n", "2 * 3 * 4\n"),
            ("* item\n", "* item\n"),
            ("use `a**b` here\n", "use <c>`a**b`</> here\n"),
            ("**`x` y**\n", "<b>**<c>`x`</><b> y**</>\n"),
            ("## A **b** c\n", "<b>## A <b>**b**</><b> c</>\n"),
            ("open **strong\nnext\n", "open <b>**strong</>\nnext\n"),
            (
                "```rust\nlet a = *b; # no\n\n```\nafter\n",
                "<c>```rust</>\n<c>let a = *b; # no</>\n</>\n<c>```</>\nafter\n",
            ),
        ] {
            let mut whole = MarkdownStyle::default();
            assert_eq!(shown(&whole.add(text)), expected, "{text:?}");
            let mut pieces = MarkdownStyle::default();
            let styled: String = text.chars().map(|c| pieces.add(&c.to_string())).collect();
            assert_eq!(shown(&styled), expected, "in pieces: {text:?}");
        }
    }

    #[test]
    fn the_end_keeps_nothing_back() {
        let mut style = MarkdownStyle::default();
        assert_eq!(shown(&(style.add("a *") + &style.end())), "a *</>");
        assert_eq!(shown(&(style.add("##") + &style.end())), "##</>");
        assert_eq!(style.add("next\n"), "next\n");
    }
}
