//! Lines of standard input, edited at a terminal where that is wanted. Ctrl+C ends the wait for a line; that line is
//! then the next one to be returned.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use contract::Error;
use contract::ErrorKind;
use contract::Result;

use crate::interrupt::Interrupt;
use crate::out;

mod command_assist;
pub mod event;
pub mod line_editor;
mod prompt_history;

use event::InputEvent;
use line_editor::LineEditor;

/// What the thread that reads is asked for.
enum InputRequest {
    /// A line as it is.
    Plain,
    /// A line that is edited behind this prompt.
    Edited(String),
    /// An entry of the editor's history.
    Remember(String),
}

pub struct InputLines {
    requests: Sender<InputRequest>,
    has_editor: bool,
    event_sender: Sender<InputEvent>,
    events: Receiver<InputEvent>,
    /// A line was requested but not yet returned.
    is_requested: Cell<bool>,
}

impl InputLines {
    /// `editor` edits the lines of [`Self::next_edited`]. Other lines never are.
    pub fn new(editor: Option<LineEditor>) -> Result<Self> {
        let has_editor = editor.is_some();
        let (requests, requested) = channel();
        let (event_sender, events) = channel();
        let reader_sender = event_sender.clone();
        // Reads one line per request; the thread ends with the program.
        let reading = thread::Builder::new()
            .name("nook-input".into())
            .spawn(move || serve(editor, &requested, &reader_sender));
        reading.map_err(|error| {
            let message = format!("The system could not start a thread: {error}.");
            Error::new(ErrorKind::Limit, "app.thread", message, "Close other programs and try again.")
        })?;
        Ok(Self { requests, has_editor, event_sender, events, is_requested: Cell::new(false) })
    }

    /// Waits for the next line. Shows `prompt` once Ctrl+C can end the wait.
    pub fn next(&self, interrupt: &Interrupt, prompt: &str) -> InputEvent {
        self.next_as(interrupt, prompt, InputRequest::Plain)
    }

    /// As `next`, with the editor if there is one.
    pub fn next_edited(&self, interrupt: &Interrupt, prompt: &str) -> InputEvent {
        // A plain line that is still being waited for comes first.
        if !self.has_editor || self.is_requested.get() {
            return self.next(interrupt, prompt);
        }
        let line = prompt.trim_start_matches('\n');
        let before = &prompt[..prompt.len() - line.len()];
        self.next_as(interrupt, before, InputRequest::Edited(line.into()))
    }

    /// Returns whether lines can be edited.
    pub fn has_editor(&self) -> bool {
        self.has_editor
    }

    /// Adds what was sent to the editor's history.
    pub fn remember(&self, text: &str) {
        if self.has_editor {
            // Without its thread there is no input any more, which the next line tells.
            let _ = self.requests.send(InputRequest::Remember(text.into()));
        }
    }

    fn next_as(&self, interrupt: &Interrupt, prompt: &str, request: InputRequest) -> InputEvent {
        let early = self.early();
        if early.is_none() {
            interrupt.wake(Some(self.event_sender.clone()));
        }
        if !prompt.is_empty() {
            out::hint(prompt);
        }
        let event = early.unwrap_or_else(|| {
            let event = self.wait(request);
            interrupt.wake(None);
            event
        });
        self.is_requested.set(matches!(event, InputEvent::Interrupted));
        event
    }

    /// Input that arrived before the request. Drops a late Ctrl+C of the previous wait.
    fn early(&self) -> Option<InputEvent> {
        std::iter::from_fn(|| self.events.try_recv().ok())
            .find(|heard| !matches!(heard, InputEvent::Interrupted))
    }

    fn wait(&self, request: InputRequest) -> InputEvent {
        if !self.is_requested.replace(true) && self.requests.send(request).is_err() {
            return InputEvent::End;
        }
        self.events.recv().unwrap_or(InputEvent::End)
    }
}

/// Longest line of a conversation: far above what any context takes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Reads standard input to its end. Error: it fails, or has more than `max_bytes`.
pub fn read_stdin(max_bytes: u64) -> Result<Vec<u8>> {
    let wrong = |cause: String| {
        Error::input("input.stdin", format!("Standard input: {cause}."), "Pipe the text to standard input.")
    };
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(max_bytes.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| wrong(error.to_string()))?;
    match bytes.len() as u64 > max_bytes {
        true => Err(wrong(format!("it has more than {max_bytes} bytes, the maximum"))),
        false => Ok(bytes),
    }
}

/// Answers each request for a line with one, until the program ends.
fn serve(mut editor: Option<LineEditor>, requested: &Receiver<InputRequest>, lines: &Sender<InputEvent>) {
    while let Ok(request) = requested.recv() {
        let event = match (request, &mut editor) {
            (InputRequest::Remember(text), Some(editor)) => {
                if let Err(error) = editor.remember(&text) {
                    out::log(&format!("The history was not saved: {}", error.message()));
                }
                continue;
            }
            (InputRequest::Remember(_), None) => continue,
            (InputRequest::Edited(prompt), Some(editor)) => editor.read(&prompt),
            (InputRequest::Plain | InputRequest::Edited(_), _) => read(),
        };
        if lines.send(event).is_err() {
            return;
        }
    }
}

fn read() -> InputEvent {
    let mut line = Vec::new();
    match io::stdin().lock().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
        Ok(0) => InputEvent::End,
        Ok(n) if n as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") => InputEvent::Failed(line_too_long()),
        Ok(_) => InputEvent::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Err(error) => InputEvent::Failed(error),
    }
}

fn line_too_long() -> io::Error {
    io::Error::other(format!("a line has more than {MAX_LINE_BYTES} bytes"))
}
