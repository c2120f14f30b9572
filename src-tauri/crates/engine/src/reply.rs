//! Splits a reply into what is said, what is thought and what is to be called, token by token.
//!
//! Which tags a model uses is told by its template and vocabulary (`format.rs`). A tag that is a token of the
//! vocabulary is known by its id, never by its text; half a tag is never shown: what may become one is held back.
//! Nothing is lost: a call that cannot be read is shown as the text it is, after a notice.

mod calls;
mod format;
mod harmony;
mod literal;
mod marked;
mod recipients;
mod styles;
mod tags;
mod tool_call;

use serde_json::Value;

pub use format::ReplyFormat;
use harmony::HarmonyParser;
use recipients::RecipientParser;
use tags::TagParser;
pub use tool_call::{ToolCall, ToolSchemas};

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyPiece<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    Call(ToolCall),
    /// What follows as text was meant as a call but can't be read; this says why.
    Malformed(&'a str),
}

/// Takes the pieces, in order.
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
    /// `prompt` is the rendered prompt: it may end inside a block of reasoning. `tools` as in the request; without
    /// any, only tags that are tokens make a call.
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

    /// Text that tokens without a meaning of their own stand for.
    pub fn text(&mut self, piece: &str, show: &mut ReplySink<'_>) {
        if !piece.is_empty() {
            self.push(&marked::plain(piece), show);
        }
    }

    /// A control token, or another that is markup of the reply. `text` is its text in the vocabulary.
    pub fn markup(&mut self, text: &str, is_control: bool, show: &mut ReplySink<'_>) {
        let is_nothing = match &self.dialect {
            ReplyDialect::Tagged(tagged) => is_control && !tagged.knows(text),
            ReplyDialect::Harmony(_) => false,
            ReplyDialect::Recipients(_) => is_control,
        };
        if !is_nothing {
            self.push(&marked::mark(text, is_control), show);
        }
    }

    /// The reply is over: what was held back is shown after all.
    pub fn finish(&mut self, show: &mut ReplySink<'_>) {
        match &mut self.dialect {
            ReplyDialect::Tagged(tagged) => tagged.finish(show),
            ReplyDialect::Harmony(harmony) => harmony.finish(show),
            ReplyDialect::Recipients(recipients) => recipients.finish(show),
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
