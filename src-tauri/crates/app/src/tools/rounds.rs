//! Rounds: a model calls tools, the user approves where needed, allowed calls run, and the results
//! are answered until an answer calls nothing. Each call has a result before the answer to it
//! begins, and nothing runs that isn't allowed. After a limit of rounds the user is asked again,
//! whatever was allowed. Calls and results are saved at once; a round that was interrupted by exit
//! waits for approval again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use contract::protocol::{GenerateRequest, WorkerRequest};
use contract::types::{AppEvent, ToolCall, ToolRunState};
use contract::{Error, ErrorKind, Result};
use mcp::tool_outcome::ToolOutcome;
use mcp::{Stop, was_stopped};
use prompt::history::chat_prompt;
use serde_json::Value;
use session::{NewTurn, Session};

use super::offered_tools::OfferedTools;
use super::open_rounds::ToolRound;
use crate::Services;
use crate::context::stored_compactions::compression_of;
use crate::context::summary;
use crate::retrieval::images::can_see;
use crate::settings::TypedSettings;
use crate::turns::turn::AnswerPlace;
use crate::turns::turn_plan::{NextAnswer, STOPPED};
use file_search::injected::with_files;
use records::conversations::history_messages;
use records::tool_servers::StoredServer;

/// Calls of one answer that are run; a model that wants more has lost its way.
const MAX_CALLS: usize = 32;

/// Maximum rounds of temporary chats. A closed page sends no notice that its user has left.
const MAX_TEMPORARY_ROUNDS: usize = 64;

/// Writes the state of calls to their message.
fn save_calls(session: &mut Session, message: &str, calls: &[ToolCall]) {
    let json = serde_json::to_string(calls).map_err(Error::bug);
    let saved = json.and_then(|json| Ok(session.set_tool_calls(message, &json)?));
    // The conversation may have been deleted meanwhile.
    if let Err(error) = saved {
        tracing::warn!(code = error.code(), "the state of tool calls was not saved: {error}");
    }
}

impl Services {
    /// An answer has ended with calls: they wait. `place`: where it is kept; None: its turn is its name.
    pub(crate) fn open_round(
        &self,
        place: Option<&AnswerPlace>,
        turn: &str,
        mut calls: Vec<ToolCall>,
        next: NextAnswer,
    ) {
        let limit = self.ctx.settings.tool_rounds().ok().flatten().unwrap_or(1);
        let at_limit = u64::from(next.round) >= limit;
        calls.iter_mut().filter_map(|it| it.run.as_mut()).for_each(|run| run.at_limit = at_limit);
        let conversation = place.map(|place| place.conversation.clone());
        let message = place.map_or(turn, |place| &place.message).to_owned();
        let round = ToolRound { conversation, turn: turn.into(), next, calls, stops: HashMap::new() };
        let left = {
            let mut rounds = self.rounds.lock();
            rounds.insert(message, round);
            let temporary = rounds.iter().filter(|(_, round)| round.conversation.is_none());
            let ids: Vec<&String> = temporary.map(|(id, _)| id).collect();
            // By their names, turns stand in the order in which they began.
            ids.iter().min().filter(|_| ids.len() > MAX_TEMPORARY_ROUNDS).map(|id| id.to_string())
        };
        if let Some(left) = left {
            self.stop_rounds(|_, id| id == left);
        }
    }

    /// Those that may run do.
    pub(crate) fn begin_round(self: &Arc<Self>, message: &str) {
        let calls = self.rounds.calls(message);
        let is_free =
            |call: &&ToolCall| !call.run.as_ref().is_some_and(|run| run.at_limit) && self.runs_unasked(call);
        let free: Vec<String> = calls.iter().filter(is_free).map(|call| call.id.clone()).collect();
        self.run_calls(message, &free);
    }

    /// True if allowed before, or if no such tool exists: the model then receives that as the
    /// result.
    pub(super) fn runs_unasked(&self, call: &ToolCall) -> bool {
        let Some(run) = call.run.as_ref().filter(|run| !run.server.is_empty()) else { return true };
        self.tools.row(&run.server).is_ok_and(|row| StoredServer::of(&row).is_allowed(&run.tool))
    }

