//! An answer for a client of another program's interface: started, followed, written in that interface's form.
//!
//! Guarantees that an answer ends when its client leaves, and that a prompt that can't be answered is refused before
//! the first byte.

use app::{App, GenerateArgs};
use axum::body::Body;
use contract::types::{TurnEvent, TurnEventKind};
use contract::{Error, Result};
use platform::Watch;

use crate::RouteState;
use crate::stream::{CancelOnDrop, Sse};

/// Writes a streamed answer in the form of one interface.
pub trait StreamFormat: Send + Unpin + 'static {
    /// Writes what comes before the first event.
    fn begin(&mut self) -> String;

    fn write(&mut self, kind: TurnEventKind) -> String;

    /// Writes what comes after the last event.
    fn end(&mut self) -> String;
}

/// A turn that a client waits for. Dropping it cancels the turn.
pub struct RunningTurn {
    /// Library id of the model that answers.
    pub model: String,
    pub turn: String,
    watch: Watch<TurnEvent>,
    guard: CancelOnDrop,
}

impl RunningTurn {
    /// Starts an answer. `model`: a name from the request; None: the default model.
    pub async fn start(app: App, model: Option<String>, args: GenerateArgs) -> Result<Self> {
        blocking(move || {
            let model = app.model_for_request(model.as_deref())?.id;
            let turn = app.generate(GenerateArgs { model: Some(model.clone()), ..args })?;
            let guard = CancelOnDrop::new(app.clone(), turn.clone());
            let watch = app.watch_turn(&turn, 0)?;
            Ok(Self { model, turn, watch, guard })
        })
        .await
    }

    /// The next events. None: the turn has ended.
    pub async fn next(&mut self) -> Option<Vec<TurnEventKind>> {
        let events = std::future::poll_fn(|context| self.watch.poll_next(context)).await?;
        Some(events.into_iter().map(|event| event.kind).collect())
    }

    /// Collects events until the model has accepted the prompt.
    ///
    /// Errors: why it was refused.
    pub async fn until_accepted(&mut self) -> Result<Vec<TurnEventKind>> {
        let mut seen = Vec::new();
        while let Some(events) = self.next().await {
            let mut is_accepted = false;
            for kind in events {
                match &kind {
                    TurnEventKind::Failed { error } if !is_accepted => return Err(error.clone().into()),
                    kind => is_accepted |= is_answer(kind),
                }
                seen.push(kind);
            }
            if is_accepted {
                break;
            }
        }
        Ok(seen)
    }

    /// The rest of the answer as the body of a response, after the events that came `before`.
    pub fn into_body(
        self,
        before: Vec<TurnEventKind>,
        mut format: impl StreamFormat,
        shared: &RouteState,
    ) -> Body {
        let Self { watch, guard, .. } = self;
        let mut before = Some(before);
        let write = move |events: Option<Vec<TurnEvent>>| {
            // Holds the guard until the client disconnects or the answer is complete.
            let _guard = &guard;
            let mut text = String::new();
            if let Some(before) = before.take() {
                text.push_str(&format.begin());
                before.into_iter().for_each(|kind| text.push_str(&format.write(kind)));
            }
            match events {
                Some(events) => events.into_iter().for_each(|event| text.push_str(&format.write(event.kind))),
                None => text.push_str(&format.end()),
            }
            text
        };
        Body::from_stream(Sse::new(watch, write, &shared.stopping, false))
    }
}

/// Whether the event shows that the model accepted the prompt.
pub fn is_answer(kind: &TurnEventKind) -> bool {
    match kind {
        TurnEventKind::Queued { .. }
        | TurnEventKind::Loading { .. }
        | TurnEventKind::Compacting { .. }
        | TurnEventKind::Compacted { .. }
        | TurnEventKind::Notice { .. } => false,
        TurnEventKind::Prefill { .. }
        | TurnEventKind::Logprobs { .. }
        | TurnEventKind::Text { .. }
        | TurnEventKind::Reasoning { .. }
        | TurnEventKind::Revised { .. }
        | TurnEventKind::ToolCall { .. }
        | TurnEventKind::Done { .. }
        | TurnEventKind::Failed { .. } => true,
    }
}

/// Runs a use case, which may wait for the disk or the worker, apart from the threads of the network.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::bug(panic)))
}
