//! Temporary chats: nothing is stored, and the client holds the messages. While calls of an answer
//! wait or run, the messages before them stay in memory, so that their results can be answered.

use prompt::history::{call_value, result_message, with_system};

use super::chat::check_message;
use crate::App;
use crate::Services;
use crate::tools::open_rounds::stop_unfinished;
use crate::turns::turn_plan::NextAnswer;
use contract::Result;
use contract::protocol::{GenerateRequest, Prompt, PromptMessage, WorkerRequest};
use contract::types::{Role, TemporaryArgs, TemporaryMessage, ToolCall, TurnArgs, TurnEventKind};

impl App {
    /// Answers the last of the messages. The turn is watched and cancelled as any other; nothing is saved. Calls of tools
    /// go by the name of the turn that called, and what they bring is answered by another.
    pub fn temporary_send(&self, args: TemporaryArgs) -> Result<TurnArgs> {
        check_message(args.messages.last().map_or("", |question| &question.text))?;
        let mut messages = Vec::with_capacity(args.messages.len());
        for mut message in args.messages {
            if !message.attachments.is_empty() {
                let (model, ids) = (args.model.as_deref(), std::mem::take(&mut message.attachments));
                message.text = self.attached_prompt(model, &message.text, &ids)?.text;
            }
            messages.extend(prompt_messages(message));
        }
        let options = args.options.unwrap_or_default();
        self.check_options(&options)?;
        let mut prompt = Prompt::Chat(with_system(messages, options.system_prompt.clone()));
        let marks = self.guard_prompt(&mut prompt)?;
        let model = self.model_of(args.model.as_deref(), None)?;
        let mut next = self.next(&model, self.responder(&model)?, &options)?;
        let (limits, n_open) = (self.limits()?, self.services().turns.n_open());
        limits.admit(n_open, prompt.texts())?;
        next.request.prompt = prompt;
        let turn = self.services().ask_temporary(next)?;
        if let Some(turn) = self.services().turns.get(&turn) {
            marks.into_iter().for_each(|mark| turn.publish(TurnEventKind::Notice { error: mark.info }));
        }
        Ok(TurnArgs { turn })
    }
}

impl Services {
    /// Has the next answer of such a chat written; its turn.
    pub(crate) fn ask_temporary(&self, next: NextAnswer) -> Result<String> {
        let turn = {
            let turn = self.store().new_id();
            self.turns.add(turn.clone(), None, None);
            if !next.offer.tools.is_empty() {
                self.turns.set_plan(&turn, next.plan(""));
            }
            turn
        };
        let request = GenerateRequest { turn: turn.clone(), ..next.request };
        self.ctx.backends.ask(WorkerRequest::Generate(Box::new(request)))?;
        Ok(turn)
    }
}

impl NextAnswer {
    /// After an answer that called.
    pub(crate) fn with_call(mut self, text: &str, reasoning: &str, calls: &[ToolCall]) -> Self {
        if let Prompt::Chat(said) = &mut self.request.prompt {
            said.push(calling(text, reasoning, calls));
        }
        self
    }

    /// After what those calls brought.
    pub(crate) fn with_results(mut self, calls: &[ToolCall]) -> Self {
        if let Prompt::Chat(said) = &mut self.request.prompt {
            said.extend(calls.iter().map(|call| result_message(None, call.clone())));
        }
        self
    }
}

fn calling(text: &str, reasoning: &str, calls: &[ToolCall]) -> PromptMessage {
    PromptMessage {
        role: "assistant".into(),
        content: text.into(),
        reasoning: reasoning.into(),
        tool_calls: calls.iter().map(call_value).collect(),
        ..PromptMessage::default()
    }
}

/// A message followed by the results of its calls; calls that were never approved count as stopped.
fn prompt_messages(message: TemporaryMessage) -> Vec<PromptMessage> {
    let TemporaryMessage { role, text, attachments: _, tool_calls } = message;
    let named = |role: &str| {
        vec![PromptMessage { role: role.into(), content: text.clone(), ..PromptMessage::default() }]
    };
    match role {
        Role::System => named("system"),
        Role::User => named("user"),
        Role::Assistant => {
            let mut calls: Vec<_> = tool_calls.into_iter().filter(|call| call.run.is_some()).collect();
            stop_unfinished(&mut calls);
            let answer = calling(&text, "", &calls);
            let results = calls.into_iter().map(|call| result_message(None, call));
            std::iter::once(answer).chain(results).collect()
        }
    }
}
