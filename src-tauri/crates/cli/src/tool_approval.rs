//! Approval of tool calls on the terminal, and the results of the calls.

use std::io::IsTerminal;

use app::App;
use app::OfferedTools;
use contract::Result;
use contract::protocol::PromptMessage;
use contract::types::{
    AppEvent, ConversationOptions, ToolCall, ToolDecideArgs, ToolDecision, ToolPermitArgs, ToolRunState,
};
use documents::prompt_injection;
use platform::Watch;
use serde_json::json;

use crate::input::InputLines;
use crate::input::event::InputEvent;
use crate::interrupt::Interrupt;
use crate::out;
use crate::tools::ToolFlags;

/// Limits of the characters shown of arguments and of a result.
const MAX_ARGUMENTS_CHARS: usize = 2000;
const MAX_RESULT_CHARS: usize = 100;

const DENIED: &str = "The user did not allow this call.";

/// The application, the terminal input and the Ctrl+C handler that a question needs.
pub struct ApprovalContext<'a> {
    pub app: &'a App,
    pub lines: &'a InputLines,
    pub interrupt: &'a Interrupt,
}

/// Policy for tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolApproval {
    Always,
    /// Ask the person at the terminal.
    Ask,
    /// Deny, because there is no terminal.
    Never,
}

impl ToolApproval {
    pub fn of(flags: ToolFlags) -> Self {
        let is_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        match (flags.allow_tools, is_person) {
            (true, _) => Self::Always,
            (false, true) => Self::Ask,
            (false, false) => Self::Never,
        }
    }

    /// Decides on one call. `None` after Ctrl+C.
    fn decide(self, context: &ApprovalContext<'_>, call: &ToolCall, server: &str) -> Option<ToolDecision> {
        match self {
            Self::Always => return Some(ToolDecision::AllowOnce),
            Self::Never => {
                let name = &call.name;
                out::log(&format!(
                    "{name} was not allowed: there is no terminal to ask on (use --allow-tools)"
                ));
                return Some(ToolDecision::Deny);
            }
            Self::Ask => {}
        }
        loop {
            let asked = format!("Run {}({}) of {server}?", call.name, shorten_arguments(&call.arguments));
            // On one line, so that no part of it can look like another question.
            out::hint(&out::harmless(&prompt_injection::reveal_hidden(&asked.replace('\n', " "))));
            let choices = " [y]es once, always this [t]ool, always this [s]erver, [n]o: ";
            let line = match context.lines.next(context.interrupt, choices) {
                InputEvent::Line(line) => line,
                InputEvent::End | InputEvent::Failed(_) => return Some(ToolDecision::Deny),
                InputEvent::Interrupted | InputEvent::Discarded => {
                    out::log("");
                    return None;
                }
            };
            match line.trim().to_lowercase().as_str() {
                "n" | "no" => return Some(ToolDecision::Deny),
                "y" | "yes" => return Some(ToolDecision::AllowOnce),
                "t" | "tool" => return Some(ToolDecision::AllowTool),
                "s" | "server" => return Some(ToolDecision::AllowServer),
                _ => {}
            }
        }
    }

    /// Decides on the pending calls of an answer and waits for their results. Returns the next turn, or `None` if the
    /// calls were stopped.
    pub fn decide_pending(
        self,
        context: &ApprovalContext<'_>,
        events: &mut Watch<AppEvent>,
        conversation: &str,
        message: &str,
    ) -> Result<Option<String>> {
        let messages = context.app.conversation_get(conversation)?.messages;
        let calls = messages.into_iter().find(|it| it.id == message).map(|it| it.tool_calls);
        for call in calls.unwrap_or_default() {
            let Some(run) = call.run.as_ref().filter(|run| run.state == ToolRunState::Asking) else {
                continue;
            };
            if run.at_limit && self == Self::Ask {
                out::log("many tool calls ran in a row, so you are asked again");
            }
            // Ctrl+C stops all calls.
            let Some(decision) = self.decide(context, &call, &run.server_name) else { break };
            let args = ToolDecideArgs { message: message.into(), call: call.id.clone(), decision };
            match context.app.tool_decide(&args) {
                // Another window has already decided.
                Err(error) if error.code() == "tools.nothing_asked" => {}
                decided => decided?,
            }
        }
        let waiting = WaitingLine::begin("the tools");
        for event in events.flatten() {
            let AppEvent::ToolCalls { message: of, calls, over: true, turn, .. } = event else { continue };
            if of == message {
                drop(waiting);
                calls.iter().for_each(log_call);
                return Ok(turn);
            }
        }
        Ok(None)
    }

