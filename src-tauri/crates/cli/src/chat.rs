//! `nook chat`: a conversation in the terminal, saved like those of the window.
//!
//! Input comes from a person or a pipe. Ctrl+C stops an answer. Between answers it discards the line that a person
//! edits; without an editor it ends the program.

use std::io::IsTerminal;
use std::path::Path;

use app::App;
use contract::Error;
use contract::Responder;
use contract::Result;
use contract::types::{AppEvent, DraftArgs, Finish, GuideReply, SendArgs, TurnStarted};
use platform::Watch;
use serde_json::json;

use crate::args::{ChatArgs, Global};
use crate::input::InputLines;
use crate::input::event::InputEvent;
use crate::input::line_editor::LineEditor;
use crate::interrupt::Interrupt;
use crate::out;
use crate::sessions::transcript;
use crate::tool_approval::{ApprovalContext, ToolApproval};
use crate::turn::{AnswerOutput, follow, format_sources};

const HELP: &str = "\
/help   shows this list
/new    starts a new conversation
/models lists the models; /model M answers with another one from now on
/retry  asks the last question again
/go     continues the last answer where it stopped
/file F attaches a file to the next message: text, office files, EPUB, HTML, code, CSV or PDF
/exit   quits (so does Ctrl+D)
Ctrl+C  stops an answer, or discards the line
Up and Down bring back what you sent before; Ctrl+R searches it. Tab completes a command.
Pasted text may have several lines; Alt+Enter begins one.
A line that ends with \\ continues on the next one.";

/// What Tab completes. The others are further words for one of these.
const COMMANDS: &[&str] = &["/help", "/new", "/models", "/model ", "/retry", "/go", "/file ", "/exit"];

/// In the data folder: what was sent, for the arrows of the next start.
const HISTORY_FILE: &str = "chat-history.jsonl";

const FIRST_PROMPT: &str = "\n> ";

