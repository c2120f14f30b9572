//! Replies to recipients, each after a line `>>>name`: text for `all`, JSON for a function. The prompt ends with the
//! first `>>>` (Functionary 3.2).
//!
//! Such a line counts only if it names `all` or a tool of the request: a line typed at a Python prompt is text.

use super::tool_call::{self, ToolCall, ToolSchemas};
use super::{ReplyEnd, ReplyPiece, ReplySink, marked};
use crate::stop::held_suffix;

/// Occurs in every template of this format.
pub const SIGN: &str = ">>>${recipient}";

const OPEN: &str = ">>>";
const ALL: &str = "all";
/// Anything longer is not a name.
const MAX_NAME_BYTES: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
enum RecipientState {
    /// After the prompt's `>>>`.
    Name,
    Text,
    /// A call of this function.
    Call(String),
}

#[derive(Debug, Clone)]
pub struct RecipientParser {
    state: RecipientState,
    /// Whole lines that begin a message.
    lines: Vec<String>,
    held: String,
    /// Text was shown before: another message of it begins a paragraph.
    has_said: bool,
    begins_paragraph: bool,
}

impl RecipientParser {
    pub fn new(prompt: &str, tools: &ToolSchemas) -> Self {
        let names = std::iter::once(ALL).chain(tools.names());
        let lines = names.map(|name| format!("{OPEN}{name}\n")).collect();
        let state =
            if prompt.trim_end().ends_with(OPEN) { RecipientState::Name } else { RecipientState::Text };
        Self { state, lines, held: String::new(), has_said: false, begins_paragraph: false }
    }

    pub fn push(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        self.held.push_str(piece);
        while self.step(show) {}
    }

    pub fn finish(&mut self, end: ReplyEnd, show: &mut ReplySink<'_>) {
        let held = std::mem::take(&mut self.held);
        let is_cut = end == ReplyEnd::Cut;
        match std::mem::replace(&mut self.state, RecipientState::Text) {
            RecipientState::Name if is_cut && self.begins_recipient(&held) => show(ReplyPiece::CutCall),
            RecipientState::Call(name) if is_cut => {
                let arguments = marked::written(&held);
                let whole = tool_call::parse_arguments(&name, &arguments);
                match whole.or_else(|| ToolCall::cut(&name, arguments.trim().into())) {
                    Some(call) => show(ReplyPiece::Call(call)),
                    None => self.call(&name, &held, show),
                }
            }
            RecipientState::Name | RecipientState::Text => self.say(&held, show),
            RecipientState::Call(name) => self.call(&name, &held, show),
        }
    }

    /// Returns whether a text is the beginning of a line that names a recipient.
    fn begins_recipient(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line[OPEN.len()..].starts_with(text))
    }

    /// Makes one transition. Returns true if another may follow.
    fn step(&mut self, show: &mut ReplySink<'_>) -> bool {
        match &self.state {
            RecipientState::Name => self.step_name(),
            RecipientState::Text => {
                if let Some(next) = self.next_message() {
                    self.say(next.before.trim_end(), show);
                    self.begin(next.state);
                    return true;
                }
                let held = self.lines.iter().map(|line| held_suffix(&self.held, line)).max().unwrap_or(0);
                let solid = self.held[..self.held.len() - held].trim_end().len();
                let said: String = self.held.drain(..solid).collect();
                self.say(&said, show);
                false
            }
            RecipientState::Call(name) => {
                let name = name.clone();
                let Some(next) = self.next_message() else { return false };
                self.call(&name, &next.before, show);
                self.begin(next.state);
                true
            }
        }
    }

    fn step_name(&mut self) -> bool {
        let end = self.held.find('\n');
        if end.unwrap_or(self.held.len()) > MAX_NAME_BYTES {
            // Without a name it is for everyone.
            self.state = RecipientState::Text;
            return true;
        }
        let Some(end) = end else { return false };
        let name = self.held[..end].trim().to_owned();
        self.state = match name.as_str() {
            ALL => RecipientState::Text,
            name if is_name(name) => RecipientState::Call(name.to_owned()),
            _ => {
                self.state = RecipientState::Text;
                return true;
            }
        };
        self.held.drain(..=end);
        true
    }

    /// Takes the text before the next message.
    fn next_message(&mut self) -> Option<NextMessage> {
        let found = self.lines.iter().filter_map(|line| Some((self.held.find(line.as_str())?, line)));
        let (at, line) = found.min_by_key(|(at, _)| *at)?;
        let (n_line, name) = (line.len(), line[OPEN.len()..].trim_end());
        let state = if name == ALL { RecipientState::Text } else { RecipientState::Call(name.to_owned()) };
        let before = self.held[..at].to_owned();
        self.held.drain(..at + n_line);
        Some(NextMessage { before, state })
    }

    fn begin(&mut self, state: RecipientState) {
        self.begins_paragraph = state == RecipientState::Text && self.has_said;
        self.state = state;
    }

    fn call(&mut self, name: &str, arguments: &str, show: &mut ReplySink<'_>) {
        match tool_call::parse_arguments(name, &marked::written(arguments)) {
            Some(call) => show(ReplyPiece::Call(call)),
            None => {
                show(ReplyPiece::Malformed(
                    "The model tried to call a tool, but its arguments are not a JSON object.",
                ));
                self.say(&format!("{name}\n{arguments}"), show);
            }
        }
    }

    fn say(&mut self, text: &str, show: &mut ReplySink<'_>) {
        let text = marked::shown(text);
        if text.is_empty() {
            return;
        }
        self.has_said = true;
        let gap = if std::mem::take(&mut self.begins_paragraph) { "\n\n" } else { "" };
        show(ReplyPiece::Text(&[gap, &text].concat()));
    }
}

struct NextMessage {
    before: String,
    state: RecipientState,
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
}
