//! Temporary chats: nothing is stored, and the client holds the messages. While calls of an answer
//! wait or run, the messages before them stay in memory, so that their results can be answered.

use std::sync::Arc;

use prompt::history::{call_value, result_message, with_system};

use super::chat::check_message;
use crate::App;
use crate::Services;
use crate::network::callers::Caller;
use crate::tools::open_rounds::stop_unfinished;
use crate::turns::turn_plan::{NextAnswer, TurnPlan};
use contract::Result;
use contract::protocol::{GenerateRequest, Prompt, PromptMessage, WorkerRequest};
use contract::types::{
    ConversationOptions, Role, TemporaryArgs, TemporaryMessage, ToolCall, TurnArgs, TurnEventKind,
};

impl App {
    /// Answers the last of the messages. The turn is watched and cancelled as any other; nothing is saved. Calls of tools
    /// go by the name of the turn that called, and what they bring is answered by another.
    pub fn temporary_send(&self, args: TemporaryArgs) -> Result<TurnArgs> {
        check_message(args.messages.last().map_or("", |question| &question.text))?;
        let question = args.messages.last().map_or_else(String::new, |question| question.text.clone());
        let mut messages = Vec::with_capacity(args.messages.len());
        for mut message in args.messages {
            let mut images = Vec::new();
            if !message.attachments.is_empty() {
                let (model, ids) = (args.model.as_deref(), std::mem::take(&mut message.attachments));
                let attached = self.attached_prompt(model, &message.text, &ids)?;
                (message.text, images) = (attached.text, attached.images);
            }
            let from = messages.len();
            messages.extend(prompt_messages(message));
            messages[from..].iter_mut().take(1).for_each(|first| first.images = std::mem::take(&mut images));
        }
        let options = self.with_default_instructions(args.options.unwrap_or_default())?;
        // Notes belong to chats that are kept: a temporary one has them only where it asks for them.
        let options = ConversationOptions { memory: options.memory.or(Some(false)), ..options };
        self.check_options(&options)?;
        let mut prompt = Prompt::Chat(with_system(messages, self.system_of(&options)?));
        let marks = self.guard_prompt(&mut prompt)?;
        let model = self.model_of(args.model.as_deref(), None)?;
        let responder = self.current_responder(&model)?;
        let is_guided = self.is_guided(&responder)?;
        let mut next = self.next(&model, responder, &options)?;
        let (limits, n_open) = (self.limits()?, self.services().turns.n_open());
        limits.admit(n_open, prompt.texts())?;
        let turn = match is_guided {
            true => {
                let turn = self.services().add_temporary(Arc::clone(&self.caller), &model, None);
                self.answer_from_guide(&turn, &question, "")?;
                turn
            }
            false => {
                next.request.prompt = prompt;
                self.services().ask_temporary(next, Arc::clone(&self.caller))?
            }
        };
        if let Some(turn) = self.services().turns.get(&turn) {
            marks.into_iter().for_each(|mark| turn.publish(TurnEventKind::Notice { error: mark.info }));
        }
        Ok(TurnArgs { turn })
    }
}

impl Services {
    /// Has the next answer of such a chat written; its turn.
    pub(crate) fn ask_temporary(&self, next: NextAnswer, caller: Arc<Caller>) -> Result<String> {
        let plan = (!next.offer.tools.is_empty()).then(|| next.plan(""));
        let turn = self.add_temporary(caller, &next.request.model.id, plan);
        let request = GenerateRequest { turn: turn.clone(), ..next.request };
        self.ctx.backends.ask(WorkerRequest::Generate(Box::new(request)))?;
        Ok(turn)
    }
}

impl Services {
    /// A turn that is kept nowhere, and what its calls go on with.
    fn add_temporary(&self, caller: Arc<Caller>, model: &str, plan: Option<TurnPlan>) -> String {
        let turn = self.store().new_id();
        self.turns.add(turn.clone(), None, None, self.origin(caller, model));
        if let Some(plan) = plan {
            self.turns.set_plan(&turn, plan);
        }
        turn
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
