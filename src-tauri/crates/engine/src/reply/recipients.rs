//! Replies to recipients, each under a line of its own, `>>>name`: words are for `all`, JSON is for a function. The prompt
//! ends with the first `>>>` (Functionary 3.2).
//!
//! Such a line counts where it names `all` or a tool of the request: what somebody typed at Python's prompt is text.

use super::calls::{self, Tools};
use super::{Show, Shown, marked};
use crate::stop::held_suffix;

/// Stands in every template of it.
pub const SIGN: &str = ">>>${recipient}";

const OPEN: &str = ">>>";
const ALL: &str = "all";
/// A line longer than this is no name.
const MOST_NAME_BYTES: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Behind the prompt's `>>>`.
    Name,
    Text,
    /// For this function.
    Call(String),
}

#[derive(Debug, Clone)]
pub struct Recipients {
    state: State,
    /// Whole lines that begin a message.
    lines: Vec<String>,
    held: String,
}

impl Recipients {
    pub fn new(prompt: &str, tools: &Tools) -> Self {
        let names = std::iter::once(ALL).chain(tools.names());
        let lines = names.map(|name| format!("{OPEN}{name}\n")).collect();
        let state = if prompt.trim_end().ends_with(OPEN) { State::Name } else { State::Text };
        Self { state, lines, held: String::new() }
    }

    pub fn push(&mut self, piece: &str, show: &mut Show<'_>) {
        self.held.push_str(piece);
        while self.step(show) {}
    }

    pub fn finish(&mut self, show: &mut Show<'_>) {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Text) {
            State::Name | State::Text => say(&held, show),
            State::Call(name) => call(&name, &held, show),
        }
    }

    /// One transition; true if there may be another.
    fn step(&mut self, show: &mut Show<'_>) -> bool {
        match &self.state {
            State::Name => self.step_name(),
            State::Text => {
                if let Some(next) = self.next_message() {
                    say(next.before.trim_end(), show);
                    self.state = next.state;
                    return true;
                }
                let held = self.lines.iter().map(|line| held_suffix(&self.held, line)).max().unwrap_or(0);
                let solid = self.held[..self.held.len() - held].trim_end().len();
                say(&self.held[..solid], show);
                self.held.drain(..solid);
                false
            }
            State::Call(name) => {
                let name = name.clone();
                let Some(next) = self.next_message() else { return false };
                call(&name, &next.before, show);
                self.state = next.state;
                true
            }
        }
    }

    fn step_name(&mut self) -> bool {
        let Some(end) = self.held.find('\n') else {
            // A model that names nobody speaks to all.
            if self.held.len() > MOST_NAME_BYTES {
                self.state = State::Text;
            }
            return self.state == State::Text;
        };
        let name = self.held[..end].trim().to_owned();
        self.state = match name.as_str() {
            ALL => State::Text,
            name if is_name(name) => State::Call(name.to_owned()),
            _ => {
                self.state = State::Text;
                return true;
            }
        };
        self.held.drain(..=end);
        true
    }

    /// Takes what stands before the next message.
    fn next_message(&mut self) -> Option<Next> {
        let found = self.lines.iter().filter_map(|line| Some((self.held.find(line.as_str())?, line)));
        let (at, line) = found.min_by_key(|(at, _)| *at)?;
        let (n_line, name) = (line.len(), line[OPEN.len()..].trim_end());
        let state = if name == ALL { State::Text } else { State::Call(name.to_owned()) };
        let before = self.held[..at].to_owned();
        self.held.drain(..at + n_line);
        Some(Next { before, state })
    }
}

struct Next {
    before: String,
    state: State,
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
}

fn call(name: &str, arguments: &str, show: &mut Show<'_>) {
    match calls::call(name, &marked::written(arguments)) {
        Some(call) => show(Shown::Call(call)),
        None => {
            show(Shown::Malformed("The model wanted to call a tool, but its arguments are no JSON object."));
            say(&format!("{name}\n{arguments}"), show);
        }
    }
}

fn say(text: &str, show: &mut Show<'_>) {
    let text = marked::shown(text);
    if !text.is_empty() {
        show(Shown::Text(&text));
    }
}
