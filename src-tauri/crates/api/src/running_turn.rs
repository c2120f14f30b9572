//! A turn that is being answered: its events, and the message that they make.

use std::sync::Arc;

use crate::feed::Feed;
use crate::types::{TurnEvent, TurnEventKind};

/// A turn's events, and the message they make, where it belongs to a conversation.
pub(crate) struct Turn {
    pub id: String,
    pub feed: Arc<Feed<TurnEvent>>,
    pub place: Option<Place>,
    /// What its message had before: an answer that goes on.
    pub had: Option<Had>,
}

/// What an answer that goes on begins with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Had {
    pub text: String,
    pub reasoning: String,
    pub ids: Vec<u32>,
    pub fingerprint: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub conversation: String,
    pub message: String,
}

impl Place {
    pub fn of(started: &session::StartedTurn) -> Self {
        Self { conversation: started.conversation.clone(), message: started.assistant_message.clone() }
    }
}

impl Turn {
    pub fn tell(&self, kind: TurnEventKind) {
        self.feed.push(|n_before| TurnEvent { seq: n_before + 1, turn: self.id.clone(), kind });
    }
}
