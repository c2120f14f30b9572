//! `nook chat`: a conversation in the terminal, saved like those of the window.
//!
//! Lines come from a person or a pipe; Ctrl+C stops an answer, and ends the program where none is being written.

use std::io::{BufRead, IsTerminal};

use api::types::SendArgs;
use api::{App, Error, Result};
use serde_json::json;

use crate::args::{ChatArgs, Global};
use crate::interrupt::Interrupt;
use crate::out;
use crate::sessions::transcript;
use crate::turn::{Show, follow};

const HELP: &str = "\
/help   this list
/new    a new conversation
/retry  the last question again
/go     the last answer goes on where it was stopped or cut
/exit   leave (so does Ctrl+D)
Ctrl+C  stops an answer
A line that ends with \\ goes on in the next one.";

/// What a line of the user's means.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Nothing,
    Help,
    New,
    Retry,
    Go,
    Exit,
    Unknown(&'a str),
    Message(&'a str),
}

fn parse(line: &str) -> Line<'_> {
    let text = line.trim();
    match text {
        "" => Line::Nothing,
        "/help" | "/?" => Line::Help,
        "/new" => Line::New,
        "/retry" => Line::Retry,
        "/go" | "/continue" => Line::Go,
        "/exit" | "/quit" | "/bye" => Line::Exit,
        // Words that some models know.
        "/think" | "/no_think" | "/nothink" => Line::Message(text),
        command if command.starts_with('/') && !command[1..].contains(['/', ' ']) => Line::Unknown(command),
        message => Line::Message(message),
    }
}

struct Chat {
    app: App,
    model: Option<String>,
    conversation: Option<String>,
    interrupt: Interrupt,
    is_terminal: bool,
    json: bool,
}

pub fn chat(global: &Global, args: &ChatArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    if let Some(model) = &args.model {
        app.responder(model)?;
    }
    let is_terminal = std::io::stdin().is_terminal();
    let mut chat = Chat {
        app,
        model: args.model.clone(),
        conversation: args.session.clone(),
        interrupt: Interrupt::default(),
        is_terminal,
        json: global.json,
    };
    chat.greet()?;
    chat.interrupt = Interrupt::listen(0);
    let outcome = chat.talk();
    if let Some(id) = chat.conversation.as_ref().filter(|_| is_terminal) {
        out::log(&format!("saved; go on with: nook chat --session {id}"));
    }
    outcome
}

impl Chat {
    fn greet(&self) -> Result<()> {
        if let Some(id) = &self.conversation {
            let conversation = self.app.conversation_get(id)?;
            if self.is_terminal {
                out::text(&transcript(&conversation));
            }
        } else if self.is_terminal {
            let model = match &self.model {
                Some(model) => model.clone(),
                None => self.app.default_model()?,
            };
            out::log(&format!("{model} · nothing leaves this computer · /help shows the commands"));
        }
        Ok(())
    }

    fn talk(&mut self) -> Result<()> {
        while let Some(line) = self.read()? {
            let outcome = match parse(&line) {
                Line::Nothing => Ok(()),
                Line::Exit => return Ok(()),
                Line::Help => {
                    out::log(HELP);
                    Ok(())
                }
                Line::New => {
                    self.conversation = None;
                    out::log("a new conversation");
                    Ok(())
                }
                Line::Unknown(command) => {
                    out::log(&format!("{command} is no command; /help shows those there are"));
                    Ok(())
                }
                Line::Retry => self.retry(),
                Line::Go => self.go_on(),
                Line::Message(text) => self.send(text.to_owned()),
            };
            match outcome {
                // A person goes on after a failure; a pipe has to know of it.
                Err(error) if self.is_terminal => drop(out::fail(&error, self.json)),
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// The next line, continued ones joined; None at the end.
    fn read(&self) -> Result<Option<String>> {
        let mut text = String::new();
        if self.is_terminal {
            out::hint("\n> ");
        }
        loop {
            let mut line = Vec::new();
            let n = std::io::stdin().lock().read_until(b'\n', &mut line).map_err(|error| {
                Error::input("input.unreadable", format!("Standard input: {error}."), "Start again.")
            })?;
            if n == 0 {
                return Ok(Some(text).filter(|text| !text.is_empty()));
            }
            text.push_str(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
            if !text.ends_with('\\') {
                return Ok(Some(text));
            }
            text.pop();
            text.push('\n');
            if self.is_terminal {
                out::hint("… ");
            }
        }
    }

    fn send(&mut self, text: String) -> Result<()> {
        let args = SendArgs { conversation: self.conversation.clone(), text, model: self.model.clone() };
        let started = self.app.send(args)?;
        self.conversation = Some(started.conversation);
        self.answer(&started.turn)
    }

    fn retry(&mut self) -> Result<()> {
        let Some(conversation) = self.conversation.clone() else {
            out::log("there is nothing to ask again");
            return Ok(());
        };
        let turn = self.app.retry(&conversation)?.turn;
        self.answer(&turn)
    }

    fn go_on(&mut self) -> Result<()> {
        let last = match &self.conversation {
            Some(id) => self.app.conversation_get(id)?.messages.pop(),
            None => None,
        };
        let Some(last) = last else {
            out::log("there is no answer to go on with");
            return Ok(());
        };
        let turn = self.app.message_continue(&last.id)?.turn;
        self.answer(&turn)
    }

    fn answer(&self, turn: &str) -> Result<()> {
        let show = if self.json { Show::Nothing } else { Show::Live };
        let answer = follow(&self.app, turn, &self.interrupt, show)?;
        if self.json {
            out::json(&json!({
                "session": self.conversation,
                "text": answer.text,
                "reasoning": answer.reasoning,
                "tool_calls": answer.calls,
                "stats": answer.stats,
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_messages() {
        let cases = [
            ("", Line::Nothing),
            (" \t", Line::Nothing),
            ("/help", Line::Help),
            (" /new ", Line::New),
            ("/retry", Line::Retry),
            ("/go", Line::Go),
            ("/exit", Line::Exit),
            ("/no_think", Line::Message("/no_think")),
            ("/nonsense", Line::Unknown("/nonsense")),
            ("/usr/bin is a folder", Line::Message("/usr/bin is a folder")),
            ("/etc/passwd", Line::Message("/etc/passwd")),
            (" hello ", Line::Message("hello")),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }
}