    /// Runs the calls of an answer outside of a conversation. Returns the results for the next prompt, or `None` if the
    /// calls were stopped.
    pub fn run_calls(
        self,
        context: &ApprovalContext<'_>,
        offer: &OfferedTools,
        calls: &[ToolCall],
    ) -> Result<Option<Vec<PromptMessage>>> {
        let mut results = Vec::new();
        for call in calls {
            let stop = context.interrupt.begin_call(context.app);
            let outcome = match self.is_permitted(context, offer, call)? {
                None => None,
                Some(false) => Some(DENIED.to_owned()),
                Some(true) => {
                    let _waiting = WaitingLine::begin(&call.name);
                    context.app.tool_call(offer, call, &stop)
                }
            };
            context.interrupt.end();
            let Some(content) = outcome else {
                out::log("stopped");
                return Ok(None);
            };
            log_result(&call.name, &content);
            results.push(PromptMessage {
                role: "tool".into(),
                content,
                tool_call_id: Some(call.id.clone()),
                name: Some(call.name.clone()),
                ..PromptMessage::default()
            });
        }
        Ok(Some(results))
    }

    /// Whether a call may run; saves permanent decisions. `None` after Ctrl+C.
    fn is_permitted(
        self,
        context: &ApprovalContext<'_>,
        offer: &OfferedTools,
        call: &ToolCall,
    ) -> Result<Option<bool>> {
        if context.app.tool_is_allowed(offer, call) {
            return Ok(Some(true));
        }
        let found = offer.find(&call.name);
        let server = found.map_or("", |tool| tool.server_name.as_str());
        let Some(decision) = self.decide(context, call, server) else { return Ok(None) };
        let tool = match decision {
            ToolDecision::Deny => return Ok(Some(false)),
            ToolDecision::AllowOnce => return Ok(Some(true)),
            ToolDecision::AllowTool => found.map(|tool| tool.tool.clone()),
            ToolDecision::AllowServer => None,
        };
        if let Some(found) = found {
            let id = found.server.clone();
            context.app.tool_permit(&ToolPermitArgs { id, tool, allowed: Some(true), enabled: None })?;
        }
        Ok(Some(true))
    }
}

/// A status line on the terminal; removed when dropped.
struct WaitingLine {
    is_shown: bool,
}

impl WaitingLine {
    fn begin(name: &str) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        if is_shown {
            out::hint(&out::harmless(&format!("waiting for {name} … Ctrl+C stops it")));
        }
        Self { is_shown }
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        if self.is_shown {
            out::hint("\r\x1b[2K");
        }
    }
}

/// Shortens arguments for display.
pub fn shorten_arguments(arguments: &str) -> String {
    let left = arguments.chars().count().saturating_sub(MAX_ARGUMENTS_CHARS);
    match left {
        0 => arguments.to_owned(),
        _ => {
            let shown: String = arguments.chars().take(MAX_ARGUMENTS_CHARS).collect();
            format!("{shown}… and {left} more characters")
        }
    }
}

fn log_call(call: &ToolCall) {
    let Some(run) = &call.run else { return };
    log_result(&call.name, &run.result);
    for finding in &run.findings {
        out::log(&format!("  {}: {}", call.name, finding.told()));
    }
}

fn log_result(name: &str, result: &str) {
    let first = result.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(MAX_RESULT_CHARS).collect();
    let more = if shown.len() < result.trim_end().len() { " …" } else { "" };
    out::log(&format!("← {name}: {shown}{more}"));
}

/// The tools of all enabled servers.
pub fn offered_tools(app: &App) -> Result<OfferedTools> {
    let ids = app.tool_servers_list()?.into_iter().map(|server| server.id).collect();
    app.tools_offer(Some(&ConversationOptions { tools: Some(ids), ..ConversationOptions::default() }))
}

/// An answer with tool calls, as a message of the next prompt.
pub fn call_message(text: &str, reasoning: &str, calls: &[ToolCall]) -> PromptMessage {
    let call = |call: &ToolCall| {
        let function = json!({ "name": call.name, "arguments": call.arguments });
        json!({ "id": call.id, "type": "function", "function": function })
    };
    PromptMessage {
        role: "assistant".into(),
        content: text.into(),
        reasoning: reasoning.into(),
        tool_calls: calls.iter().map(call).collect(),
        ..PromptMessage::default()
    }
}
