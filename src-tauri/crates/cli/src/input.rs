//! Lines of standard input, the waiting for which Ctrl+C ends. The line that was waited for is still the next one.

use std::cell::Cell;
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use contract::Error;
use contract::ErrorKind;
use contract::Result;

use crate::interrupt::Interrupt;
use crate::out;

/// What came of the waiting.
#[derive(Debug)]
pub enum Heard {
    /// Without its end.
    Line(String),
    /// There are no more.
    End,
    Failed(io::Error),
    /// By Ctrl+C.
    Interrupted,
}

pub struct Lines {
    wanted: Sender<()>,
    say: Sender<Heard>,
    heard: Receiver<Heard>,
    /// A line is being waited for.
    is_wanted: Cell<bool>,
}

impl Lines {
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
    pub fn next(&self, interrupt: &Interrupt, prompt: &str) -> Heard {
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
        self.is_wanted.set(matches!(heard, Heard::Interrupted));
        heard
    }

    /// What was typed before it was asked for. A Ctrl+C that came too late for the last waiting is nothing to this one.
    fn early(&self) -> Option<Heard> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).find(|heard| !matches!(heard, Heard::Interrupted))
    }

    fn wait(&self) -> Heard {
        if !self.is_wanted.replace(true) && self.wanted.send(()).is_err() {
            return Heard::End;
        }
        self.heard.recv().unwrap_or(Heard::End)
    }
}

fn read() -> Heard {
    let mut line = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(0) => Heard::End,
        Ok(_) => Heard::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Err(error) => Heard::Failed(error),
    }
}
