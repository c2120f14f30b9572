//! Rounds: a model calls, the user is asked where that is needed, what is allowed runs, and what all of it brought is
//! answered, until an answer calls nothing.
//!
//! Guarantees that each call of an answer ends with a result before the answer to it begins; that nothing runs that isn't
//! allowed; that after so many rounds the user is asked whatever was allowed before; and that what was called and
//! brought is on disk as soon as it is known. A round that the end of the program cut waits for the user's word again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use session::NewTurn;

use super::offer::{Offer, Offered};
use super::outcome::Outcome;
use crate::error::{Error, ErrorKind, Result};
use crate::mcp::{Stop, was_stopped};
use crate::summaries::Setup;
use crate::types::{AppEvent, CompactionStrategy, Once, ToolCall, ToolRun, ToolRunState};
use crate::worker::protocol::{GenerateRequest, WorkerRequest};
use crate::{Place, Shared, State, chat};

/// Calls of one answer that are run; a model that wants more has lost its way.
const MOST_CALLS: usize = 32;

/// Rounds of chats that are kept nowhere. A page that is closed tells nobody that nobody waits any more.
const MOST_TEMPORARY: usize = 64;

const STOPPED: &str = "The user stopped this call.";
const CUT: &str = "The program ended before this call did.";

/// What the next answer of a conversation is asked with.
#[derive(Debug, Clone)]
pub(crate) struct Next {
    pub offer: Arc<Offer>,
    /// Without its turn. What was said is in it only where it is kept nowhere else.
    pub request: GenerateRequest,
    pub system: Option<String>,
    /// Where the conversation chooses none.
    pub default: CompactionStrategy,
    /// Rounds since the user said something.
    pub round: u32,
    /// What these answers alone are asked for otherwise.
    pub once: Option<Once>,
}

/// Calls of one answer that have not all ended.
pub(crate) struct Round {
    /// None: a chat that is kept nowhere.
    pub(super) conversation: Option<String>,
    /// The turn that called.
    pub(super) turn: String,
    pub(super) next: Next,
    pub(super) calls: Vec<ToolCall>,
    /// Of those that run, by call.
    pub(super) stops: HashMap<String, Arc<Stop>>,
}

impl Next {
    /// What goes with a turn until its end.
    pub fn setup(&self, conversation: &str) -> Setup {
        Setup {
            conversation: conversation.into(),
            model: self.request.model.clone(),
            load: self.request.load.clone(),
            chat: self.request.chat.clone(),
            max_tokens: self.request.max_tokens,
            default: self.default,
            once: self.once.clone(),
            next: (!self.offer.tools.is_empty()).then(|| Box::new(self.clone())),
        }
    }

    /// Calls as they are before anybody has looked at them.
    pub fn waiting(&self, calls: Vec<ToolCall>, ended_well: bool) -> Vec<ToolCall> {
        let (state, result) = match ended_well {
            true => (ToolRunState::Asking, ""),
            false => (ToolRunState::Stopped, STOPPED),
        };
        let run = |call: &ToolCall| run_of(&self.offer, call, state, result);
        calls.into_iter().map(|call| ToolCall { run: Some(run(&call)), ..call }).collect()
    }
}

impl Round {
    pub(super) fn run(&mut self, call: &str) -> Option<&mut ToolRun> {
        self.calls.iter_mut().find(|it| it.id == call)?.run.as_mut()
    }

    fn is_settled(&self) -> bool {
        let open = [ToolRunState::Asking, ToolRunState::Running];
        self.calls.iter().all(|call| call.run.as_ref().is_none_or(|run| !open.contains(&run.state)))
    }

    /// Whatever has not ended ends so.
    fn stop(&mut self) {
        self.stops.values().for_each(|stop| stop.press());
        stopped(&mut self.calls);
    }
}

/// Whatever has not ended ends so.
pub(crate) fn stopped(calls: &mut [ToolCall]) {
    stop(calls, STOPPED);
}

fn stop(calls: &mut [ToolCall], why: &str) {
    for run in calls.iter_mut().filter_map(|call| call.run.as_mut()) {
        if matches!(run.state, ToolRunState::Asking | ToolRunState::Running) {
            run.state = ToolRunState::Stopped;
            run.result = why.into();
        }
    }
}

