//! Rounds of tool calls that have not ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::types::{ToolCall, ToolRun, ToolRunState};
use mcp::Stop;

use crate::turns::turn_plan::{NextAnswer, STOPPED};

const CUT: &str = "The program ended before this call did.";

/// Calls of one answer that have not all ended.
pub(crate) struct ToolRound {
    /// None: a chat that is kept nowhere.
    pub(super) conversation: Option<String>,
    /// The turn that called.
    pub(super) turn: String,
    pub(super) next: NextAnswer,
    pub(super) calls: Vec<ToolCall>,
    /// Of those that run, by call.
    pub(super) stops: HashMap<String, Arc<Stop>>,
}

impl ToolRound {
    pub(super) fn run(&mut self, call: &str) -> Option<&mut ToolRun> {
        self.calls.iter_mut().find(|it| it.id == call)?.run.as_mut()
    }

    pub(super) fn is_settled(&self) -> bool {
        let open = [ToolRunState::Asking, ToolRunState::Running];
        self.calls.iter().all(|call| call.run.as_ref().is_none_or(|run| !open.contains(&run.state)))
    }

    /// Stops everything that has not ended.
    pub(super) fn stop(&mut self) {
        self.stops.values().for_each(|stop| stop.press());
        stop_unfinished(&mut self.calls);
    }
}

/// Rounds that have not ended, by the message that their calls stand in.
#[derive(Default)]
pub(crate) struct ToolRounds {
    rounds: Mutex<HashMap<String, ToolRound>>,
}

impl ToolRounds {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<String, ToolRound>> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls as they are now. `is_end`: the branch ends with their answer, so that they may still be allowed.
    pub fn calls_now(&self, message: &str, mut calls: Vec<ToolCall>, is_end: bool) -> Vec<ToolCall> {
        if let Some(round) = self.lock().get(message) {
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

    /// The calls of a round; none where it has ended.
    pub(super) fn calls(&self, message: &str) -> Vec<ToolCall> {
        self.lock().get(message).map(|round| round.calls.clone()).unwrap_or_default()
    }
}

/// Marks the calls that have not ended as stopped.
pub(crate) fn stop_unfinished(calls: &mut [ToolCall]) {
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
