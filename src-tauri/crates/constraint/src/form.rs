//! The forms that a text can be held to.

use serde_json::Value;

/// What a text must look like.
#[derive(Debug, Clone, PartialEq)]
pub enum TextForm {
    /// A JSON object.
    JsonObject,
    /// A JSON value that is valid under this schema.
    JsonSchema(Value),
    /// A text that this regular expression matches completely.
    Regex(String),
    /// A text of this grammar, in llguidance's variant of Lark.
    Lark(String),
    /// One of these sequences. Of schemas only what a grammar can express is applied.
    Sequences(Vec<Vec<TextPart>>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum TextPart {
    /// Exactly this text.
    Literal(String),
    /// Exactly this token.
    Token(u32),
    /// A JSON value.
    Json(Value),
    /// Any text, without markup.
    AnyText,
    /// This or nothing.
    Optional(Vec<TextPart>),
}
