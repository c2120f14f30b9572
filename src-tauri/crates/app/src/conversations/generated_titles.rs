//! Titles that the model writes after a conversation's first answer, in a separate turn that yields
//! to every answer. Until then, and for good if no usable title is written, the first words of the
//! first message are the title. A title that the user set is never changed.

use contract::Result;
use contract::protocol::{PromptMessage, Step, WorkerRequest};
use contract::types::{AppEvent, Finish};
use session::{MessageState, Role, Session, TitledBy};

use super::title_jobs::TitleJob;
use crate::Services;
use crate::context::summary;
use crate::settings::TypedSettings;
use crate::turns::turn_plan::TurnPlan;
use prompt::written_title::{ASK, fit};

/// What of either message the model is shown, in characters: a title is about the beginning.
const SHOWN_CHARS: usize = 1200;

/// Longest title, in tokens; what is cut is none.
const MAX_TOKENS: usize = 32;

/// The first question and its answer, if the conversation is to be called after them.
fn to_entitle(session: &Session, id: &str) -> Result<Option<(String, String)>> {
    let branch = session.branch(id)?;
    if branch.conversation.titled_by != TitledBy::Start {
        return Ok(None);
    }
    let rows: Vec<_> = branch.messages.into_iter().map(|message| message.row).collect();
    Ok(match rows.as_slice() {
        // Between them there may be what tools were called for.
        [question, between @ .., answer]
            if question.role == Role::User
                && between.iter().chain([answer]).all(|row| row.role == Role::Assistant)
                && answer.state == MessageState::Complete
                && !answer.text.trim().is_empty() =>
        {
            Some((beginning(&question.text), beginning(&answer.text)))
        }
        _ => None,
    })
}

impl Services {
    /// After an answer: has a title written where one is wanting and nothing else is to be done.
    pub fn look_for_title(&self, setup: &TurnPlan) {
        if let Err(error) = self.begin_title(setup) {
            tracing::debug!("no title is written: {error}");
        }
    }

    fn begin_title(&self, setup: &TurnPlan) -> Result<()> {
        if !self.ctx.settings.titles()? {
            return Ok(());
        }
        let store = self.store();
        if !store.active_turns()?.is_empty() {
            return Ok(());
        }
        let Some((question, answer)) = to_entitle(&store, &setup.conversation)? else { return Ok(()) };
        let turn = store.new_id();
        let job = TitleJob { conversation: setup.conversation.clone(), text: String::new() };
        self.titles.jobs().insert(turn.clone(), job);
        drop(store);
        let message = |role: &str, content: String| PromptMessage {
            role: role.into(),
            content,
            ..PromptMessage::default()
        };
        let messages =
            vec![message("user", question), message("assistant", answer), message("user", ASK.into())];
        let mut chat = setup.chat.clone();
        chat.tools = serde_json::Value::Null;
        let request = setup.side_request(turn, messages, MAX_TOKENS, chat);
        self.ctx.backends.ask(WorkerRequest::Generate(Box::new(request)))
    }

    /// A step of a turn that writes a title. It comes back where it is none of one.
    pub fn title_step(&self, id: &str, step: Step) -> Result<(), Step> {
        let mut jobs = self.titles.jobs();
        let Some(job) = jobs.get_mut(id) else { return Err(step) };
        match step {
            Step::Token { text, .. } | Step::Rest { text, .. } => job.text.push_str(&text),
            Step::Began { text, .. } => job.text = text,
            Step::Done(finished) => {
                let job = jobs.remove(id);
                drop(jobs);
                let written = job.filter(|_| finished.finish == Finish::Stop);
                if let Some((title, conversation)) =
                    written.and_then(|job| Some((fit(&job.text)?, job.conversation)))
                {
                    self.keep_title(&conversation, &title);
                }
            }
            Step::Failed { .. } => _ = jobs.remove(id),
            Step::Queued { .. }
            | Step::Loading { .. }
            | Step::Prefill { .. }
            | Step::ToolCall { .. }
            | Step::Notice { .. }
            | Step::Compacted { .. }
            | Step::Wanting { .. } => {}
        }
        Ok(())
    }

    fn keep_title(&self, conversation: &str, title: &str) {
        let mut store = self.store();
        let summary = match store.set_generated_title(conversation, title) {
            Ok(row) => row.and_then(|row| summary(&store, row).ok()),
            Err(error) => {
                tracing::debug!("a title was not kept: {error}");
                None
            }
        };
        drop(store);
        if let Some(conversation) = summary {
            self.ctx.events.publish(AppEvent::ConversationChanged { conversation });
        }
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::title_jobs::TitleJob;
    use crate::{App, AppConfig};
    use contract::protocol::Step;
    use contract::types::{AppEvent, SendArgs};

    /// What a worker would say of a title that was written.
    fn written(app: &App, conversation: &str, text: &str) {
        let job = TitleJob { conversation: conversation.into(), text: String::new() };
        app.services().titles.jobs().insert("t".into(), job);
        let done = json!({
            "finish": "stop", "called": false, "prompt_tokens": 1, "reused_tokens": 0, "generated_tokens": 1,
            "drafted_tokens": 0, "accepted_tokens": 0, "context_limit": 9, "load_ms": 0.0, "ttft_ms": 0.0,
            "prefill_tok_s": 0.0, "decode_tok_s": 0.0, "log": { "fingerprint": "", "ids": [] }
        });
        let token = Step::Token { id: 1, text: text.into(), reasoning: String::new(), logprobs: Vec::new() };
        app.services().title_step("t", token).unwrap();
        let done = Step::Done(serde_json::from_value(done).unwrap());
        app.services().title_step("t", done).unwrap();
        assert!(app.services().titles.jobs().is_empty());
    }

    #[test]
    fn a_title_that_was_written_is_kept_and_told_unless_the_user_has_given_one() {
        let folder = std::env::temp_dir().join(format!("inglenook-titles-{}", std::process::id()));
        let app = App::open(AppConfig { data_dir: Some(folder.clone()), ..AppConfig::default() }).unwrap();
        app.settings_set("titles", &json!(false)).unwrap();
        app.settings_set("max_tokens", &json!(2)).unwrap();
        let started = app.send(SendArgs { text: "Tell me of foxes".into(), ..SendArgs::default() }).unwrap();
        app.watch_turn(&started.turn, 0).unwrap().for_each(drop);
        let id = started.conversation;
        let title = || app.conversation_get(&id).unwrap().summary.title;
        assert_eq!(title(), "Tell me of foxes", "the first words, at once");
        written(&app, &id, "This is far too long to be a title of anything at all");
        assert_eq!(title(), "Tell me of foxes");
        let told = app.watch_app();
        written(&app, &id, "\"Foxes in winter\"\n");
        assert_eq!(title(), "Foxes in winter");
        app.conversation_rename(&id, "Mine").unwrap();
        written(&app, &id, "Bears");
        assert_eq!(title(), "Mine");
        drop(app);
        let is_told = |event: AppEvent| match event {
            AppEvent::ConversationChanged { conversation } => conversation.title == "Foxes in winter",
            _ => false,
        };
        assert!(told.flatten().any(is_told));
        let _ = std::fs::remove_dir_all(folder);
    }
}
