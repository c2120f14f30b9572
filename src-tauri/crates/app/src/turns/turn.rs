//! One turn: its events, and the message that they build.

use std::sync::Arc;

use contract::types::{TurnEvent, TurnEventKind};
use platform::EventLog;

use crate::network::callers::Caller;

/// A turn's events, and the message they make, where it belongs to a conversation.
pub(crate) struct Turn {
    pub id: String,
    pub feed: Arc<EventLog<TurnEvent>>,
    /// None: a turn that is kept nowhere.
    pub place: Option<AnswerPlace>,
    /// What its message had before: a continued answer.
    pub continued: Option<ContinuedFrom>,
    pub origin: TurnOrigin,
}

/// Who requested a turn, and of which model.
#[derive(Debug, Clone)]
pub(crate) struct TurnOrigin {
    pub caller: Arc<Caller>,
    /// Library id, or the name of a remote model.
    pub model: String,
    pub began_ms: i64,
}

/// What a continued answer begins with.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContinuedFrom {
    pub text: String,
    pub reasoning: String,
    pub ids: Vec<u32>,
    pub fingerprint: String,
}

/// The message that an answer is written to.
#[derive(Debug, Clone)]
pub(crate) struct AnswerPlace {
    pub conversation: String,
    pub message: String,
}

impl AnswerPlace {
    pub fn of(started: &session::StartedTurn) -> Self {
        Self { conversation: started.conversation.clone(), message: started.assistant_message.clone() }
    }
}

impl Turn {
    pub fn publish(&self, kind: TurnEventKind) {
        self.feed.push(|n_before| TurnEvent { seq: n_before + 1, turn: self.id.clone(), kind });
    }
}