    /// Runs calls that may run, side by side.
    pub(super) fn run_calls(self: &Arc<Self>, message: &str, ids: &[String]) {
        let mut begun = Vec::new();
        {
            let (mut store, mut rounds) = (self.store(), self.rounds.lock());
            let Some(round) = rounds.get_mut(message) else { return };
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
            if round.conversation.is_some() {
                save_calls(&mut store, message, &round.calls);
            }
        }
        self.tell_calls(message);
        for (at, call, offer, stop) in begun {
            let (id, began) = (call.id.clone(), self.ctx.clock.monotonic());
            let services = Arc::clone(self);
            let of = message.to_owned();
            let work = move || {
                let outcome = match at < MAX_CALLS {
                    true => services.call_tool(&offer, &call, &stop),
                    false => Ok(ToolOutcome::failure("These are too many calls at once.", "Call fewer.")),
                };
                let (state, outcome) = match outcome {
                    Ok(outcome) if outcome.failed => (ToolRunState::Failed, outcome),
                    Ok(outcome) => (ToolRunState::Done, outcome),
                    Err(_) => (ToolRunState::Stopped, ToolOutcome::saying(STOPPED)),
                };
                let took = services.ctx.clock.monotonic().saturating_sub(began);
                services.finish_call(&of, &call.id, state, outcome, took);
            };
            if let Err(error) = platform::spawn("tool", work) {
                let outcome = ToolOutcome::failure(error.message(), error.remedy());
                self.finish_call(message, &id, ToolRunState::Failed, outcome, Duration::ZERO);
            }
        }
    }

    /// Asks a tool. Error: it was stopped.
    pub(super) fn call_tool(
        &self,
        offer: &OfferedTools,
        call: &ToolCall,
        stop: &Stop,
    ) -> Result<ToolOutcome> {
        let Some(offered) = offer.find(&call.name) else {
            let message = format!("There is no tool \"{}\".", call.name);
            return Ok(ToolOutcome::failure(&message, &format!("The tools are: {}.", offer.names())));
        };
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let Value::Object(_) = arguments else {
            let remedy = "Write them as one JSON object.";
            return Ok(ToolOutcome::failure("The arguments are no JSON object.", remedy));
        };
        let settings = &self.ctx.settings;
        let within = Duration::from_secs(settings.tool_seconds().ok().flatten().unwrap_or(60));
        let most = settings.tool_characters().ok().flatten().unwrap_or(20_000);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let marks = settings.guard_marks().unwrap_or(false);
        let said = self.tools.client(&offered.server).and_then(|client| match stop.is_pressed() {
            true => Err(Error::new(ErrorKind::Conflict, "tools.stopped", STOPPED, "Try again.")),
            false => client.call(&offered.tool, arguments, within, stop),
        });
        match said {
            Ok(result) => Ok(ToolOutcome::read(&result, most, marks)),
            Err(error) if was_stopped(&error) => Err(error),
            // Whose words a failure repeats is not for us to say: they are looked at as results are.
            Err(error) => {
                let failure = ToolOutcome::failure(error.message(), error.remedy());
                let result = serde_json::json!({ "content": [{ "type": "text", "text": failure.text }] });
                Ok(ToolOutcome { failed: true, ..ToolOutcome::read(&result, most, marks) })
            }
        }
    }

    /// A call has ended. When all have, what they brought is answered.
    pub(super) fn finish_call(
        &self,
        message: &str,
        call: &str,
        state_now: ToolRunState,
        outcome: ToolOutcome,
        took: Duration,
    ) {
        let settled = {
            let (mut store, mut rounds) = (self.store(), self.rounds.lock());
            // It was stopped, or the program ends.
            let Some(round) = rounds.get_mut(message) else { return };
            round.stops.remove(call);
            let Some(run) = round.run(call) else { return };
            run.duration_ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
            let ToolOutcome { text, cut, findings, failed: _ } = outcome;
            (run.state, run.result, run.cut, run.findings) = (state_now, text, cut, findings);
            if round.conversation.is_some() {
                save_calls(&mut store, message, &round.calls);
            }
            let is_settled = round.is_settled();
            is_settled.then(|| rounds.remove(message)).flatten()
        };
        match settled {
            Some(round) => self.answer_results(message, round),
            None => self.tell_calls(message),
        }
    }

