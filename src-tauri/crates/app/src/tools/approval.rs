//! The user's decisions on calls: allow one, a tool or a server, refuse, or stop all of them.

use std::collections::HashMap;
use std::time::Duration;

use super::OfferedTools;
use super::open_rounds::ToolRound;
use contract::{Error, ErrorKind, Result};
use mcp::Stop;
use mcp::tool_outcome::ToolOutcome;

use crate::App;
use crate::settings::TypedSettings;
use crate::turns::turn_plan::new_run;
use contract::types::{ToolCall, ToolDecideArgs, ToolDecision, ToolPermitArgs, ToolRunState};
use records::conversations;

const DENIED: &str = "The user did not allow this call.";

impl App {
    /// What the user says to a call that waits.
    pub fn tool_decide(&self, args: &ToolDecideArgs) -> Result<()> {
        self.revive(&args.message)?;
        let services = self.services();
        let (server, tool) = {
            let mut rounds = services.rounds.lock();
            let round = rounds.get_mut(&args.message).ok_or_else(nothing_asked)?;
            // The user is there: the count begins again.
            round.next.round = 0;
            let run = round.run(&args.call).filter(|run| run.state == ToolRunState::Asking);
            let run = run.ok_or_else(nothing_asked)?;
            (run.server.clone(), run.tool.clone())
        };
        let permit = |tool: Option<String>| {
            let args = ToolPermitArgs { id: server.clone(), tool, allowed: Some(true), enabled: None };
            services.tools.permit(&server, &args).map(|()| services.tools.announce(&server))
        };
        match args.decision {
            ToolDecision::Deny => {
                let (state, outcome) = (ToolRunState::Denied, ToolOutcome::saying(DENIED));
                services.finish_call(&args.message, &args.call, state, outcome, Duration::ZERO);
                return Ok(());
            }
            ToolDecision::AllowOnce => {}
            ToolDecision::AllowTool => permit(Some(tool))?,
            ToolDecision::AllowServer => permit(None)?,
        }
        let mut free = vec![args.call.clone()];
        if args.decision != ToolDecision::AllowOnce {
            let calls = services.rounds.calls(&args.message);
            let others = calls.into_iter().filter(|call| services.runs_unasked(call));
            free.extend(others.map(|call| call.id));
        }
        services.run_calls(&args.message, &free);
        Ok(())
    }

    /// Ends the calls of an answer; nothing answers them.
    pub fn tool_stop(&self, message: &str) -> Result<()> {
        self.revive(message)?;
        self.services().stop_rounds(|_, of| of == message);
        Ok(())
    }

    /// Calls that waited when the program ended wait again.
    fn revive(&self, message: &str) -> Result<()> {
        if self.services().rounds.lock().contains_key(message) {
            return Ok(());
        }
        let (row, conversation, is_end) = {
            if self.services().turns.get(message).is_some() {
                // Of a chat that is kept nowhere.
                return Err(nothing_asked());
            }
            let store = self.store();
            let row = store.message(message)?;
            let conversation = store.conversation(&row.conversation)?;
            let is_free = store.active_turn(&conversation.id)?.is_none();
            let is_end = conversation.leaf.as_deref() == Some(message) && is_free;
            (row, conversation, is_end)
        };
        let calls = conversations::calls(row.tool_calls);
        let calls = self.services().rounds.calls_now(message, calls, is_end);
        let is_asking =
            |call: &ToolCall| call.run.as_ref().is_some_and(|it| it.state == ToolRunState::Asking);
        if !calls.iter().any(is_asking) {
            return Err(nothing_asked());
        }
        let options = conversations::options(conversation.options);
        let next = self.next(&conversation.model, self.responder(&conversation.model)?, &options)?;
        let (conversation, turn) = (Some(conversation.id), String::new());
        let round = ToolRound { conversation, turn, next, calls, stops: HashMap::new() };
        self.services().rounds.lock().entry(message.into()).or_insert(round);
        Ok(())
    }

    /// Runs a call outside any conversation and returns the text for the model. None: it was
    /// stopped.
    pub fn tool_call(&self, offer: &OfferedTools, call: &ToolCall, stop: &Stop) -> Option<String> {
        self.services().call_tool(offer, call, stop).ok().map(|outcome| outcome.text)
    }

    /// Ends all servers, for a program that ends without being dropped. None starts after that.
    pub fn end_tool_servers(&self) {
        self.services().tools.stop();
    }

    /// Rounds of tool calls in a row before the user is asked again.
    pub fn max_tool_rounds(&self) -> Result<u64> {
        Ok(self.ctx().settings.tool_rounds()?.unwrap_or(0))
    }

    /// Whether a call runs without asking.
    pub fn tool_is_allowed(&self, offer: &OfferedTools, call: &ToolCall) -> bool {
        let run = Some(new_run(offer, call, ToolRunState::Asking, ""));
        self.services().runs_unasked(&ToolCall { run, ..call.clone() })
    }
}

fn nothing_asked() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "tools.nothing_asked",
        "This call is no longer waiting for permission.",
        "Send the message again.",
    )
}
