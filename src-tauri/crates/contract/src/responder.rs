//! The backend that answers a conversation.

use crate::protocol::ModelRef;

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Responder {
    /// A model on this machine.
    Local(ModelRef),
    /// Another server, which speaks OpenAI's protocol.
    Remote(ModelRef),
}

impl Responder {
    /// Reference for requests, which are routed by it.
    pub fn reference(self) -> ModelRef {
        match self {
            Self::Local(reference) | Self::Remote(reference) => reference,
        }
    }
}