impl State {
    /// Calls as they are now; `is_end`: the branch ends with their answer, so that they may still be allowed.
    pub(crate) fn calls_now(&self, message: &str, mut calls: Vec<ToolCall>, is_end: bool) -> Vec<ToolCall> {
        if let Some(round) = self.rounds.get(message) {
            return round.calls.clone();
        }
        for call in &mut calls {
            let Some(run) = &call.run else { continue };
            if run.state == ToolRunState::Running || (run.state == ToolRunState::Asking && !is_end) {
                stop(std::slice::from_mut(call), CUT);
            }
        }
        calls
    }

    /// What becomes of calls is on disk, where their conversation is.
    fn keep_calls(&mut self, message: &str, calls: &[ToolCall]) {
        if self.rounds.get(message).is_some_and(|round| round.conversation.is_none()) {
            return;
        }
        let json = serde_json::to_string(calls).map_err(Error::bug);
        let kept = json.and_then(|json| Ok(self.session.set_tool_calls(message, &json)?));
        // The conversation may have been deleted meanwhile.
        if let Err(error) = kept {
            tracing::warn!(code = error.code(), "what a tool brought was not kept: {error}");
        }
    }
}

impl Shared {
    /// An answer has ended with calls: they wait. `place`: where it is kept; None: its turn is its name.
    pub(crate) fn open_round(&self, place: Option<&Place>, turn: &str, mut calls: Vec<ToolCall>, next: Next) {
        let limit = self.setting("tool_rounds").ok().and_then(|value| value.as_u64()).unwrap_or(1);
        let at_limit = u64::from(next.round) >= limit;
        calls.iter_mut().filter_map(|it| it.run.as_mut()).for_each(|run| run.at_limit = at_limit);
        let conversation = place.map(|place| place.conversation.clone());
        let message = place.map_or(turn, |place| &place.message).to_owned();
        let round = Round { conversation, turn: turn.into(), next, calls, stops: HashMap::new() };
        let left = {
            let mut state = self.state();
            state.rounds.insert(message, round);
            let temporary = state.rounds.iter().filter(|(_, round)| round.conversation.is_none());
            let ids: Vec<&String> = temporary.map(|(id, _)| id).collect();
            // By their names, turns stand in the order in which they began.
            ids.iter().min().filter(|_| ids.len() > MOST_TEMPORARY).map(|id| id.to_string())
        };
        if let Some(left) = left {
            self.stop_rounds(|_, id| id == left);
        }
    }

    /// Those that may run do.
    pub(crate) fn begin_round(&self, message: &str) {
        let calls = self.state().rounds.get(message).map(|round| round.calls.clone()).unwrap_or_default();
        let is_free =
            |call: &&ToolCall| !call.run.as_ref().is_some_and(|run| run.at_limit) && self.runs_unasked(call);
        let free: Vec<String> = calls.iter().filter(is_free).map(|call| call.id.clone()).collect();
        self.run_calls(message, &free);
    }

    /// Allowed before, or nothing that could be allowed: the model is told that there is no such tool.
    pub(super) fn runs_unasked(&self, call: &ToolCall) -> bool {
        let Some(run) = call.run.as_ref().filter(|run| !run.server.is_empty()) else { return true };
        self.tool_server_row(&run.server).is_ok_and(|row| super::Kept::of(&row).is_allowed(&run.tool))
    }

