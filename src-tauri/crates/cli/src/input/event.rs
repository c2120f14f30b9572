//! What waiting for a line of standard input can end with.

use std::io;

/// Result of waiting for one line.
#[derive(Debug)]
pub enum InputEvent {
    /// The line without its line ending.
    Line(String),
    /// The end of the input.
    End,
    Failed(io::Error),
    /// Ctrl+C ended the wait.
    Interrupted,
    /// Ctrl+C discarded the line that was being edited.
    Discarded,
}
