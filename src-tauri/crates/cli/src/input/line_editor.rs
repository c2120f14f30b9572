//! The editor of a line at a terminal: `rustyline` with the history and the commands of `nook chat`.
//!
//! Exists only where both standard input and output are terminals. Pasted line breaks are part of the line.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use ::io::OperatingSystem;
use contract::{Error, Result};
use rustyline::config::{BellStyle, Config};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Cmd, Editor, EventHandler, KeyCode, KeyEvent, Modifiers};

use super::command_assist::CommandAssist;
use super::event::InputEvent;
use super::prompt_history::{MAX_ENTRIES, MAX_ENTRY_BYTES, PromptHistory};
use super::{MAX_LINE_BYTES, line_too_long};
use crate::out;

/// Terminals on which `rustyline` edits nothing.
const PLAIN_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Edits lines, and remembers what was sent.
pub struct LineEditor {
    editor: Editor<CommandAssist, MemHistory>,
    file: PromptHistory,
}

impl LineEditor {
    /// `kept`: the file that holds the history over starts. `commands` are completed.
    ///
    /// Errors: the file or the terminal can't be used.
    pub fn new(kept: Option<PathBuf>, commands: &'static [&'static str]) -> Result<Self> {
        let (file, entries) = PromptHistory::open(kept)?;
        let editor = editor(&entries, commands).map_err(|error| {
            let message = format!("The terminal can't be used: {error}.");
            Error::input("input.terminal", message, "Use another terminal, or pipe the lines.")
        })?;
        Ok(Self { editor, file })
    }

    /// Returns whether this terminal can be edited on.
    pub fn is_possible() -> bool {
        can_edit(OperatingSystem::HERE, std::env::var("TERM").ok().as_deref())
    }

    /// Reads a line behind `prompt`.
    pub fn read(&mut self, prompt: &str) -> InputEvent {
        loop {
            return match self.editor.readline(prompt) {
                Ok(line) if line.len() as u64 > MAX_LINE_BYTES => InputEvent::Failed(line_too_long()),
                Ok(line) => InputEvent::Line(line),
                Err(ReadlineError::Interrupted) => InputEvent::Discarded,
                Err(ReadlineError::Eof) => InputEvent::End,
                Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                    out::log("The terminal sent text that is not UTF-8. The line was discarded.");
                    continue;
                }
                Err(ReadlineError::Io(error)) => InputEvent::Failed(error),
                Err(error) => InputEvent::Failed(io::Error::other(error)),
            };
        }
    }

    /// Adds what was sent to the history, unless it is blank, too long, or the last entry again.
    ///
    /// Errors: the history's file can't be written. It is in the history of this start all the same.
    pub fn remember(&mut self, text: &str) -> Result<()> {
        if text.trim().is_empty() || text.len() > MAX_ENTRY_BYTES {
            return Ok(());
        }
        match self.editor.add_history_entry(text) {
            Ok(true) => self.file.append(text),
            // It is the last entry again. A history in memory has no errors.
            Ok(false) | Err(_) => Ok(()),
        }
    }
}

fn editor(
    entries: &[String],
    commands: &'static [&'static str],
) -> rustyline::Result<Editor<CommandAssist, MemHistory>> {
    let config = Config::builder().max_history_size(MAX_ENTRIES)?.bell_style(BellStyle::None).build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(CommandAssist::new(commands)));
    let alt_enter = KeyEvent(KeyCode::Enter, Modifiers::ALT);
    for key in [alt_enter, KeyEvent::alt('\r'), KeyEvent::alt('\n')] {
        editor.bind_sequence(key, EventHandler::Simple(Cmd::Newline));
    }
    for entry in entries {
        editor.add_history_entry(entry.as_str())?;
    }
    Ok(editor)
}

/// Whether a terminal of this name can be edited on. A console of Windows has no name.
fn can_edit(system: OperatingSystem, term: Option<&str>) -> bool {
    match term {
        Some(term) => !PLAIN_TERMINALS.iter().any(|plain| term.eq_ignore_ascii_case(plain)),
        None => system == OperatingSystem::Windows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_without_a_name_is_one_of_windows() {
        use OperatingSystem::{Linux, MacOs, Windows};
        for (system, term, expected) in [
            (Linux, Some("xterm-256color"), true),
            (Linux, Some("dumb"), false),
            (Linux, None, false),
            (MacOs, None, false),
            (Windows, None, true),
            (Windows, Some("DUMB"), false),
        ] {
            assert_eq!(can_edit(system, term), expected, "{system:?} {term:?}");
        }
    }
}