    /// Runs calls that may run, side by side.
    pub(super) fn run_calls(&self, message: &str, ids: &[String]) {
        let mut begun = Vec::new();
        {
            let mut state = self.state();
            let Some(round) = state.rounds.get_mut(message) else { return };
            for id in ids {
                let Some(at) = round.calls.iter().position(|call| call.id == *id) else { continue };
                let call = round.calls[at].clone();
                let Some(run) = round.run(id) else { continue };
                if run.state != ToolRunState::Asking {
                    continue;
                }
                run.state = ToolRunState::Running;
                let stop = Arc::<Stop>::default();
                round.stops.insert(id.clone(), Arc::clone(&stop));
                begun.push((at, call, round.next.offer.clone(), stop));
            }
            let calls = round.calls.clone();
            state.keep_calls(message, &calls);
        }
        self.tell_calls(message);
        for (at, call, offer, stop) in begun {
            let (id, began) = (call.id.clone(), self.clock.monotonic());
            let Some(shared) = self.tools.shared.upgrade() else { return };
            let of = message.to_owned();
            let work = move || {
                let outcome = match at < MOST_CALLS {
                    true => shared.call_tool(&offer, &call, &stop),
                    false => Ok(Outcome::failure("These are too many calls at once.", "Call fewer.")),
                };
                let (state, outcome) = match outcome {
                    Ok(outcome) if outcome.failed => (ToolRunState::Failed, outcome),
                    Ok(outcome) => (ToolRunState::Done, outcome),
                    Err(_) => (ToolRunState::Stopped, Outcome::saying(STOPPED)),
                };
                let took = shared.clock.monotonic().saturating_sub(began);
                shared.settle(&of, &call.id, state, outcome, took);
            };
            if let Err(error) = crate::spawn("tool", work) {
                let outcome = Outcome::failure(error.message(), error.remedy());
                self.settle(message, &id, ToolRunState::Failed, outcome, Duration::ZERO);
            }
        }
    }

    /// Asks a tool. Error: it was stopped.
    pub(super) fn call_tool(&self, offer: &Offer, call: &ToolCall, stop: &Stop) -> Result<Outcome> {
        let Some(offered) = offer.find(&call.name) else {
            let message = format!("There is no tool \"{}\".", call.name);
            return Ok(Outcome::failure(&message, &format!("The tools are: {}.", offer.names())));
        };
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let Value::Object(_) = arguments else {
            let remedy = "Write them as one JSON object.";
            return Ok(Outcome::failure("The arguments are no JSON object.", remedy));
        };
        let number = |key: &str, default: u64| {
            self.setting(key).ok().and_then(|value| value.as_u64()).unwrap_or(default)
        };
        let within = Duration::from_secs(number("tool_seconds", 60));
        let most = usize::try_from(number("tool_characters", 20_000)).unwrap_or(usize::MAX);
        let marks = self.setting("guard_marks").is_ok_and(|value| value == true);
        let said = self.tools.client(&offered.server).and_then(|client| match stop.is_pressed() {
            true => Err(Error::new(ErrorKind::Conflict, "tools.stopped", STOPPED, "Try again.")),
            false => client.call(&offered.tool, arguments, within, stop),
        });
        match said {
            Ok(result) => Ok(Outcome::read(&result, most, marks)),
            Err(error) if was_stopped(&error) => Err(error),
            // Whose words a failure repeats is not for us to say: they are looked at as results are.
            Err(error) => {
                let failure = Outcome::failure(error.message(), error.remedy());
                let result = serde_json::json!({ "content": [{ "type": "text", "text": failure.text }] });
                Ok(Outcome { failed: true, ..Outcome::read(&result, most, marks) })
            }
        }
    }

    /// A call has ended. When all have, what they brought is answered.
    pub(super) fn settle(
        &self,
        message: &str,
        call: &str,
        state_now: ToolRunState,
        outcome: Outcome,
        took: Duration,
    ) {
        let settled = {
            let mut state = self.state();
            // It was stopped, or the program ends.
            let Some(round) = state.rounds.get_mut(message) else { return };
            round.stops.remove(call);
            let Some(run) = round.run(call) else { return };
            run.duration_ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
            let Outcome { text, cut, findings, failed: _ } = outcome;
            (run.state, run.result, run.cut, run.findings) = (state_now, text, cut, findings);
            let (calls, is_settled) = (round.calls.clone(), round.is_settled());
            state.keep_calls(message, &calls);
            is_settled.then(|| state.rounds.remove(message)).flatten()
        };
        match settled {
            Some(round) => self.answer_results(message, round),
            None => self.tell_calls(message),
        }
    }

    /// Says how the calls of an answer are.
    fn tell_calls(&self, message: &str) {
        let event = {
            let state = self.state();
            let Some(Round { conversation, calls, .. }) = state.rounds.get(message) else { return };
            told(conversation.as_deref(), message, calls, false, None)
        };
        self.tell(event);
    }

