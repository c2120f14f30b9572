//! The message tree's use cases: edit, regenerate, continue, view, copy and remove messages.

use session::{MessageState, NewTurn, Role, TokenLog};

use contract::Responder;

use super::chat::check_message;
use contract::types::{
    AppEvent, ConversationSummary, Finish, RegenerateArgs, ToolCall, TurnStarted, TurnStats,
};
use contract::{Error, Result};
use prompt::title_text;

use crate::App;
use crate::turns::turn::ContinuedFrom;

impl App {
    /// Another version of a user's message, answered: a branch begins there, the old one stays.
    pub fn message_edit(&self, message: &str, text: &str) -> Result<TurnStarted> {
        check_message(text)?;
        self.guard_text(text)?;
        let conversation = self.conversation_of(message)?;
        let planned = self.plan_edit(&conversation, message, text)?;
        let given = planned.as_ref().map(|planned| &planned.given);
        self.start(Some(&conversation), None, NewTurn::Edit { message, text, attachments: given }, None)
    }

    /// Adds a version of an answer in the user's own words; no model is asked.
    pub fn answer_edit(&self, message: &str, text: &str) -> Result<ConversationSummary> {
        check_message(text)?;
        self.changed(|store| Ok(store.rewrite_answer(message, text)?))
    }

    /// Another version of any answer, by another model if one is named, and with other settings for it alone.
    pub fn message_regenerate(&self, args: &RegenerateArgs) -> Result<TurnStarted> {
        let conversation = self.conversation_of(&args.message)?;
        let new = NewTurn::Regenerate { message: &args.message };
        let once = args.once.clone().unwrap_or_default();
        self.start_one_off(&conversation, args.model.as_deref(), new, once)
    }

    /// An answer that was stopped, interrupted or cut goes on from exactly the tokens it has.
    pub fn message_continue(&self, message: &str) -> Result<TurnStarted> {
        let (row, logs) = {
            let store = self.store();
            (store.message(message)?, store.token_logs(message)?)
        };
        let refused = |why: &str| {
            let remedy = "Regenerate it instead.";
            Err(Error::new(contract::ErrorKind::Conflict, "chat.cannot_continue", why, remedy))
        };
        let finish = row.stats.as_deref().and_then(|json| serde_json::from_str::<TurnStats>(json).ok());
        let was_cut = matches!(
            finish.map(|stats| stats.finish),
            Some(Finish::Length | Finish::ContextFull | Finish::TimeUp)
        );
        let is_open = match row.state {
            MessageState::Stopped | MessageState::Interrupted | MessageState::Failed => true,
            MessageState::Complete => was_cut,
            MessageState::Streaming => return refused("This answer is already being written."),
        };
        let may_go_on = row.tool_calls.is_none() || was_cut_in_call(row.tool_calls);
        if row.role != Role::Assistant || !is_open || !may_go_on {
            return refused("This answer is complete.");
        }
        let model = row.model.as_deref();
        let is_remote = matches!(model.map(|model| self.responder(model)), Some(Ok(Responder::Remote(_))));
        let log = match logs.into_iter().find(|log| !log.all_ids.is_empty()) {
            Some(log) => log,
            // Another server goes on from the words.
            None if is_remote => TokenLog::default(),
            None => return refused("This answer's tokens were not saved, so it can't be continued exactly."),
        };
        let continued = ContinuedFrom {
            text: row.text,
            reasoning: row.reasoning,
            ids: log.all_ids,
            fingerprint: log.fingerprint,
        };
        self.start(Some(&row.conversation), model, NewTurn::Continue { message }, Some(continued))
    }

    /// The branch through this message, or through a version of it, becomes the one that is looked at.
    pub fn message_choose(&self, message: &str, version: Option<u32>) -> Result<ConversationSummary> {
        self.changed(|store| {
            Ok(match version {
                Some(version) => store.activate_version(message, version)?,
                None => store.activate_branch(message)?,
            })
        })
    }

    /// A new conversation with all up to this message.
    pub fn message_fork(&self, message: &str) -> Result<ConversationSummary> {
        self.changed(|store| {
            let from = store.message(message)?.conversation;
            let title = title_text::clean(&format!("{} (branch)", store.conversation(&from)?.title));
            Ok(store.fork(message, &title)?)
        })
    }

    /// Removes a message and all after it; `message_restore` brings it back.
    pub fn message_delete(&self, message: &str) -> Result<ConversationSummary> {
        self.changed(|store| Ok(store.remove_message(message)?))
    }

    pub fn message_restore(&self, message: &str) -> Result<ConversationSummary> {
        self.changed(|store| Ok(store.restore_message(message)?))
    }

    fn conversation_of(&self, message: &str) -> Result<String> {
        Ok(self.store().message(message)?.conversation)
    }

    /// Says that a conversation is there or has changed.
    pub(crate) fn told(&self, conversation: ConversationSummary) -> ConversationSummary {
        self.ctx().events.publish(AppEvent::ConversationChanged { conversation: conversation.clone() });
        conversation
    }
}

/// Whether an answer ended inside its only call, so that the call's arguments are no whole object.
fn was_cut_in_call(tool_calls: Option<String>) -> bool {
    let is_whole = |call: &ToolCall| serde_json::from_str::<serde_json::Map<_, _>>(&call.arguments).is_ok();
    matches!(records::conversations::calls(tool_calls).as_slice(), [call] if !is_whole(call))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_call_that_was_cut_is_gone_on_with() {
        let call = |arguments: &str| json!({ "id": "a", "name": "f", "arguments": arguments });
        for (calls, expected) in [
            (json!([call("{\"x\": \"a")]), true),
            (json!([call("")]), true),
            (json!([call("{\"x\": 1}")]), false),
            (json!([call("{}"), call("{\"x")]), false),
            (json!([]), false),
        ] {
            assert_eq!(was_cut_in_call(Some(calls.to_string())), expected, "{calls}");
        }
    }
}
