//! The turns of one request, one for each choice, followed together.
//!
//! Guarantees that all of them are cancelled when the set is dropped.

use std::task::{Context, Poll};

use app::{App, GenerateArgs};
use contract::types::{TurnEvent, TurnEventKind};
use platform::Watch;

use super::answer_values::fault_of_turn;
use super::blocking;
use super::fields::Result;
use crate::running_turn::is_answer;
use crate::stream::{CancelOnDrop, EventSource};

/// An event of one choice.
#[derive(Debug, Clone)]
pub struct ChoiceEvent {
    /// Counts from 0.
    pub choice: usize,
    pub kind: TurnEventKind,
}

/// Turns that a client waits for.
pub struct TurnSet {
    /// Of each choice; `None` once it has ended.
    watches: Vec<Option<Watch<TurnEvent>>>,
    turns: Vec<String>,
    _guards: Vec<CancelOnDrop>,
}

impl TurnSet {
    /// Starts a turn for each of `all`.
    ///
    /// Errors: the first that can't be started; those before it are cancelled.
    pub async fn start(app: App, all: Vec<GenerateArgs>) -> Result<Self> {
        blocking(move || {
            let mut set = Self { watches: Vec::new(), turns: Vec::new(), _guards: Vec::new() };
            for args in all {
                let turn = app.generate(args)?;
                set._guards.push(CancelOnDrop::new(app.clone(), turn.clone()));
                set.watches.push(Some(app.watch_turn(&turn, 0)?));
                set.turns.push(turn);
            }
            Ok(set)
        })
        .await
    }

    /// Id of the first turn, which names the answer.
    pub fn first_turn(&self) -> &str {
        self.turns.first().map_or("", String::as_str)
    }

    /// The next events; `None` after the last one.
    pub async fn next(&mut self) -> Option<Vec<ChoiceEvent>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Collects events until a model has accepted a prompt.
    ///
    /// Errors: why the first one was refused.
    pub async fn until_accepted(&mut self) -> Result<Vec<ChoiceEvent>> {
        let mut seen = Vec::new();
        while let Some(events) = self.next().await {
            let mut is_accepted = false;
            for event in &events {
                match &event.kind {
                    TurnEventKind::Failed { error } if !is_accepted => return Err(fault_of_turn(error)),
                    kind => is_accepted |= is_answer(kind),
                }
            }
            seen.extend(events);
            if is_accepted {
                break;
            }
        }
        Ok(seen)
    }
}

impl EventSource for TurnSet {
    type Event = ChoiceEvent;

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<ChoiceEvent>>> {
        let mut all = Vec::new();
        let mut is_open = false;
        for (choice, slot) in self.watches.iter_mut().enumerate() {
            let Some(watch) = slot else { continue };
            match watch.poll_next(context) {
                Poll::Ready(Some(events)) => {
                    is_open = true;
                    all.extend(events.into_iter().map(|event| ChoiceEvent { choice, kind: event.kind }));
                }
                Poll::Ready(None) => *slot = None,
                Poll::Pending => is_open = true,
            }
        }
        match (all.is_empty(), is_open) {
            (false, _) => Poll::Ready(Some(all)),
            (true, true) => Poll::Pending,
            (true, false) => Poll::Ready(None),
        }
    }
}