    /// Every call has a result: the next answer begins.
    fn answer_results(&self, message: &str, round: Round) {
        let next = Next { round: round.next.round.saturating_add(1), ..round.next.clone() };
        let turn = match round.conversation {
            Some(_) => self.ask_results(message, next),
            None => self.ask_temporary(next.with_results(&round.calls)),
        };
        let Round { conversation, calls, .. } = round;
        let turn = match turn {
            Ok(turn) => Some(turn),
            Err(error) => {
                self.notice(error.info);
                None
            }
        };
        self.tell(told(conversation.as_deref(), message, &calls, true, turn));
    }

    fn ask_results(&self, message: &str, next: Next) -> Result<String> {
        let mut state = self.state();
        let model = next.request.model.id.clone();
        let started = state.session.start(NewTurn::ToolResults { message }, &model)?;
        let branch = state.session.branch(&started.conversation)?.messages;
        let compression = state.compression_of(&started.conversation, &branch, next.default)?;
        let branch = state.with_files(branch)?;
        state.setups.insert(started.turn.clone(), Box::new(next.setup(&started.conversation)));
        state.add_turn(started.turn.clone(), Some(Place::of(&started)), None);
        let row = state.session.conversation(&started.conversation)?;
        let summary = state.summary(row)?;
        drop(state);
        self.tell(AppEvent::ConversationChanged { conversation: summary });
        self.ask(WorkerRequest::Generate(Box::new(GenerateRequest {
            turn: started.turn.clone(),
            conversation: Some(started.conversation),
            prompt: chat::prompt(branch, next.system, None),
            compression,
            ..next.request
        })))?;
        Ok(started.turn)
    }

    /// Ends the rounds that `which` says, by themselves and their message; nothing answers them.
    pub(super) fn stop_rounds(&self, which: impl Fn(&Round, &str) -> bool) {
        let stopped: Vec<(String, Round)> = {
            let mut state = self.state();
            let is_it = |id: &String, round: &mut Round| which(round, id);
            let mut stopped: Vec<_> = state.rounds.extract_if(is_it).collect();
            for (message, round) in &mut stopped {
                round.stop();
                if round.conversation.is_some() {
                    state.keep_calls(message, &round.calls);
                }
            }
            stopped
        };
        for (message, round) in stopped {
            self.tell(told(round.conversation.as_deref(), &message, &round.calls, true, None));
        }
    }

    /// Whatever is called in a conversation is called in vain: something else is said there.
    pub(crate) fn stop_rounds_in(&self, conversation: &str) {
        self.stop_rounds(|round, _| round.conversation.as_deref() == Some(conversation));
    }

    pub(crate) fn stop_round_of_turn(&self, turn: &str) {
        self.stop_rounds(|round, _| round.turn == turn);
    }

    /// The program ends: what runs is cut, what waits waits for the next start, and the servers end.
    pub(crate) fn end_tools(&self) {
        let rounds = std::mem::take(&mut self.state().rounds);
        rounds.values().flat_map(|round| round.stops.values()).for_each(|stop| stop.press());
        self.tools.stop();
    }
}

pub(crate) fn told(
    conversation: Option<&str>,
    message: &str,
    calls: &[ToolCall],
    over: bool,
    turn: Option<String>,
) -> AppEvent {
    let (conversation, message) = (conversation.map(Into::into), message.into());
    AppEvent::ToolCalls { conversation, message, calls: calls.to_vec(), over, turn }
}

/// A call before it is run.
pub(super) fn run_of(offer: &Offer, call: &ToolCall, state: ToolRunState, result: &str) -> ToolRun {
    let offered = offer.find(&call.name);
    let named = |name: fn(&Offered) -> &String| offered.map(name).cloned().unwrap_or_default();
    ToolRun {
        server: named(|it| &it.server),
        server_name: named(|it| &it.server_name),
        tool: offered.map_or_else(|| call.name.clone(), |it| it.tool.clone()),
        state,
        result: result.into(),
        cut: 0,
        duration_ms: 0,
        findings: Vec::new(),
        at_limit: false,
    }
}
