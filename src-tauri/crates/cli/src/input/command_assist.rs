//! What the line editor adds to a line: completion and hints of commands, and a display that steers no terminal.

use std::borrow::Cow;

use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::markdown_style::has_styles;

/// Knows the commands, which begin with `/`.
pub struct CommandAssist {
    commands: &'static [&'static str],
    /// Only where they can be dim: they would look like text.
    has_hints: bool,
}

impl CommandAssist {
    /// A command that takes an argument ends with a space.
    pub fn new(commands: &'static [&'static str]) -> Self {
        Self { commands, has_hints: has_styles() }
    }

    /// The commands that begin with this text.
    fn matching(&self, start: &str) -> impl Iterator<Item = &'static str> {
        let commands = if start.starts_with('/') { self.commands } else { &[] };
        commands.iter().copied().filter(move |command| command.starts_with(start))
    }
}

impl Completer for CommandAssist {
    type Candidate = &'static str;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<&'static str>)> {
        Ok((0, line.get(..pos).map(|start| self.matching(start).collect()).unwrap_or_default()))
    }
}

impl Hinter for CommandAssist {
    type Hint = &'static str;

    /// The rest of the first command that fits.
    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<&'static str> {
        if !self.has_hints || pos < line.len() || line.len() < 2 {
            return None;
        }
        self.matching(line).next()?.get(line.len()..)
    }
}

impl Highlighter for CommandAssist {
    /// Leaves out what steers a terminal. `rustyline` counts no column for it.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match line.contains(is_steering) {
            true => line.replace(is_steering, "").into(),
            false => line.into(),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        format!("\x1b[2m{hint}\x1b[0m").into()
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        line.contains(is_steering)
    }
}

impl Validator for CommandAssist {}

impl Helper for CommandAssist {}

/// A control character, or one that changes the direction of what follows.
fn is_steering(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use rustyline::history::MemHistory;

    use super::*;

    const ASSIST: CommandAssist =
        CommandAssist { commands: &["/help", "/models", "/model ", "/file "], has_hints: true };

    #[test]
    fn commands_are_completed_and_hinted_at_the_end() {
        let history = MemHistory::new();
        let context = Context::new(&history);
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            ("", &[], None),
            ("hello", &[], None),
            ("/", &["/help", "/models", "/model ", "/file "], None),
            ("/m", &["/models", "/model "], Some("odels")),
            ("/f", &["/file "], Some("ile ")),
            ("/help", &["/help"], Some("")),
            ("/file a", &[], None),
            (" /f", &[], None),
            ("/é", &[], None),
        ];
        for (line, commands, hint) in cases {
            let completed = ASSIST.complete(line, line.len(), &context).unwrap();
            assert_eq!(completed, (0, commands.to_vec()), "{line:?}");
            assert_eq!(ASSIST.hint(line, line.len(), &context), *hint, "{line:?}");
        }
        assert_eq!(ASSIST.hint("/fx", 2, &context), None, "the cursor is inside");
    }

    #[test]
    fn what_is_shown_steers_no_terminal() {
        let cases = [
            ("plain\ttext\nof 日本", "plain\ttext\nof 日本"),
            ("a\u{9b}2J\u{7}b\r", "a2Jb"),
            ("\u{202e}שלום\u{2069}", "שלום"),
        ];
        for (line, shown) in cases {
            assert_eq!(ASSIST.highlight(line, 0), shown, "{line:?}");
            assert_eq!(ASSIST.highlight_char(line, 0, CmdKind::Other), line != shown, "{line:?}");
        }
    }
}
