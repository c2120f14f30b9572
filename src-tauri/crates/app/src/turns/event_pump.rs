//! Saves and publishes the worker's events. Partial answers go to disk as they grow, and a turn's
//! last event is published only after its end is saved. Sleeps while nothing happens. A failing
//! disk costs no answer: the text stays in memory, the user is notified once, and saving is
//! retried.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use contract::protocol::{Ids, LoadState, Step, TurnResult, WorkerEvent};
use contract::types::{AppEvent, Finish, TokenAlternatives, ToolCall, TurnEventKind};
use contract::{Error, ErrorKind};
use session::{MessageRow, MessageState, Session, TokenLog, TurnEnding};

use super::turn::{AnswerPlace, Turn};
use crate::Services;
use crate::context::stored_compactions::keep_compaction;
use crate::context::summary;
use crate::tools::rounds::calls_event;
use records::conversations;
use records::partial_answer::{Answer, AnswerStart};

/// Time between a failed save of a whole answer and the next try.
const SAVE_AGAIN: Duration = Duration::from_secs(2);

/// Runs until the worker ends; turns it leaves unanswered are interrupted.
pub fn run(services: &Arc<Services>, events: &Receiver<WorkerEvent>) {
    let mut pump = TurnEventPump { services, streaming: HashMap::new() };
    loop {
        let event = match pump.wait() {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(timeout) => events.recv_timeout(timeout),
        };
        match event {
            Ok(event) => pump.take(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return pump.interrupt(),
        }
        pump.flush();
    }
}

struct TurnEventPump<'a> {
    services: &'a Arc<Services>,
    streaming: HashMap<String, StreamingAnswer>,
}

struct StreamingAnswer {
    turn: Arc<Turn>,
    answer: Answer,
    calls: Vec<ToolCall>,
    /// When its reasoning began, and the last time that there was more of it.
    thought: Option<(Duration, Duration)>,
    /// When its first words came.
    first: Option<Duration>,
    /// The user has been told that it isn't saved.
    complained: bool,
}

impl StreamingAnswer {
    fn new(turn: Arc<Turn>) -> Self {
        let answer = match &turn.continued {
            Some(continued) => {
                Answer::with(&continued.text, &continued.reasoning, &continued.ids, &continued.fingerprint)
            }
            None => Answer::default(),
        };
        Self { turn, answer, calls: Vec::new(), thought: None, first: None, complained: false }
    }

    /// Appends to the answer; returns the events that must precede it.
    fn push(
        &mut self,
        id: Option<u32>,
        (text, reasoning): (&str, &str),
        logprobs: Vec<TokenAlternatives>,
        now: Duration,
    ) -> Vec<TurnEventKind> {
        self.first.get_or_insert(now);
        if !reasoning.is_empty() {
            self.thought = Some((self.thought.map_or(now, |(from, _)| from), now));
        }
        self.answer.push(id, text, reasoning, logprobs)
    }

    /// Whole milliseconds; 0 where nothing was thought.
    fn thought_ms(&self) -> f64 {
        self.thought.map_or(0.0, |(from, to)| to.saturating_sub(from).as_millis() as f64)
    }
}

/// An answer's end on its way to disk.
pub(crate) struct UnsavedEnding {
    place: AnswerPlace,
    state: MessageState,
    text: String,
    reasoning: String,
    /// JSON.
    tool_calls: Option<String>,
    stats: Option<String>,
    error: Option<String>,
    log: Option<TokenLog>,
}

impl UnsavedEnding {
    pub fn save(&self, session: &mut Session) -> session::Result<()> {
        session.finish(
            &self.place.message,
            &TurnEnding {
                state: self.state,
                text: &self.text,
                reasoning: &self.reasoning,
                tool_calls: self.tool_calls.clone(),
                stats: self.stats.clone(),
                error: self.error.clone(),
                log: self.log.clone(),
            },
        )
    }

    /// What `row` will be once this is saved.
    pub fn show_in(&self, row: &mut MessageRow) {
        row.state = self.state;
        row.text.clone_from(&self.text);
        row.reasoning.clone_from(&self.reasoning);
        row.tool_calls.clone_from(&self.tool_calls);
        row.stats.clone_from(&self.stats);
        row.error.clone_from(&self.error);
    }
}

