//! Harmony replies: messages with a header that names channel and recipient.
//!
//! `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>`. Analysis is
//! reasoning, a message for a function is a call, the rest is text. Tags are tokens, never text. Muse writes the same
//! without channels: reasoning is for `self`, and `<|eom|>` and `<|eot|>` end messages.

use super::tool_call::{self, ToolCall, ToolSchemas};
use super::{ReplyEnd, ReplyPiece, ReplySink, marked, styles};

/// Anything longer is not a header.
const MAX_HEADER_BYTES: usize = 256;

const ROLES: [&str; 4] = ["assistant", "user", "system", "developer"];
const CHANNELS: [&str; 3] = ["analysis", "commentary", "final"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum HarmonyState {
    /// Between messages: a header begins with `<|start|>` or `<|channel|>`.
    Between,
    /// Until `<|message|>`. `is_first`: the prompt has begun it, and a reply may also be plain text.
    Header {
        is_first: bool,
    },
    HarmonyBody(HarmonyBody),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HarmonyBody {
    Text,
    Reasoning,
    /// A call of this function.
    Call(String),
}

#[derive(Debug, Clone)]
pub struct HarmonyParser {
    tools: ToolSchemas,
    state: HarmonyState,
    /// The header, or the body of a call, so far.
    held: String,
    /// Text (reasoning) was shown before: another message of it begins a paragraph.
    said: bool,
    reasoned: bool,
    begins_message: bool,
}

impl HarmonyParser {
    /// Creates a parser. The prompt may end inside a header or after it.
    pub fn new(prompt: &str, tools: ToolSchemas) -> Self {
        let mut this = Self {
            tools,
            state: HarmonyState::Header { is_first: true },
            held: String::new(),
            said: false,
            reasoned: false,
            begins_message: true,
        };
        let begun = prompt.rsplit_once("<|start|>assistant").map_or("", |(_, begun)| begun);
        for (tag, text) in pieces(begun) {
            let shows_nothing: &mut ReplySink<'_> = &mut |_| {};
            this.push(&marked::plain(text), shows_nothing);
            if !tag.is_empty() {
                this.push(&marked::enclose(tag, true), shows_nothing);
            }
        }
        this
    }

    pub fn push(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        if piece.is_empty() {
            return;
        }
        let tag = marked::has_mark(piece).then(|| marked::written(piece));
        match tag.as_deref() {
            Some("<|start|>") => {
                self.end(show);
                self.state = HarmonyState::Header { is_first: false };
            }
            Some("<|channel|>") => {
                if matches!(self.state, HarmonyState::HarmonyBody(_) | HarmonyState::Between) {
                    self.end(show);
                    self.state = HarmonyState::Header { is_first: false };
                }
                self.held.push_str(piece);
            }
            Some("<|message|>") => self.open(show),
            Some("<|end|>" | "<|return|>" | "<|call|>" | "<|eom|>" | "<|eot|>") => self.end(show),
            Some("<|constrain|>") if matches!(self.state, HarmonyState::Header { .. }) => self.held.push(' '),
            Some(_) => {}
            None => self.take(piece, show),
        }
    }

    pub fn finish(&mut self, end: ReplyEnd, show: &mut ReplySink<'_>) {
        if end == ReplyEnd::Cut {
            match &self.state {
                HarmonyState::HarmonyBody(HarmonyBody::Call(name)) => {
                    let held = marked::written(&self.held);
                    let whole = tool_call::parse_arguments(name, &held);
                    if let Some(call) = whole.or_else(|| ToolCall::cut(name, held.trim().into())) {
                        self.state = HarmonyState::Between;
                        return show(ReplyPiece::Call(call));
                    }
                }
                HarmonyState::Header { is_first } => {
                    let is_bare =
                        marked::has_mark(&self.held) && text_in_header(&self.held, *is_first).1.is_empty();
                    if is_bare || self.held.contains(" to=") {
                        self.state = HarmonyState::Between;
                        return show(ReplyPiece::CutCall);
                    }
                }
                _ => {}
            }
        }
        self.end(show);
    }

    fn take(&mut self, text: &str, show: &mut ReplySink<'_>) {
        match &self.state {
            HarmonyState::Between => {
                // A model that forgets its header still means its text. White space before it has no meaning.
                let text = text.trim_start();
                if !text.is_empty() {
                    self.state = HarmonyState::HarmonyBody(HarmonyBody::Text);
                    self.begins_message = true;
                    self.show(text, show);
                }
            }
            HarmonyState::Header { is_first } => {
                let is_first = *is_first;
                self.held.push_str(text);
                let begins_well = marked::has_mark(&self.held)
                    || " to=".starts_with(self.held.as_str())
                    || self.held.starts_with(" to=");
                if is_first && !begins_well || self.held.len() > MAX_HEADER_BYTES {
                    self.give_up_header(is_first, show);
                }
            }
            HarmonyState::HarmonyBody(HarmonyBody::Call(_)) => self.held.push_str(text),
            HarmonyState::HarmonyBody(HarmonyBody::Text | HarmonyBody::Reasoning) => self.show(text, show),
        }
    }

    /// Treats a supposed header as a message that began without `<|message|>`.
    fn give_up_header(&mut self, is_first: bool, show: &mut ReplySink<'_>) {
        let (body, text) = text_in_header(&std::mem::take(&mut self.held), is_first);
        self.state = HarmonyState::HarmonyBody(body);
        self.begins_message = true;
        self.show(&text, show);
    }

    /// Handles a complete header.
    fn open(&mut self, show: &mut ReplySink<'_>) {
        if !matches!(self.state, HarmonyState::Header { .. }) {
            self.end(show);
        }
        let header = marked::written(&std::mem::take(&mut self.held));
        let words = |text: &str| text.split_whitespace().next().unwrap_or_default().to_string();
        let channel = header.split_once("<|channel|>").map(|(_, rest)| words(rest)).unwrap_or_default();
        let recipient =
            header.split_once("to=").map(|(_, rest)| rest.split("<|").next().map(words).unwrap_or_default());
        let recipient = recipient.filter(|name| !name.is_empty() && name != "user" && name != "assistant");
        self.begins_message = true;
        self.state = HarmonyState::HarmonyBody(match (recipient, channel.as_str()) {
            (Some(name), _) if name == "self" => HarmonyBody::Reasoning,
            (Some(name), _) => HarmonyBody::Call(name),
            (None, "analysis") => HarmonyBody::Reasoning,
            (None, _) => HarmonyBody::Text,
        });
    }

    /// Ends the message.
    fn end(&mut self, show: &mut ReplySink<'_>) {
        let state = std::mem::replace(&mut self.state, HarmonyState::Between);
        let held = std::mem::take(&mut self.held);
        match state {
            HarmonyState::HarmonyBody(HarmonyBody::Call(name)) => self.call(&name, &held, show),
            // It was never completed. What it has beside the words of a header is what the model generated.
            HarmonyState::Header { is_first } => {
                let (body, text) = text_in_header(&held, is_first);
                self.begins_message = true;
                self.show_as(&body, &text, show);
            }
            HarmonyState::Between | HarmonyState::HarmonyBody(HarmonyBody::Text | HarmonyBody::Reasoning) => {
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &str, show: &mut ReplySink<'_>) {
        let calls = tool_call::parse_arguments(name, arguments).map(|call| vec![call]);
        match calls.or_else(|| styles::read(arguments, &self.tools)) {
            Some(calls) => calls.into_iter().for_each(|call| show(ReplyPiece::Call(call))),
            None => {
                show(ReplyPiece::Malformed(
                    "The model tried to call a tool, but its arguments are not a JSON object.",
                ));
                self.begins_message = true;
                self.show_as(&HarmonyBody::Text, &format!("to={name} {arguments}"), show);
            }
        }
    }

    fn show(&mut self, text: &str, show: &mut ReplySink<'_>) {
        let is_reasoning = self.state == HarmonyState::HarmonyBody(HarmonyBody::Reasoning);
        let body = if is_reasoning { HarmonyBody::Reasoning } else { HarmonyBody::Text };
        self.show_as(&body, text, show);
    }

    fn show_as(&mut self, body: &HarmonyBody, text: &str, show: &mut ReplySink<'_>) {
        if text.is_empty() {
            return;
        }
        let begins = std::mem::replace(&mut self.begins_message, false);
        let is_reasoning = *body == HarmonyBody::Reasoning;
        let before = if is_reasoning { &mut self.reasoned } else { &mut self.said };
        let gap = if begins && *before { "\n\n" } else { "" };
        *before = true;
        let text = [gap, text].concat();
        show(if is_reasoning { ReplyPiece::Reasoning(&text) } else { ReplyPiece::Text(&text) });
    }
}

/// The text in a header that never completed, and what it is by the header's channel. `is_first`: as in the state.
fn text_in_header(held: &str, is_first: bool) -> (HarmonyBody, String) {
    let written = marked::written(held);
    // Recipients are words that the user may want to see: the call to them is lost.
    if written.contains("to=") || is_first && !marked::has_mark(held) {
        return (HarmonyBody::Text, marked::shown(held));
    }
    let (before, after) = written.split_once("<|channel|>").unwrap_or((&written, ""));
    let body = match after.trim_start().starts_with("analysis") {
        true => HarmonyBody::Reasoning,
        false => HarmonyBody::Text,
    };
    let texts = [behind_word(before, &ROLES), behind_word(after, &CHANNELS)];
    (body, texts.concat().replace("<|channel|>", ""))
}

/// The text behind one of these words, also behind the beginning of one that ends the text.
fn behind_word<'a>(text: &'a str, words: &[&str]) -> &'a str {
    let text = text.trim_start();
    if words.iter().any(|word| word.starts_with(text)) {
        return "";
    }
    let behind = words.iter().find_map(|word| text.strip_prefix(word));
    // `finally` is no channel.
    behind.filter(|behind| !behind.starts_with(char::is_lowercase)).map_or(text, str::trim_start)
}

/// Splits into pairs of a tag and the text before it. The last tag is empty.
fn pieces(text: &str) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("<|") {
        let end = rest[at..].find("|>").map_or(rest.len(), |end| at + end + 2);
        pieces.push((&rest[at..end], &rest[..at]));
        rest = &rest[end..];
    }
    pieces.push(("", rest));
    pieces
}