    /// Says how the calls of an answer are.
    fn tell_calls(&self, message: &str) {
        let event = {
            let rounds = self.rounds.lock();
            let Some(ToolRound { conversation, calls, .. }) = rounds.get(message) else { return };
            calls_event(conversation.as_deref(), message, calls, false, None)
        };
        self.ctx.events.publish(event);
    }

    /// Every call has a result: the next answer begins.
    fn answer_results(&self, message: &str, round: ToolRound) {
        let next = NextAnswer { round: round.next.round.saturating_add(1), ..round.next.clone() };
        let turn = match round.conversation {
            Some(_) => self.ask_results(message, next),
            None => self.ask_temporary(next.with_results(&round.calls), Arc::clone(&self.ctx.caller)),
        };
        let ToolRound { conversation, calls, .. } = round;
        let turn = match turn {
            Ok(turn) => Some(turn),
            Err(error) => {
                self.ctx.events.notice(error.info);
                None
            }
        };
        self.ctx.events.publish(calls_event(conversation.as_deref(), message, &calls, true, turn));
    }

    fn ask_results(&self, message: &str, next: NextAnswer) -> Result<String> {
        let mut store = self.store();
        let model = next.request.model.id.clone();
        let started = store.start(NewTurn::ToolResults { message }, &model)?;
        let branch = store.branch(&started.conversation)?.messages;
        let compression = compression_of(&store, &started.conversation, &branch, next.default)?;
        let sees = || can_see(&next.request.model, &next.request.load);
        let branch = with_files(&store, branch, &sees)?;
        self.turns.set_plan(&started.turn, next.plan(&started.conversation));
        let origin = self.origin(Arc::clone(&self.ctx.caller), &model);
        self.turns.add(started.turn.clone(), Some(AnswerPlace::of(&started)), None, origin);
        let row = store.conversation(&started.conversation)?;
        let summary = summary(&store, row)?;
        drop(store);
        self.ctx.events.publish(AppEvent::ConversationChanged { conversation: summary });
        self.ctx.backends.ask(WorkerRequest::Generate(Box::new(GenerateRequest {
            turn: started.turn.clone(),
            conversation: Some(started.conversation),
            prompt: chat_prompt(history_messages(branch), next.system, None),
            compression,
            ..next.request
        })))?;
        Ok(started.turn)
    }

    /// Ends the rounds that `which` says, by themselves and their message; nothing answers them.
    pub(super) fn stop_rounds(&self, which: impl Fn(&ToolRound, &str) -> bool) {
        let stopped: Vec<(String, ToolRound)> = {
            let (mut store, mut rounds) = (self.store(), self.rounds.lock());
            let is_it = |id: &String, round: &mut ToolRound| which(round, id);
            let mut stopped: Vec<_> = rounds.extract_if(is_it).collect();
            for (message, round) in &mut stopped {
                round.stop();
                if round.conversation.is_some() {
                    save_calls(&mut store, message, &round.calls);
                }
            }
            stopped
        };
        for (message, round) in stopped {
            self.ctx.events.publish(calls_event(
                round.conversation.as_deref(),
                &message,
                &round.calls,
                true,
                None,
            ));
        }
    }

    /// Cancels pending calls of a conversation: the user has moved on with another message.
    pub(crate) fn stop_rounds_in(&self, conversation: &str) {
        self.stop_rounds(|round, _| round.conversation.as_deref() == Some(conversation));
    }

    pub(crate) fn stop_round_of_turn(&self, turn: &str) {
        self.stop_rounds(|round, _| round.turn == turn);
    }

    /// The program ends: what runs is cut, what waits waits for the next start, and the servers end.
    pub(crate) fn end_tools(&self) {
        let rounds = std::mem::take(&mut *self.rounds.lock());
        rounds.values().flat_map(|round| round.stops.values()).for_each(|stop| stop.press());
        self.tools.stop();
    }
}

/// The state of an answer's calls, as watchers see it.
pub(crate) fn calls_event(
    conversation: Option<&str>,
    message: &str,
    calls: &[ToolCall],
    over: bool,
    turn: Option<String>,
) -> AppEvent {
    let (conversation, message) = (conversation.map(Into::into), message.into());
    AppEvent::ToolCalls { conversation, message, calls: calls.to_vec(), over, turn }
}
