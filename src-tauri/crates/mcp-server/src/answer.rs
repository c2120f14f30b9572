//! Follows a turn to its end: collects the answer, reports progress, and stops the turn when the client does.

use app::App;
use contract::types::{Finish, TurnEvent, TurnEventKind, TurnStats};
use contract::{Error, Result};
use platform::Watch;

use crate::notifier::{CallNotifiers, ProgressNotifier};

/// A complete answer.
#[derive(Debug, Default)]
pub struct Answer {
    pub text: String,
    pub reasoning: String,
    pub stats: Option<TurnStats>,
    /// Of loading the model and reading the prompt, from 0 to 1.
    prepared: f64,
    /// Generated so far.
    n_tokens: u32,
}

impl Answer {
    /// Why it ended.
    pub fn finish(&self) -> Finish {
        self.stats.as_ref().map_or(Finish::Cancelled, |stats| stats.finish)
    }

    /// From 0 to 1 until the prompt is read, then one more for each token.
    fn progress(&self) -> f64 {
        if self.n_tokens == 0 { self.prepared } else { 1.0 + f64::from(self.n_tokens) }
    }

    /// Adds an event.
    fn take(&mut self, kind: TurnEventKind) -> Result<()> {
        match kind {
            TurnEventKind::Loading { fraction } => self.prepared = f64::from(fraction) / 2.0,
            TurnEventKind::Prefill { done, total } => {
                self.prepared = 0.5 + f64::from(done) / f64::from(total.max(1)) / 2.0;
            }
            TurnEventKind::Text { text, ids } => {
                self.text.push_str(&text);
                self.count(ids.len());
            }
            TurnEventKind::Reasoning { text, ids } => {
                self.reasoning.push_str(&text);
                self.count(ids.len());
            }
            TurnEventKind::Revised { text, reasoning } => (self.text, self.reasoning) = (text, reasoning),
            TurnEventKind::Done { stats } => self.stats = Some(stats),
            TurnEventKind::Failed { error } => return Err(Error::from(error)),
            TurnEventKind::Queued { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Logprobs { .. }
            | TurnEventKind::ToolCall { .. }
            | TurnEventKind::Notice { .. } => {}
        }
        Ok(())
    }

    fn count(&mut self, n: usize) {
        self.n_tokens = self.n_tokens.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
    }
}

/// What of the answer goes into progress notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressText {
    Omitted,
    /// Each notification carries the text since the one before.
    Streamed,
}

impl ProgressText {
    /// From the argument `stream`.
    pub fn of(stream: bool) -> Self {
        if stream { Self::Streamed } else { Self::Omitted }
    }
}

/// A turn in progress. Dropping it cancels the turn; one that has ended is left alone.
pub struct TurnGuard {
    app: App,
    turn: String,
}

impl TurnGuard {
    /// Guards a turn that has just been started.
    pub fn new(app: &App, turn: String) -> Self {
        Self { app: app.clone(), turn }
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        // Without a worker there are no turns.
        let _ = self.app.turn_cancel(&self.turn);
    }
}

/// Waits for the end of a turn. Dropping the future cancels the turn.
///
/// `max_tokens` is the total that progress counts towards, where it is known.
pub async fn follow(
    guard: TurnGuard,
    notifiers: CallNotifiers,
    text: ProgressText,
    max_tokens: Option<u32>,
) -> Result<Answer> {
    let mut watch = guard.app.watch_turn(&guard.turn, 0)?;
    let mut answer = Answer::default();
    let CallNotifiers { progress, log } = notifiers;
    let mut reporter = progress.map(|notifier| ProgressReporter::new(notifier, max_tokens));
    while let Some(events) = next(&mut watch).await {
        let before = answer.text.len();
        for event in events {
            if let TurnEventKind::Notice { error } = &event.kind {
                log.warn(error).await;
            }
            answer.take(event.kind)?;
        }
        let new = match text {
            ProgressText::Streamed => answer.text.get(before..).unwrap_or_default(),
            ProgressText::Omitted => "",
        };
        if let Some(reporter) = &mut reporter {
            reporter.report(answer.progress(), new).await;
        }
    }
    Ok(answer)
}

async fn next(watch: &mut Watch<TurnEvent>) -> Option<Vec<TurnEvent>> {
    std::future::poll_fn(|context| watch.poll_next(context)).await
}

/// Reports the progress of one answer.
struct ProgressReporter {
    notifier: ProgressNotifier,
    total: Option<f64>,
    /// Only growing values are sent.
    last: f64,
    /// Text that came without progress; it goes with the next.
    waiting: String,
}

impl ProgressReporter {
    fn new(notifier: ProgressNotifier, max_tokens: Option<u32>) -> Self {
        let total = max_tokens.map(|n| 1.0 + f64::from(n));
        Self { notifier, total, last: 0.0, waiting: String::new() }
    }

    /// Notifies the client if there is progress.
    async fn report(&mut self, value: f64, text: &str) {
        self.waiting.push_str(text);
        if value > self.last {
            self.last = value;
            let total = self.total.map(|total| total.max(value));
            self.notifier.send(value, total, &std::mem::take(&mut self.waiting)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, n: u32) -> TurnEventKind {
        TurnEventKind::Text { text: text.into(), ids: (0..n).collect() }
    }

    #[test]
    fn progress_grows_from_loading_to_the_last_token() {
        let mut answer = Answer::default();
        let events = [
            (TurnEventKind::Queued { position: 0 }, 0.0),
            (TurnEventKind::Loading { fraction: 0.5 }, 0.25),
            (TurnEventKind::Prefill { done: 0, total: 8 }, 0.5),
            (TurnEventKind::Prefill { done: 8, total: 8 }, 1.0),
            (text("one", 1), 2.0),
            (TurnEventKind::Reasoning { text: "why".into(), ids: vec![1, 2] }, 4.0),
            (text(" two", 2), 6.0),
        ];
        for (event, expected) in events {
            answer.take(event.clone()).unwrap();
            assert_eq!(answer.progress(), expected, "{event:?}");
        }
        assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("one two", "why"));
        assert_eq!(answer.finish(), Finish::Cancelled);
    }
}
