//! Splits a reply into text, reasoning and tool calls, token by token.
//!
//! Tags are known from template and vocabulary (`format.rs`). A tag with a token is recognized by its id, never by
//! its text. A possible start of a tag is held back, so no partial tag is shown. A call that cannot be read is shown
//! as text, after a notice.

mod call_form;
mod calls;
mod cut_call;
mod elements;
mod format;
mod harmony;
mod literal;
mod marked;
mod open_argument;
mod recipients;
mod styles;
mod tags;
mod tool_call;

use serde_json::Value;

pub use call_form::call_form;
pub use format::ReplyFormat;
use harmony::HarmonyParser;
use recipients::RecipientParser;
use tags::TagParser;
pub use tool_call::{ToolCall, ToolSchemas};

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPiece<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Text of the reasoning.
    Reasoning(&'a str),
    /// A tool call; the last one of a reply that was cut may have the beginning of its arguments only.
    Call(ToolCall),
    /// The reply was cut before the name of the tool that it calls. What there was of the call is not shown.
    CutCall,
    /// The following text was meant as a call but cannot be read, for this reason.
    Malformed(&'a str),
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyEnd {
    /// The model ended it.
    Whole,
    /// It was cut, for example by a limit of tokens.
    Cut,
}

/// Receives the pieces, in order.
pub type ReplySink<'a> = dyn FnMut(ReplyPiece<'_>) + 'a;

/// Splits one reply.
#[derive(Debug, Clone)]
pub struct ReplySplitter {
    dialect: ReplyDialect,
}

#[derive(Debug, Clone)]
enum ReplyDialect {
    Tagged(TagParser),
    Harmony(HarmonyParser),
    Recipients(RecipientParser),
}

impl ReplySplitter {
    /// Creates a splitter. `prompt` is the rendered prompt, which may end inside a reasoning block. `tools` as in the
    /// request; without tools only tags with tokens make a call.
    pub fn new(format: &ReplyFormat, prompt: &str, tools: &Value) -> Self {
        let tools = ToolSchemas::new(tools);
        let dialect = if format.has_messages() {
            ReplyDialect::Harmony(HarmonyParser::new(prompt, tools))
        } else if format.has_recipients {
            ReplyDialect::Recipients(RecipientParser::new(prompt, &tools))
        } else {
            ReplyDialect::Tagged(TagParser::new(format, prompt, tools))
        };
        Self { dialect }
    }

    /// Adds the text of ordinary tokens.
    pub fn text(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        if !piece.is_empty() {
            self.push(&marked::plain(piece), show);
        }
    }

    /// Adds a control or markup token by its vocabulary text.
    pub fn markup(&mut self, text: &str, is_control: bool, show: &mut ReplySink<'_>) {
        let is_nothing = match &self.dialect {
            ReplyDialect::Tagged(tagged) => is_control && !tagged.knows(text),
            ReplyDialect::Harmony(_) => false,
            ReplyDialect::Recipients(_) => is_control,
        };
        if !is_nothing {
            self.push(&marked::enclose(text, is_control), show);
        }
    }

    /// Ends the reply: shows what was held back.
    pub fn finish(&mut self, end: ReplyEnd, show: &mut ReplySink<'_>) {
        match &mut self.dialect {
            ReplyDialect::Tagged(tagged) => tagged.finish(end, show),
            ReplyDialect::Harmony(harmony) => harmony.finish(end, show),
            ReplyDialect::Recipients(recipients) => recipients.finish(end, show),
        }
    }

    fn push(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        match &mut self.dialect {
            ReplyDialect::Tagged(tagged) => tagged.push(piece, show),
            ReplyDialect::Harmony(harmony) => harmony.push(piece, show),
            ReplyDialect::Recipients(recipients) => recipients.push(piece, show),
        }
    }
}

#[cfg(test)]
mod tests;
