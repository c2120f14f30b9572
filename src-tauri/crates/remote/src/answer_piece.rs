//! What an event of an answer can say, and what is wrong with one that can't be used.

use serde_json::Value;

use super::server_words::ServerFailure;

/// What an event says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delta {
    pub text: String,
    pub reasoning: String,
    /// All text before was reasoning: its end came without its beginning.
    pub is_revision: bool,
}

impl Delta {
    /// Appends what the next event says.
    pub fn append(&mut self, next: Self) {
        if next.is_revision {
            self.reasoning.push_str(&std::mem::take(&mut self.text));
            self.is_revision = true;
        }
        self.text.push_str(&next.text);
        self.reasoning.push_str(&next.reasoning);
    }
}

/// Why an answer ended, as the server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Stop,
    Calls,
    Length,
    /// The server kept something back.
    Filtered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u32,
    pub reused_tokens: u32,
    pub generated_tokens: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
    /// What the server wants back with this call, such as Gemini's signature of a thought.
    pub extra: Option<Value>,
}

/// What can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// It is no event of this protocol.
    Malformed(String),
    /// The server's own words of a failure.
    Server(Box<ServerFailure>),
    TooLong,
}
