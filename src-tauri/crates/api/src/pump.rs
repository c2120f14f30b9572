//! The worker's events, saved and told: partial answers go to disk as they grow, watchers hear of them,
//! and a turn's last event is told only after its end is saved.
//!
//! Sleeps while nothing happens. A disk that fails costs no answer: the text stays in memory, the user is
//! told once, and saving is tried again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use session::{MessageRow, MessageState, Session, TokenLog, TurnEnding};

use crate::answer::Answer;
use crate::compress::Asker;
use crate::convert;
use crate::error::{Error, ErrorKind};
use crate::tools::told;
use crate::types::{AppEvent, Finish, ToolCall, TurnEventKind};
use crate::worker::protocol::{Finished, Ids, Loaded, Step, WorkerEvent};
use crate::{Place, Shared, State, Turn};

/// How long after a failed save of a whole answer the next try comes.
const SAVE_AGAIN: Duration = Duration::from_secs(2);

/// Runs until the worker ends; turns it leaves unanswered are interrupted.
pub fn run(shared: &Shared, events: &Receiver<WorkerEvent>) {
    let mut pump = Pump { shared, growing: HashMap::new() };
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

struct Pump<'a> {
    shared: &'a Shared,
    growing: HashMap<String, Growing>,
}

struct Growing {
    turn: Arc<Turn>,
    answer: Answer,
    calls: Vec<ToolCall>,
    /// When its reasoning began, and the last time that there was more of it.
    thought: Option<(Duration, Duration)>,
    /// The user has been told that it isn't saved.
    complained: bool,
}

impl Growing {
    fn new(turn: Arc<Turn>) -> Self {
        let answer = match &turn.had {
            Some(had) => Answer::with(&had.text, &had.reasoning, &had.ids, &had.fingerprint),
            None => Answer::default(),
        };
        Self { turn, answer, calls: Vec::new(), thought: None, complained: false }
    }

    /// More of the answer; what must be told before.
    fn push(&mut self, id: Option<u32>, text: &str, reasoning: &str, now: Duration) -> Option<TurnEventKind> {
        if !reasoning.is_empty() {
            self.thought = Some((self.thought.map_or(now, |(from, _)| from), now));
        }
        self.answer.push(id, text, reasoning)
    }

    /// Whole milliseconds; 0 where nothing was thought.
    fn thought_ms(&self) -> f64 {
        self.thought.map_or(0.0, |(from, to)| to.saturating_sub(from).as_millis() as f64)
    }
}

/// An answer's end on its way to disk.
pub(crate) struct Owed {
    place: Place,
    state: MessageState,
    text: String,
    reasoning: String,
    /// JSON.
    tool_calls: Option<String>,
    stats: Option<String>,
    error: Option<String>,
    log: Option<TokenLog>,
}

impl Owed {
    fn save(&self, session: &mut Session) -> session::Result<()> {
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

impl State {
    /// Tries again to save what could not be saved.
    fn save_owed(&mut self) {
        let Self { session, owed, .. } = self;
        owed.retain(|_, end| end.save(session).is_err());
    }
}

impl Pump<'_> {
    /// How long to sleep at most; None: until something happens.
    fn wait(&self) -> Option<Duration> {
        let now = self.shared.clock.monotonic();
        let due = self.growing.values().filter_map(|growing| growing.answer.due());
        let due = due.min().map(|due| due.saturating_sub(now));
        if self.shared.state().owed.is_empty() {
            due
        } else {
            Some(due.unwrap_or(SAVE_AGAIN).min(SAVE_AGAIN))
        }
    }

    fn take(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Turn { turn, step } => self.step(&turn, step),
            WorkerEvent::Model { id, state } => self.model(id, state),
            WorkerEvent::Fitted { request, outcome } => {
                let asked = self.shared.state().fits.remove(&request);
                match asked {
                    // Whoever asked may have gone.
                    Some(Asker::Caller(asked)) => _ = asked.send(outcome),
                    Some(Asker::Ahead(setup)) => self.shared.looked_ahead(setup, outcome),
                    None => {}
                }
            }
            WorkerEvent::Counted { request, outcome } => {
                let asked = self.shared.state().counts.remove(&request);
                if let Some(asked) = asked {
                    // Whoever asked may have gone.
                    let _ = asked.send(outcome);
                }
            }
            WorkerEvent::Looked { request, outcome } => {
                let asked = self.shared.state().looks.remove(&request);
                // Whoever asked may have gone.
                _ = asked.map(|asked| asked.send(outcome));
            }
            WorkerEvent::Embedded { request, outcome } => {
                let asked = self.shared.state().embeds.remove(&request);
                // Whoever asked may have gone.
                _ = asked.map(|asked| asked.send(outcome));
            }
            WorkerEvent::Checkpoints(told) => {
                self.shared.checkpoints(*told);
            }
            WorkerEvent::Ran(ran) => self.shared.ran(&ran),
            WorkerEvent::Profiled(found) => self.shared.state().profiles.found(*found),
            WorkerEvent::Stored { request, outcome } => {
                let asked = self.shared.state().stores.remove(&request);
                // Whoever asked may have gone.
                _ = asked.map(|asked| asked.send(outcome));
            }
            WorkerEvent::KvStats { request, stats } => {
                let asked = self.shared.state().kv_stats.remove(&request);
                // Whoever asked may have gone.
                _ = asked.map(|asked| asked.send(stats));
            }
            WorkerEvent::Inspected { request, outcome } => {
                let asked = self.shared.state().inspections.remove(&request);
                if let Some(asked) = asked {
                    // Whoever asked may have gone.
                    let _ = asked.send(outcome);
                }
            }
        }
    }

