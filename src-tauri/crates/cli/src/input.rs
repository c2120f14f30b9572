//! Lines of standard input. Ctrl+C ends the wait for a line; that line is then the next one to be returned.

use std::cell::Cell;
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use contract::Error;
use contract::ErrorKind;
use contract::Result;

use crate::interrupt::Interrupt;
use crate::out;

pub mod event;

use event::InputEvent;

pub struct InputLines {
    wanted: Sender<()>,
    say: Sender<InputEvent>,
    heard: Receiver<InputEvent>,
    /// A line is being waited for.
    is_wanted: Cell<bool>,
}

impl InputLines {
    pub fn new() -> Result<Self> {
        let (wanted, asked) = channel::<()>();
        let (say, heard) = channel();
        let told = say.clone();
        // It reads one line for each that is wanted, and ends with the program.
        let reading = thread::Builder::new()
            .name("nook-input".into())
            .spawn(move || while asked.recv().is_ok() && told.send(read()).is_ok() {});
        reading.map_err(|error| {
            let message = format!("The system could not start a thread: {error}.");
            Error::new(ErrorKind::Limit, "app.thread", message, "Close other programs and try again.")
        })?;
        Ok(Self { wanted, say, heard, is_wanted: Cell::new(false) })
    }

    /// The next line. `prompt` is shown once Ctrl+C would end the waiting.
    pub fn next(&self, interrupt: &Interrupt, prompt: &str) -> InputEvent {
        let early = self.early();
        if early.is_none() {
            interrupt.wake(Some(self.say.clone()));
        }
        if !prompt.is_empty() {
            out::hint(prompt);
        }
        let heard = early.unwrap_or_else(|| {
            let heard = self.wait();
            interrupt.wake(None);
            heard
        });
        self.is_wanted.set(matches!(heard, InputEvent::Interrupted));
        heard
    }

    /// What was typed before it was asked for. A Ctrl+C that came too late for the last waiting is nothing to this one.
    fn early(&self) -> Option<InputEvent> {
        std::iter::from_fn(|| self.heard.try_recv().ok())
            .find(|heard| !matches!(heard, InputEvent::Interrupted))
    }

    fn wait(&self) -> InputEvent {
        if !self.is_wanted.replace(true) && self.wanted.send(()).is_err() {
            return InputEvent::End;
        }
        self.heard.recv().unwrap_or(InputEvent::End)
    }
}

fn read() -> InputEvent {
    let mut line = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(0) => InputEvent::End,
        Ok(_) => InputEvent::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Err(error) => InputEvent::Failed(error),
    }
}