/// Meaning of an input line.
#[derive(Debug, PartialEq, Eq)]
enum ChatCommand<'a> {
    Nothing,
    Help,
    New,
    Retry,
    Go,
    Exit,
    File(&'a str),
    Models,
    Model(&'a str),
    Unknown(&'a str),
    Message(&'a str),
}

fn parse(line: &str) -> ChatCommand<'_> {
    let text = line.trim();
    match text {
        "" => ChatCommand::Nothing,
        "/help" | "/?" => ChatCommand::Help,
        "/new" => ChatCommand::New,
        "/retry" => ChatCommand::Retry,
        "/go" | "/continue" => ChatCommand::Go,
        "/exit" | "/quit" | "/bye" => ChatCommand::Exit,
        "/models" | "/model" => ChatCommand::Models,
        _ if text.starts_with("/model ") => ChatCommand::Model(text["/model ".len()..].trim()),
        "/file" => ChatCommand::File(""),
        _ if text.starts_with("/file ") => ChatCommand::File(text["/file ".len()..].trim()),
        // Thinking switches that some models understand.
        "/think" | "/no_think" | "/nothink" => ChatCommand::Message(text),
        command if command.starts_with('/') && !command[1..].contains(['/', ' ']) => {
            ChatCommand::Unknown(command)
        }
        message => ChatCommand::Message(message),
    }
}

struct Chat {
    app: App,
    model: Option<String>,
    conversation: Option<String>,
    interrupt: Interrupt,
    lines: InputLines,
    approval: ToolApproval,
    is_terminal: bool,
    json: bool,
    /// Ids of the attachments for the next message.
    files: Vec<String>,
}

pub fn chat(global: &Global, args: &ChatArgs) -> Result<()> {
    let app = App::open(global.app_config_apart()?)?;
    if let Some(model) = &args.model {
        app.responder(model)?;
    }
    let is_terminal = std::io::stdin().is_terminal();
    let is_edited =
        is_terminal && std::io::stdout().is_terminal() && !global.json && LineEditor::is_possible();
    let editor = is_edited.then(|| line_editor(&app, args)).transpose()?;
    let mut chat = Chat {
        app,
        model: args.model.clone(),
        conversation: args.session.clone(),
        interrupt: Interrupt::default(),
        lines: InputLines::new(editor)?,
        approval: ToolApproval::of(args.approval),
        is_terminal,
        json: global.json,
        files: Vec::new(),
    };
    chat.greet()?;
    chat.interrupt = Interrupt::listen(0);
    let outcome = chat.talk();
    if let Some(id) = chat.conversation.as_ref().filter(|_| is_terminal) {
        out::log(&format!("saved; continue with: nook chat --session {id}"));
    }
    outcome
}

fn line_editor(app: &App, args: &ChatArgs) -> Result<LineEditor> {
    let kept = (!args.no_history).then(|| Path::new(&app.app_info().data_dir).join(HISTORY_FILE));
    LineEditor::new(kept, COMMANDS)
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
            let whose = match self.app.responder(&model)? {
                Responder::Local(_) => "nothing leaves this computer",
                Responder::Remote(_) => "your messages are sent to another server",
            };
            out::log(&format!("{model} · {whose} · /help shows the commands"));
        }
        Ok(())
    }

    fn talk(&mut self) -> Result<()> {
        while let Some(line) = self.read()? {
            if !line.trim().is_empty() {
                self.lines.remember(&line);
            }
            let outcome = match parse(&line) {
                ChatCommand::Nothing => Ok(()),
                ChatCommand::Exit => return Ok(()),
                ChatCommand::Help => {
                    out::log(HELP);
                    Ok(())
                }
                ChatCommand::New => {
                    self.conversation = None;
                    out::log("a new conversation");
                    Ok(())
                }
                ChatCommand::Unknown(command) => {
                    out::log(&format!("unknown command {command}; /help shows all commands"));
                    Ok(())
                }
                ChatCommand::File(path) => self.attach(path),
                ChatCommand::Models => self.list_models(),
                ChatCommand::Model(name) => self.choose_model(name),
                ChatCommand::Retry => self.retry(),
                ChatCommand::Go => self.go_on(),
                ChatCommand::Message(text) => self.send(text.to_owned()),
            };
            match outcome {
                // A person can continue after a failure; a pipe must get the exit code.
                Err(error) if self.is_terminal => drop(out::fail(&error, self.json)),
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Reads the next line and joins continued ones. `None` at the end.
    fn read(&self) -> Result<Option<String>> {
        let (mut text, mut prompt) = (String::new(), FIRST_PROMPT);
        loop {
            match self.lines.next_edited(&self.interrupt, if self.is_terminal { prompt } else { "" }) {
                InputEvent::Line(line) => text.push_str(&line),
                InputEvent::End => return Ok(Some(text).filter(|text| !text.is_empty())),
                InputEvent::Discarded => {
                    (text, prompt) = (String::new(), FIRST_PROMPT);
                    out::log("Ctrl+D ends the chat");
                    continue;
                }
                // A signal from elsewhere: what is being edited stays.
                InputEvent::Interrupted if self.lines.has_editor() => continue,
                InputEvent::Interrupted => {
                    out::log("");
                    return Ok(None);
                }
                InputEvent::Failed(error) => {
                    let message = format!("Standard input: {error}.");
                    return Err(Error::input("input.unreadable", message, "Restart the command."));
                }
            }
            if !text.ends_with('\\') {
                return Ok(Some(text));
            }
            text.pop();
            text.push('\n');
            prompt = "… ";
        }
    }

    fn send(&mut self, text: String) -> Result<()> {
        let args = SendArgs {
            conversation: self.conversation.clone(),
            text,
            model: self.model.clone(),
            attachments: self.files.clone(),
            ..SendArgs::default()
        };
        let events = self.app.watch_app();
        let started = self.app.send(args)?;
        self.files.clear();
        self.conversation = Some(started.conversation.clone());
        self.answer(started, events)
    }

    /// Adds an attachment and prints its cost in tokens.
    fn attach(&mut self, path: &str) -> Result<()> {
        let path = path.trim_matches(['"', '\'']);
        if path.is_empty() {
            out::log("which file? /file F");
            return Ok(());
        }
        let file = self.app.attachment_add_path(path)?;
        let args = DraftArgs {
            conversation: self.conversation.clone(),
            model: self.model.clone(),
            attachments: vec![file.id.clone()],
            ..DraftArgs::default()
        };
        // A file with scanned pages has a cost for its text and for each of them.
        let costs = self.app.draft_count(&args)?.attachments;
        let tokens: u32 = costs.iter().map(|cost| cost.tokens_whole).sum();
        let whole = costs.iter().all(|cost| cost.whole);
        let how =
            if whole { "sent in full" } else { "too long to send in full: searched for matching passages" };
        out::log(&format!("{}: {tokens} tokens, {how}", file.name));
        for finding in &file.findings {
            out::log(&format!("{}: {}", file.name, finding.told()));
        }
        if let Some(scanned) = file.scanned {
            out::log(&format!("{}: {}", file.name, scanned.told()));
        }
        self.files.push(file.id);
        Ok(())
    }

    /// Prints the names of the models that answer, the one that answers with a mark.
    fn list_models(&self) -> Result<()> {
        let current = self.current_model()?;
        let entries = self.app.models_list()?.into_iter();
        for entry in entries.filter(|entry| !entry.embeds && !entry.only_drafts) {
            let mark = if entry.id == current { '*' } else { ' ' };
            out::log(&format!("{mark} {}", entry.id));
        }
        Ok(())
    }

    fn current_model(&self) -> Result<String> {
        match (&self.model, &self.conversation) {
            (Some(model), _) => Ok(model.clone()),
            (None, Some(id)) => Ok(self.app.conversation_get(id)?.summary.model),
            (None, None) => self.app.default_model(),
        }
    }

    fn choose_model(&mut self, name: &str) -> Result<()> {
        self.app.responder(name)?;
        self.model = Some(name.to_owned());
        out::log(&format!("{name} answers from now on"));
        Ok(())
    }

    fn retry(&mut self) -> Result<()> {
        let Some(conversation) = self.conversation.clone() else {
            out::log("there is no question to repeat");
            return Ok(());
        };
        let events = self.app.watch_app();
        self.answer(self.app.retry(&conversation)?, events)
    }

    fn go_on(&mut self) -> Result<()> {
        let last = match &self.conversation {
            Some(id) => self.app.conversation_get(id)?.messages.pop(),
            None => None,
        };
        let Some(last) = last else {
            out::log("there is no answer to continue");
            return Ok(());
        };
        let events = self.app.watch_app();
        self.answer(self.app.message_continue(&last.id)?, events)
    }

    /// Follows the answer and the turns after its tool calls. `events` must start before the turn.
    fn answer(&self, started: TurnStarted, mut events: Watch<AppEvent>) -> Result<()> {
        let show = if self.json { AnswerOutput::Hidden } else { AnswerOutput::Live };
        let mut answer = follow(&self.app, &started.turn, &self.interrupt, show)?;
        let (id, mut turn, mut message) = (&started.conversation, started.turn, started.assistant_message);
        while answer.finish() == Some(Finish::ToolCalls) {
            self.interrupt.begin(&self.app, &turn);
            let context = ApprovalContext { app: &self.app, lines: &self.lines, interrupt: &self.interrupt };
            let next = self.approval.decide_pending(&context, &mut events, id, &message);
            self.interrupt.end();
            let Some(next) = next? else { break };
            let Some(last) = self.app.conversation_get(id)?.messages.pop() else { break };
            (turn, message) = (next, last.id);
            answer = follow(&self.app, &turn, &self.interrupt, show)?;
        }
        let last = self.app.conversation_get(id)?.messages.pop();
        let sources = last.map(|it| it.sources).unwrap_or_default();
        if self.json {
            out::json(&json!({
                "session": self.conversation,
                "text": answer.text,
                "reasoning": answer.reasoning,
                "tool_calls": answer.calls,
                "stats": answer.stats,
                "sources": sources,
            }));
        } else if !sources.is_empty() {
            out::log(&format_sources(&sources));
        } else if let Some(GuideReply::Article { article, .. }) = answer.stats.and_then(|stats| stats.guide) {
            out::log(&format!("source: the user guide, {article}"));
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
            ("", ChatCommand::Nothing),
            (" \t", ChatCommand::Nothing),
            ("/help", ChatCommand::Help),
            (" /new ", ChatCommand::New),
            ("/retry", ChatCommand::Retry),
            ("/go", ChatCommand::Go),
            ("/exit", ChatCommand::Exit),
            ("/no_think", ChatCommand::Message("/no_think")),
            ("/file notes.md", ChatCommand::File("notes.md")),
            ("/file", ChatCommand::File("")),
            ("/models", ChatCommand::Models),
            ("/model", ChatCommand::Models),
            ("/model qwen3-4b ", ChatCommand::Model("qwen3-4b")),
            ("/files/are here", ChatCommand::Message("/files/are here")),
            ("/nonsense", ChatCommand::Unknown("/nonsense")),
            ("/usr/bin is a folder", ChatCommand::Message("/usr/bin is a folder")),
            ("/etc/passwd", ChatCommand::Message("/etc/passwd")),
            (" hello ", ChatCommand::Message("hello")),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn every_completed_command_is_one_and_in_the_help() {
        for command in COMMANDS {
            let parsed = parse(command);
            assert!(!matches!(parsed, ChatCommand::Unknown(_) | ChatCommand::Message(_)), "{command:?}");
            assert!(HELP.contains(command), "{command:?}");
        }
    }
}