    fn model(&self, id: String, state: Loaded) {
        self.shared.state().models.insert(id.clone(), state);
        // A model that is no entry (a path given to a command) concerns nobody else.
        let entry =
            self.shared.model_entries().ok().and_then(|all| all.into_iter().find(|entry| entry.id == id));
        if let Some(model) = entry {
            self.shared.tell(AppEvent::ModelChanged { model });
        }
    }

    fn step(&mut self, id: &str, step: Step) {
        let step = match self.shared.summary_step(id, step) {
            Ok(steps) => return steps.into_iter().for_each(|(turn, step)| self.step(&turn, step)),
            Err(step) => step,
        };
        let step = match self.shared.title_step(id, step) {
            Ok(()) => return,
            Err(step) => step,
        };
        if !self.growing.contains_key(id) {
            let Some(turn) = self.shared.state().turns.get(id).cloned() else { return };
            self.growing.insert(id.into(), Growing::new(turn));
        }
        let Some(growing) = self.growing.get_mut(id) else { return };
        let (turn, now) = (Arc::clone(&growing.turn), self.shared.clock.monotonic());
        match step {
            Step::Queued { position } => turn.tell(TurnEventKind::Queued { position }),
            Step::Loading { fraction } => turn.tell(TurnEventKind::Loading { fraction }),
            Step::Began { had, text, reasoning } => {
                let differs = growing.answer.begin(text, reasoning, had.ids, had.fingerprint);
                if let Some(place) = turn.place.as_ref().filter(|_| differs && turn.had.is_some()) {
                    let mut state = self.shared.state();
                    // Where this fails, what was kept stays; the end saves the answer as a whole.
                    let _ = state.session.replace_chunks(&place.message, &growing.answer.whole());
                }
            }
            Step::Prefill { done, total } => turn.tell(TurnEventKind::Prefill { done, total }),
            Step::Compacted { folded } => {
                let now_ms = self.shared.clock.now_utc_ms();
                let kept = self.shared.state().save_compaction(&folded, now_ms);
                match kept {
                    Ok(compaction) => turn.tell(TurnEventKind::Compacted { compaction }),
                    // It is left out of this prompt all the same, and told again with the next one.
                    Err(error) => self.shared.notice(error.info),
                }
            }
            Step::Wanting { request, wanted } => {
                turn.tell(TurnEventKind::Compacting { messages: convert::count_ids(&wanted.messages) });
                if let Err(error) = self.shared.want_summary(request, *wanted) {
                    self.failed(id, &error, MessageState::Failed);
                }
            }
            Step::Token { id, text, reasoning } => {
                if let Some(before) = growing.push(Some(id), &text, &reasoning, now) {
                    turn.tell(before);
                }
            }
            Step::Rest { text, reasoning } => {
                if let Some(before) = growing.push(None, &text, &reasoning, now) {
                    turn.tell(before);
                }
            }
            Step::ToolCall { id, name, arguments } => {
                while let Some(before) = growing.answer.take_untold() {
                    turn.tell(before);
                }
                let call = ToolCall { id, name, arguments, run: None };
                growing.calls.push(call.clone());
                turn.tell(TurnEventKind::ToolCall { call });
            }
            Step::Notice { error } => {
                turn.tell(TurnEventKind::Notice { error: error.info.clone() });
                if turn.place.is_some() {
                    self.shared.notice(error.info);
                }
            }
            Step::Done(finished) => self.done(id, *finished),
            Step::Failed { error } => self.failed(id, &error, MessageState::Failed),
        }
    }

    fn done(&mut self, id: &str, finished: Finished) {
        let mut stats = convert::stats(&finished);
        stats.thought_ms = self.growing.get(id).map_or(0.0, Growing::thought_ms);
        stats.once = self.shared.state().setups.get(id).and_then(|setup| setup.once.clone());
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
        self.end(id, TurnEventKind::Done { stats }, |owed| Owed { state, stats: json, log, ..owed });
    }

