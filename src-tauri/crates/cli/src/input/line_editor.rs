//! The editor of a line at a terminal: arrows, history, pasted text of several lines.
//!
//! Exists only where both standard input and output are terminals. Pasted line breaks are part of the line.

use std::io;
use std::path::PathBuf;

use contract::Result;

use super::MAX_LINE_BYTES;
use super::edit_buffer::EditBuffer;
use super::edit_key::{EditKey, read_key};
use super::event::InputEvent;
use super::line_view::LineView;
use super::prompt_history::PromptHistory;
use super::terminal_mode::{TerminalMode, screen_size};
use crate::out;

/// Edits lines, and remembers what was sent.
pub struct LineEditor {
    history: PromptHistory,
}

/// What a key ends the line with.
enum LineEnd {
    Sent,
    Discarded,
    EndOfInput,
}

/// A line while it is edited.
struct EditedLine<'a> {
    history: &'a [String],
    /// The entry that is shown; the number of entries: what the person writes.
    entry: usize,
    /// What the person wrote before entries were shown.
    draft: String,
    buffer: EditBuffer,
}

impl LineEditor {
    /// `kept`: the file that holds the history over starts.
    ///
    /// Errors: the file can't be used.
    pub fn new(kept: Option<PathBuf>) -> Result<Self> {
        Ok(Self { history: PromptHistory::open(kept)? })
    }

    /// Returns whether this terminal can be edited on.
    pub fn is_possible() -> bool {
        cfg!(unix)
            && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
            && TerminalMode::begin().is_ok()
    }

    /// Reads a line behind `prompt`.
    pub fn read(&mut self, prompt: &str) -> InputEvent {
        let mode = match TerminalMode::begin() {
            Ok(mode) => mode,
            Err(error) => return InputEvent::Failed(error),
        };
        let event = self.edit(prompt);
        drop(mode);
        event.unwrap_or_else(InputEvent::Failed)
    }

    fn edit(&self, prompt: &str) -> io::Result<InputEvent> {
        let mut size = screen_size();
        let mut line = EditedLine::new(self.history.entries());
        let mut view = LineView::default();
        let mut input = io::stdin().lock();
        loop {
            let next = LineView::of(prompt, line.buffer.text(), line.buffer.cursor(), size);
            out::bytes(next.drawn_over(&view).as_bytes());
            view = next;
            let max_bytes = usize::try_from(MAX_LINE_BYTES).unwrap_or(usize::MAX);
            let end = match read_key(&mut input, max_bytes)? {
                None => Some(LineEnd::EndOfInput),
                Some(EditKey::Redraw) => {
                    size = screen_size();
                    out::bytes(b"\x1b[H\x1b[2J");
                    view = LineView::default();
                    None
                }
                Some(key) => line.press(key),
            };
            let Some(end) = end else { continue };
            line.buffer.move_to_end();
            let last = LineView::of(prompt, line.buffer.text(), line.buffer.cursor(), size);
            out::bytes(format!("{}\r\n", last.drawn_over(&view)).as_bytes());
            return Ok(match end {
                LineEnd::Sent => InputEvent::Line(line.buffer.text().to_owned()),
                LineEnd::Discarded => InputEvent::Discarded,
                LineEnd::EndOfInput => InputEvent::End,
            });
        }
    }

    /// Adds what was sent to the history.
    ///
    /// Errors: the history's file can't be written. It is in the history of this start all the same.
    pub fn remember(&mut self, text: &str) -> Result<()> {
        self.history.add(text)
    }
}

impl<'a> EditedLine<'a> {
    fn new(history: &'a [String]) -> Self {
        Self { history, entry: history.len(), draft: String::new(), buffer: EditBuffer::default() }
    }

    /// Does what a key says. Returns how the line ends, if it does.
    fn press(&mut self, key: EditKey) -> Option<LineEnd> {
        let buffer = &mut self.buffer;
        match key {
            EditKey::Enter => return Some(LineEnd::Sent),
            EditKey::Interrupt => return Some(LineEnd::Discarded),
            EditKey::EndOfInput if buffer.text().is_empty() => return Some(LineEnd::EndOfInput),
            EditKey::EndOfInput | EditKey::Delete => buffer.delete_right(),
            EditKey::Char(c) => buffer.insert(c.encode_utf8(&mut [0; 4])),
            EditKey::Paste(text) => buffer.insert(&text),
            EditKey::NewLine => buffer.insert("\n"),
            EditKey::Left => buffer.move_left(),
            EditKey::Right => buffer.move_right(),
            EditKey::WordLeft => buffer.move_word_left(),
            EditKey::WordRight => buffer.move_word_right(),
            EditKey::Home => buffer.move_home(),
            EditKey::End => buffer.move_end(),
            EditKey::Backspace => buffer.delete_left(),
            EditKey::DeleteWord => buffer.delete_word(),
            EditKey::DeleteToStart => buffer.delete_to_start(),
            EditKey::DeleteToEnd => buffer.delete_to_end(),
            EditKey::Up => {
                if !buffer.move_up() {
                    self.show_entry(self.entry.checked_sub(1));
                }
            }
            EditKey::Down => {
                if !buffer.move_down() {
                    self.show_entry(Some(self.entry + 1).filter(|entry| *entry <= self.history.len()));
                }
            }
            EditKey::Redraw | EditKey::Other => {}
        }
        None
    }

    fn show_entry(&mut self, entry: Option<usize>) {
        let Some(entry) = entry else { return };
        if self.entry == self.history.len() {
            self.buffer.text().clone_into(&mut self.draft);
        }
        self.entry = entry;
        self.buffer.set(self.history.get(entry).unwrap_or(&self.draft));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_walk_through_the_history_and_back_to_what_was_written() {
        let history = ["first".to_owned(), "two\nlines".to_owned()];
        let mut line = EditedLine::new(&history);
        line.press(EditKey::Char('x'));
        let mut pressed = |key: EditKey| {
            assert!(line.press(key).is_none());
            line.buffer.text().to_owned()
        };
        assert_eq!(pressed(EditKey::Up), "two\nlines");
        assert_eq!(pressed(EditKey::Up), "two\nlines", "to its first line");
        assert_eq!(pressed(EditKey::Up), "first");
        assert_eq!(pressed(EditKey::Up), "first");
        assert_eq!(pressed(EditKey::Down), "two\nlines");
        assert_eq!(pressed(EditKey::Down), "x");
        assert_eq!(pressed(EditKey::Down), "x");
        assert_eq!(pressed(EditKey::Paste("a\nb".into())), "xa\nb");
    }

    #[test]
    fn a_line_ends_by_enter_ctrl_c_and_ctrl_d() {
        let mut line = EditedLine::new(&[]);
        assert!(matches!(line.press(EditKey::EndOfInput), Some(LineEnd::EndOfInput)));
        line.press(EditKey::Char('x'));
        line.press(EditKey::Left);
        assert!(line.press(EditKey::EndOfInput).is_none() && line.buffer.text().is_empty(), "it deletes");
        assert!(matches!(line.press(EditKey::Interrupt), Some(LineEnd::Discarded)));
        assert!(matches!(line.press(EditKey::Enter), Some(LineEnd::Sent)));
    }
}