impl TurnEventPump<'_> {
    /// How long to sleep at most; None: until something happens.
    fn wait(&self) -> Option<Duration> {
        let now = self.services.ctx.clock.monotonic();
        let due = self.streaming.values().filter_map(|streaming| streaming.answer.due());
        let due = due.min().map(|due| due.saturating_sub(now));
        if !self.services.turns.has_unsaved() { due } else { Some(due.unwrap_or(SAVE_AGAIN).min(SAVE_AGAIN)) }
    }

    fn take(&mut self, event: WorkerEvent) {
        let services = self.services;
        let event = match event {
            // Summaries made ahead have no waiting turn.
            WorkerEvent::FitOutcome { request, outcome } => match services.summaries.take_ahead(request) {
                Some(plan) => return services.looked_ahead(plan, outcome),
                None => WorkerEvent::FitOutcome { request, outcome },
            },
            event => event,
        };
        match services.ctx.backends.replies.complete(event) {
            Some(WorkerEvent::Turn { turn, step }) => self.step(&turn, step),
            Some(WorkerEvent::Model { id, state }) => self.model(id, state),
            Some(WorkerEvent::Checkpoints(changes)) => services.account_checkpoints(*changes),
            Some(WorkerEvent::RunFacts(ran)) => services.keep_run(&ran),
            Some(WorkerEvent::MeasuredAnswer(measured)) => services.profiling.keep(*measured),
            Some(
                WorkerEvent::Inspected { .. }
                | WorkerEvent::TokenCounts { .. }
                | WorkerEvent::TokenAlternatives { .. }
                | WorkerEvent::FitOutcome { .. }
                | WorkerEvent::VocabularyAnswer { .. }
                | WorkerEvent::EmbeddingBatch { .. }
                | WorkerEvent::PassageScores { .. }
                | WorkerEvent::PageImages { .. }
                | WorkerEvent::ImageInfo { .. }
                | WorkerEvent::Stored { .. }
                | WorkerEvent::KvStats { .. },
            )
            | None => {}
        }
    }

    fn model(&self, id: String, state: LoadState) {
        self.services.models.set(&id, state);
        // A model without an entry (a path given to a command) concerns no other watcher.
        let entry =
            self.services.model_entries().ok().and_then(|all| all.into_iter().find(|entry| entry.id == id));
        if let Some(model) = entry {
            self.services.ctx.events.publish(AppEvent::ModelChanged { model });
        }
    }

    fn step(&mut self, id: &str, step: Step) {
        let step = match self.services.summary_step(id, step) {
            Ok(steps) => return steps.into_iter().for_each(|(turn, step)| self.step(&turn, step)),
            Err(step) => step,
        };
        let step = match self.services.title_step(id, step) {
            Ok(()) => return,
            Err(step) => step,
        };
        if !self.streaming.contains_key(id) {
            let Some(turn) = self.services.turns.get(id) else { return };
            self.streaming.insert(id.into(), StreamingAnswer::new(turn));
        }
        let Some(streaming) = self.streaming.get_mut(id) else { return };
        let (turn, now) = (Arc::clone(&streaming.turn), self.services.ctx.clock.monotonic());
        match step {
            Step::Queued { position } => turn.publish(TurnEventKind::Queued { position }),
            Step::Loading { fraction } => turn.publish(TurnEventKind::Loading { fraction }),
            Step::Began { had, text, reasoning } => {
                let start = streaming.answer.begin(text, reasoning, had.ids, had.fingerprint);
                self.begun(id, start);
            }
            Step::Prefill { done, total } => turn.publish(TurnEventKind::Prefill { done, total }),
            Step::Compacted { range } => {
                let now_ms = self.services.ctx.clock.now_utc_ms();
                let kept = keep_compaction(&mut self.services.store(), &range, now_ms);
                match kept {
                    Ok(compaction) => turn.publish(TurnEventKind::Compacted { compaction }),
                    // It is left out of this prompt all the same, and told again with the next one.
                    Err(error) => self.services.ctx.events.notice(error.info),
                }
            }
            Step::Wanting { request, wanted } => {
                turn.publish(TurnEventKind::Compacting {
                    messages: conversations::count_ids(&wanted.messages),
                });
                if let Err(error) = self.services.want_summary(request, *wanted) {
                    self.failed(id, &error, MessageState::Failed);
                }
            }
            Step::Token { id, text, reasoning, logprobs } => {
                let before = streaming.push(Some(id), (&text, &reasoning), logprobs, now);
                before.into_iter().for_each(|event| turn.publish(event));
            }
            Step::Rest { text, reasoning, logprobs } => {
                let before = streaming.push(None, (&text, &reasoning), logprobs, now);
                before.into_iter().for_each(|event| turn.publish(event));
            }
            Step::ToolCall { id, name, arguments } => {
                streaming.answer.take_untold().into_iter().for_each(|event| turn.publish(event));
                let call = ToolCall { id, name, arguments, run: None };
                streaming.calls.push(call.clone());
                turn.publish(TurnEventKind::ToolCall { call });
            }
            Step::Notice { error } => {
                turn.publish(TurnEventKind::Notice { error: error.info.clone() });
                if turn.place.is_some() {
                    self.services.ctx.events.notice(error.info);
                }
            }
            Step::Done(finished) => self.done(id, *finished),
            Step::Failed { error } => self.failed(id, &error, MessageState::Failed),
        }
    }

    /// Keeps and tells what an answer begins with, where that is something else than before.
    fn begun(&mut self, id: &str, start: AnswerStart) {
        let Some(streaming) = self.streaming.get_mut(id) else { return };
        let (turn, now) = (&streaming.turn, self.services.ctx.clock.monotonic());
        if let Some(event) = start.event {
            streaming.thought = Some((streaming.first.unwrap_or(now), now));
            turn.publish(event);
        }
        if let Some(place) = turn.place.as_ref().filter(|_| start.differs) {
            let mut store = self.services.store();
            // Where this fails, what was kept stays; the end saves the whole answer.
            let _ = store.replace_chunks(&place.message, &streaming.answer.whole());
        }
    }

    fn done(&mut self, id: &str, finished: TurnResult) {
        let mut stats = conversations::stats(&finished);
        stats.thought_ms = self.streaming.get(id).map_or(0.0, StreamingAnswer::thought_ms);
        stats.once = self.services.turns.one_off_options(id);
        let state = match stats.finish {
            Finish::Cancelled => MessageState::Stopped,
            Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::ContextFull | Finish::TimeUp => {
                MessageState::Complete
            }
        };
        let Ids { fingerprint, ids } = finished.log;
        let log = TokenLog { fingerprint, text_ids: ids, all_ids: finished.whole };
        let log = (!log.all_ids.is_empty()).then_some(log);
        tracing::info!(turn = id, ?stats, "answered");
        let json = serde_json::to_string(&stats).ok();
        self.end(id, TurnEventKind::Done { stats }, |ending| UnsavedEnding {
            state,
            stats: json,
            log,
            ..ending
        });
    }

    fn failed(&mut self, id: &str, error: &Error, state: MessageState) {
        tracing::warn!(code = error.code(), turn = id, "an answer failed: {error}");
        let json = serde_json::to_string(&error.info).ok();
        let kind = TurnEventKind::Failed { error: error.info.clone() };
        self.end(id, kind, |ending| UnsavedEnding { state, error: json, ..ending });
    }

    /// Saves a turn's end, then tells it.
    fn end(&mut self, id: &str, last: TurnEventKind, fill: impl FnOnce(UnsavedEnding) -> UnsavedEnding) {
        let Some(StreamingAnswer { turn, mut answer, calls, complained, .. }) = self.streaming.remove(id)
        else {
            return;
        };
        answer.take_untold().into_iter().for_each(|event| turn.publish(event));
        self.services.audit_end(&turn, &last, &answer.text);
        if let Some(place) = turn.place.clone() {
            let Answer { text, reasoning, .. } = answer;
            let mut plan = self.services.turns.take_plan(id);
            let next = plan.as_mut().and_then(|plan| plan.next.take()).filter(|_| !calls.is_empty());
            let calls = match &next {
                Some(next) => next.waiting(calls, called_well(&last)),
                None => calls,
            };
            let ending = fill(UnsavedEnding {
                place: place.clone(),
                state: MessageState::Complete,
                text,
                reasoning,
                tool_calls: (!calls.is_empty()).then(|| serde_json::to_string(&calls).ok()).flatten(),
                stats: None,
                error: None,
                log: None,
            });
            let mut store = self.services.store();
            let saved = ending.save(&mut store);
            if saved.is_err() {
                self.services.turns.keep_unsaved(&place.message, ending);
            }
            self.services.turns.end(id);
            drop(store);
            if let Err(error) = saved
                && !complained
            {
                self.services.ctx.events.notice(not_saved(error).info);
            }
            let next = next.filter(|_| called_well(&last));
            let calls = next.map(|next| self.services.open_round(Some(&place), id, calls, *next));
            turn.publish(last);
            turn.feed.close();
            self.conversation_changed(&place.conversation);
            if let Some(()) = calls {
                // What comes of them is a part of this answer.
                self.services.begin_round(&place.message);
            } else if let Some(plan) = plan {
                self.services.look_for_title(&plan);
                self.services.look_ahead(plan);
            }
        } else {
            self.end_temporary(&turn, &answer, calls, last);
        }
    }

    /// Tells the end of a turn that is kept nowhere; its calls wait in memory alone.
    fn end_temporary(&self, turn: &Turn, answer: &Answer, calls: Vec<ToolCall>, last: TurnEventKind) {
        let id = turn.id.as_str();
        let plan = self.services.turns.take_plan(id);
        let next = plan.and_then(|plan| plan.next).filter(|_| !calls.is_empty());
        let (is_well, calls) = match &next {
            Some(next) => (called_well(&last), next.waiting(calls, called_well(&last))),
            None => (false, Vec::new()),
        };
        if let Some(next) = next.filter(|_| is_well) {
            let next = next.with_call(&answer.text, &answer.reasoning, &calls);
            self.services.open_round(None, id, calls.clone(), next);
        }
        self.services.turns.end(id);
        turn.publish(last);
        turn.feed.close();
        if is_well {
            self.services.begin_round(id);
        } else if !calls.is_empty() {
            self.services.ctx.events.publish(calls_event(None, id, &calls, true, None));
        }
    }

    fn conversation_changed(&self, id: &str) {
        let store = self.services.store();
        // It may lie in the trash by now.
        let summary = store.conversation(id).map_err(Error::from).and_then(|row| summary(&store, row));
        drop(store);
        if let Ok(conversation) = summary {
            self.services.ctx.events.publish(AppEvent::ConversationChanged { conversation });
        }
    }

    /// Tells and saves what is due.
    fn flush(&mut self) {
        let services = self.services;
        let now = services.ctx.clock.monotonic();
        for streaming in self.streaming.values_mut() {
            for event in streaming.answer.tell(now) {
                streaming.turn.publish(event);
            }
            let Some(place) = &streaming.turn.place else {
                streaming.answer.saved(now, true);
                continue;
            };
            let Some(piece) = streaming.answer.unsaved(now) else { continue };
            let saved = services.store().append(&place.message, &piece);
            if let Err(error) = &saved
                && !streaming.complained
            {
                streaming.complained = true;
                services.ctx.events.notice(not_saved(error.clone()).info);
            }
            streaming.answer.saved(now, saved.is_ok());
        }
        services.turns.retry_unsaved(&mut services.store());
    }

    /// The program ends: what there is of each answer is saved.
    fn interrupt(&mut self) {
        let error = Error::new(
            ErrorKind::Conflict,
            "app.closed",
            "Inglenook was closed while this answer was being written.",
            "Ask again to have a whole answer.",
        );
        self.services.ctx.backends.replies.close();
        for turn in self.services.turns.open_turns() {
            let id = turn.id.clone();
            self.streaming.entry(id.clone()).or_insert_with(|| StreamingAnswer::new(turn));
            self.failed(&id, &error, MessageState::Interrupted);
        }
        self.services.turns.retry_unsaved(&mut self.services.store());
    }
}

/// The answer ended by calling.
fn called_well(last: &TurnEventKind) -> bool {
    matches!(last, TurnEventKind::Done { stats } if stats.finish == Finish::ToolCalls)
}

fn not_saved(error: session::SessionError) -> Error {
    let error = Error::from(error);
    let message = format!("The answer has not been saved yet: {}", error.message());
    Error::new(error.kind, error.info.code, message, error.info.remedy)
}