    fn failed(&mut self, id: &str, error: &Error, state: MessageState) {
        tracing::warn!(code = error.code(), turn = id, "an answer failed: {error}");
        let json = serde_json::to_string(&error.info).ok();
        let kind = TurnEventKind::Failed { error: error.info.clone() };
        self.end(id, kind, |owed| Owed { state, error: json, ..owed });
    }

    /// Saves a turn's end, then tells it.
    fn end(&mut self, id: &str, last: TurnEventKind, fill: impl FnOnce(Owed) -> Owed) {
        let Some(Growing { turn, mut answer, calls, complained, .. }) = self.growing.remove(id) else {
            return;
        };
        while let Some(event) = answer.take_untold() {
            turn.tell(event);
        }
        if let Some(place) = turn.place.clone() {
            let Answer { text, reasoning, .. } = answer;
            let mut setup = self.shared.state().setups.remove(id);
            let next = setup.as_mut().and_then(|setup| setup.next.take()).filter(|_| !calls.is_empty());
            let calls = match &next {
                Some(next) => next.waiting(calls, called_well(&last)),
                None => calls,
            };
            let owed = fill(Owed {
                place: place.clone(),
                state: MessageState::Complete,
                text,
                reasoning,
                tool_calls: (!calls.is_empty()).then(|| serde_json::to_string(&calls).ok()).flatten(),
                stats: None,
                error: None,
                log: None,
            });
            let mut state = self.shared.state();
            let saved = owed.save(&mut state.session);
            if saved.is_err() {
                state.owed.insert(place.message.clone(), owed);
            }
            state.end_turn(id);
            drop(state);
            if let Err(error) = saved
                && !complained
            {
                self.shared.notice(not_saved(error).info);
            }
            let next = next.filter(|_| called_well(&last));
            let calls = next.map(|next| self.shared.open_round(Some(&place), id, calls, *next));
            turn.tell(last);
            turn.feed.close();
            self.conversation_changed(&place.conversation);
            if let Some(()) = calls {
                // What comes of them is a part of this answer.
                self.shared.begin_round(&place.message);
            } else if let Some(setup) = setup {
                self.shared.look_for_title(&setup);
                self.shared.look_ahead(setup);
            }
        } else {
            self.end_temporary(&turn, &answer, calls, last);
        }
    }

    /// Tells the end of a turn that is kept nowhere; its calls wait in memory alone.
    fn end_temporary(&self, turn: &Turn, answer: &Answer, calls: Vec<ToolCall>, last: TurnEventKind) {
        let id = turn.id.as_str();
        let setup = self.shared.state().setups.remove(id);
        let next = setup.and_then(|setup| setup.next).filter(|_| !calls.is_empty());
        let (is_well, calls) = match &next {
            Some(next) => (called_well(&last), next.waiting(calls, called_well(&last))),
            None => (false, Vec::new()),
        };
        if let Some(next) = next.filter(|_| is_well) {
            let next = next.with_call(&answer.text, &answer.reasoning, &calls);
            self.shared.open_round(None, id, calls.clone(), next);
        }
        self.shared.state().end_turn(id);
        turn.tell(last);
        turn.feed.close();
        if is_well {
            self.shared.begin_round(id);
        } else if !calls.is_empty() {
            self.shared.tell(told(None, id, &calls, true, None));
        }
    }

    fn conversation_changed(&self, id: &str) {
        let state = self.shared.state();
        // It may lie in the trash by now.
        let summary = state.session.conversation(id).map_err(Error::from).and_then(|row| state.summary(row));
        drop(state);
        if let Ok(conversation) = summary {
            self.shared.tell(AppEvent::ConversationChanged { conversation });
        }
    }

    /// Tells and saves what is due.
    fn flush(&mut self) {
        let shared = self.shared;
        let now = shared.clock.monotonic();
        for growing in self.growing.values_mut() {
            if let Some(event) = growing.answer.tell(now) {
                growing.turn.tell(event);
            }
            let Some(place) = &growing.turn.place else {
                growing.answer.saved(now, true);
                continue;
            };
            let Some(piece) = growing.answer.unsaved(now) else { continue };
            let saved = shared.state().session.append(&place.message, &piece);
            if let Err(error) = &saved
                && !growing.complained
            {
                growing.complained = true;
                shared.notice(not_saved(error.clone()).info);
            }
            growing.answer.saved(now, saved.is_ok());
        }
        shared.state().save_owed();
    }

    /// The program ends: what there is of each answer is saved.
    fn interrupt(&mut self) {
        let error = Error::new(
            ErrorKind::Conflict,
            "app.closed",
            "Inglenook was closed while this answer was being written.",
            "Regenerate it to get a complete answer.",
        );
        let open: Vec<_> =
            self.shared.state().turns.values().filter(|turn| !turn.feed.is_closed()).cloned().collect();
        for turn in open {
            let id = turn.id.clone();
            self.growing.entry(id.clone()).or_insert_with(|| Growing::new(turn));
            self.failed(&id, &error, MessageState::Interrupted);
        }
        self.shared.state().save_owed();
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
