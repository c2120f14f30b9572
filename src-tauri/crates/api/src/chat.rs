//! Conversations and their turns: list, open, rename, delete, send, retry, cancel, watch.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use session::{BranchMessage, MessageState, NewTurn, Role, StartedTurn};

use crate::attachments;
use crate::convert;
use crate::error::{Error, Result};
use crate::feed::Watch;
use crate::title;
use crate::tools::Next;
use crate::types::{
    AppEvent, CompactionStrategy, Conversation, ConversationOptions, ConversationSummary, Message, Once,
    SendArgs, ToolCall, TurnEvent, TurnStarted,
};
use crate::worker::protocol::{
    ChatOptions, GenerateRequest, Ids, ModelRef, Prompt, PromptMessage, WorkerRequest,
};
use crate::{App, Had, Place, State};

/// Longest message that is taken, in bytes: far beyond any context, small enough to keep.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// What a model is told of a call that nobody allowed.
const NOT_RUN: &str = "This call was not run.";

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Responder {
    /// A model on this machine.
    Local(ModelRef),
    /// Another server, which speaks OpenAI's protocol.
    Remote(ModelRef),
}

impl Responder {
    /// For requests, which go to whoever it is.
    pub(crate) fn reference(self) -> ModelRef {
        match self {
            Self::Local(reference) | Self::Remote(reference) => reference,
        }
    }
}

/// What a conversation is given of its own when it begins.
#[derive(Default)]
struct Own {
    options: ConversationOptions,
    json: Option<String>,
    compression: Option<CompactionStrategy>,
    /// For the answer that begins now, and no other.
    once: Once,
}

impl Own {
    fn give(&self, state: &mut State, conversation: &str) -> Result<()> {
        if let Some(json) = &self.json {
            state.session.set_options(conversation, Some(json))?;
        }
        if let Some(strategy) = self.compression {
            state.session.set_compaction_strategy(conversation, Some(strategy.name()))?;
        }
        Ok(())
    }
}

impl App {
    /// Newest first, without the trash.
    pub fn conversations_list(&self) -> Result<Vec<ConversationSummary>> {
        let state = self.shared().state();
        let active: HashMap<_, _> = state.session.active_turns()?.into_iter().collect();
        let rows = state.session.conversations()?.into_iter();
        let summaries = rows.map(|row| {
            let active_turn = active.get(&row.id).cloned();
            convert::summary(row, active_turn)
        });
        Ok(summaries.collect())
    }

    /// With the messages of its active branch.
    pub fn conversation_get(&self, id: &str) -> Result<Conversation> {
        let state = self.shared().state();
        let mut branch = state.session.branch(id)?;
        for message in &mut branch.messages {
            if let Some(owed) = state.owed.get(&message.row.id) {
                owed.show_in(&mut message.row);
            }
        }
        let (compaction, compression) =
            (state.compaction_info(id, &branch.messages)?, state.own_strategy(id)?);
        let mut sources = attachments::sources(&branch.messages);
        let messages = branch.messages.into_iter().map(|message| {
            let sources = sources.remove(&message.row.id).unwrap_or_default();
            Message { sources, ..convert::message(message) }
        });
        let mut messages: Vec<_> = messages.collect();
        let n = messages.len();
        for (at, message) in messages.iter_mut().enumerate().filter(|(_, it)| !it.tool_calls.is_empty()) {
            let calls = std::mem::take(&mut message.tool_calls);
            message.tool_calls = state.calls_now(&message.id, calls, at + 1 == n);
        }
        let options = convert::options(branch.conversation.options.clone());
        Ok(Conversation {
            summary: state.summary(branch.conversation)?,
            messages,
            options,
            compaction,
            compression,
        })
    }

    pub fn conversation_rename(&self, id: &str, title: &str) -> Result<ConversationSummary> {
        let title = title::clean(title);
        if title.is_empty() {
            return Err(Error::input("chat.empty_title", "The title is empty.", "Enter a name."));
        }
        self.changed(|state| Ok(state.session.rename(id, &title)?))
    }

    pub fn conversation_set_model(&self, id: &str, model: &str) -> Result<ConversationSummary> {
        self.responder(model)?;
        self.changed(|state| Ok(state.session.set_model(id, model)?))
    }

    pub(crate) fn changed(
        &self,
        change: impl FnOnce(&mut State) -> Result<session::ConversationRow>,
    ) -> Result<ConversationSummary> {
        let mut state = self.shared().state();
        let row = change(&mut state)?;
        let conversation = state.summary(row)?;
        drop(state);
        Ok(self.told(conversation))
    }

    /// Saves the message, then has it answered. The turn is followed by `watch_turn`.
    pub fn send(&self, args: SendArgs) -> Result<TurnStarted> {
        check_message(&args.text)?;
        self.guard_text(&args.text)?;
        let files = self.pending(&args.attachments)?;
        let planned = self.plan_message(&args, &files)?;
        let title = title::of_message(&args.text);
        let conversation = args.conversation.as_deref();
        let new = NewTurn::Message {
            conversation,
            title: &title,
            text: &args.text,
            attachments: Some(&planned.given),
        };
        let own = args.options.filter(|_| conversation.is_none());
        let json = own.as_ref().map(|own| self.options_json(own)).transpose()?.flatten();
        let compression = args.compression.filter(|_| conversation.is_none());
        let own = Own { options: own.unwrap_or_default(), json, compression, ..Own::default() };
        let started = self.start_with(conversation, args.model.as_deref(), new, None, own)?;
        self.sent(&args.attachments);
        Ok(started)
    }

    /// The last question again: a new version of its answer.
    pub fn retry(&self, conversation: &str) -> Result<TurnStarted> {
        self.start(Some(conversation), None, NewTurn::Retry { conversation }, None)
    }

    /// Library id of who answers: whom the caller names, the conversation's, or the default.
    pub(crate) fn model_of(&self, model: Option<&str>, conversation: Option<&str>) -> Result<String> {
        match (model, conversation) {
            (Some(model), _) => Ok(model.to_owned()),
            (None, Some(id)) => Ok(self.shared().state().session.conversation(id)?.model),
            (None, None) => self.default_model(),
        }
    }

    /// `had`: what the answer has already.
    pub(crate) fn start(
        &self,
        conversation: Option<&str>,
        model: Option<&str>,
        new: NewTurn,
        had: Option<Had>,
    ) -> Result<TurnStarted> {
        self.start_with(conversation, model, new, had, Own::default())
    }

    /// `once`: what this answer alone is asked for otherwise.
    pub(crate) fn start_once(
        &self,
        conversation: &str,
        model: Option<&str>,
        new: NewTurn,
        once: Once,
    ) -> Result<TurnStarted> {
        self.start_with(Some(conversation), model, new, None, Own { once, ..Own::default() })
    }

    /// `own`: what the conversation is given of its own if it begins with this.
    fn start_with(
        &self,
        conversation: Option<&str>,
        model: Option<&str>,
        new: NewTurn,
        had: Option<Had>,
        own: Own,
    ) -> Result<TurnStarted> {
        let model = self.model_of(model, conversation)?;
        let responder = self.responder(&model)?;
        let limits = self.limits()?;
        let options =
            conversation.map(|id| self.options_of(id)).transpose()?.unwrap_or_else(|| own.options.clone());
        let partial = had.as_ref().and_then(|had| had.message(&responder));
        let next = self.next_once(&model, responder, options, own.once.clone())?;
        // What is called there is overtaken.
        conversation.into_iter().for_each(|id| self.shared().stop_rounds_in(id));
        let mut state = self.shared().state();
        limits.admit(state.n_open(), said(&new))?;
        let started = state.session.start(new, &model)?;
        own.give(&mut state, &started.conversation)?;
        let mut row = state.session.conversation(&started.conversation)?;
        if row.model != model {
            row = state.session.set_model(&row.id, &model)?;
        }
        let branch = state.session.branch(&started.conversation)?.messages;
        let compression = state.compression_of(&started.conversation, &branch, next.default)?;
        state.setups.insert(started.turn.clone(), Box::new(next.setup(&started.conversation)));
        let with_files = state.with_files(branch)?;
        let give_way = [state.summaries_ahead(), state.titles_in_the_making()].concat();
        let place = Place::of(&started);
        let words = had.as_ref().map(Had::words);
        state.add_turn(started.turn.clone(), Some(place), had);
        let summary = state.summary(row)?;
        drop(state);
        self.shared().tell(AppEvent::ConversationChanged { conversation: summary });
        for turn in give_way {
            self.ask(WorkerRequest::Cancel { turn })?;
        }
        self.ask(WorkerRequest::Generate(Box::new(GenerateRequest {
            turn: started.turn.clone(),
            conversation: Some(started.conversation.clone()),
            prompt: prompt(with_files, next.system, partial),
            compression,
            had: words,
            ..next.request
        })))?;
        Ok(told(started))
    }

    /// What an answer by this model is asked with in a conversation with these options of its own.
    pub(crate) fn next(
        &self,
        model: &str,
        responder: Responder,
        options: &ConversationOptions,
    ) -> Result<Next> {
        let limits = self.limits()?;
        let offer = self.tools_offer(Some(options))?;
        let asked = ChatOptions { tools: offer.definitions(), ..ChatOptions::default() };
        let request = GenerateRequest {
            turn: String::new(),
            load: self.load_spec_for(&responder)?,
            model: responder.reference(),
            conversation: None,
            prompt: Prompt::Chat(Vec::new()),
            sampling: self.sampling_with(options)?,
            max_tokens: limits.answer(self.max_tokens_with(options)?),
            stop: Vec::new(),
            ignore_eos: false,
            chat: self.chat_options(model, asked)?,
            speculation: self.speculation()?,
            resume: None,
            bounds: limits.bounds(),
            compression: None,
            had: None,
            keeping: Some(self.keeping()?),
            profile: self.is_profiling(),
        };
        let (system, default) = (options.system_prompt.clone(), self.default_strategy()?);
        Ok(Next { offer: Arc::new(offer), request, system, default, round: 0, once: None })
    }

    /// Ends a turn before its next token; what was written stays. One that has ended is left alone.
    pub fn turn_cancel(&self, turn: &str) -> Result<()> {
        let summary = self.shared().state().summary_for(turn);
        if let Some(summary) = summary {
            self.ask(WorkerRequest::Cancel { turn: summary })?;
        }
        self.shared().stop_round_of_turn(turn);
        self.ask(WorkerRequest::Cancel { turn: turn.into() })
    }

    /// A turn's events after sequence number `after_seq`: those that were, then those that come. A
    /// watcher that leaves cancels nothing.
    pub fn watch_turn(&self, turn: &str, after_seq: u64) -> Result<Watch<TurnEvent>> {
        let state = self.shared().state();
        let turn = state.turns.get(turn).ok_or_else(|| {
            Error::not_found(
                "turn.unknown",
                "This answer is not being written here.",
                "Open its chat to see what was written.",
            )
        })?;
        Ok(Watch::new(&turn.feed, after_seq))
    }
}

impl Had {
    /// For the worker.
    fn words(&self) -> Ids {
        Ids { fingerprint: self.fingerprint.clone(), ids: self.ids.clone() }
    }

    /// For a server that doesn't know ids: the answer so far is the prompt's last message.
    fn message(&self, responder: &Responder) -> Option<PromptMessage> {
        let message = PromptMessage {
            role: "assistant".into(),
            content: self.text.clone(),
            reasoning: self.reasoning.clone(),
            ..PromptMessage::default()
        };
        match responder {
            Responder::Local(_) => None,
            Responder::Remote(_) => Some(message),
        }
    }
}

pub(crate) fn check_message(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        let remedy = "Write a message first.";
        return Err(Error::input("chat.empty_message", "The message is empty.", remedy));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        let message = format!("The message has {} bytes; the maximum is {MAX_MESSAGE_BYTES}.", text.len());
        return Err(Error::input(
            "chat.message_too_long",
            message,
            "Shorten it, or attach the text as a file.",
        ));
    }
    Ok(())
}

/// What the user says with it.
fn said<'a>(new: &NewTurn<'a>) -> Option<&'a str> {
    match new {
        NewTurn::Message { text, .. } | NewTurn::Edit { text, .. } => Some(*text),
        NewTurn::Retry { .. }
        | NewTurn::Regenerate { .. }
        | NewTurn::Continue { .. }
        | NewTurn::ToolResults { .. } => None,
    }
}

fn told(started: StartedTurn) -> TurnStarted {
    TurnStarted {
        turn: started.turn,
        conversation: started.conversation,
        user_message: started.user_message,
        assistant_message: started.assistant_message,
    }
}

/// The prompt's messages: the branch without the answer that is about to be written, and without answers
/// that stayed empty. Questions that follow each other become one, since templates want turns to alternate.
pub(crate) fn history(branch: Vec<BranchMessage>) -> Vec<PromptMessage> {
    let mut messages: Vec<PromptMessage> = Vec::new();
    for BranchMessage { row, logs, .. } in branch {
        let calls = convert::calls(row.tool_calls.clone());
        let called = row.role == Role::Assistant && calls.iter().any(|call| call.run.is_some());
        if row.state == MessageState::Streaming || (row.text.is_empty() && !called) {
            continue;
        }
        let role = match row.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match messages.last_mut() {
            Some(last) if last.role == role && !called => {
                last.content.push_str("\n\n");
                last.content.push_str(&row.text);
                last.logs.clear();
                last.ids.push(row.id.clone());
            }
            Some(_) | None => messages.push(PromptMessage {
                role: role.into(),
                content: row.text,
                reasoning: row.reasoning,
                ids: vec![row.id.clone()],
                tool_calls: if called { calls.iter().map(call_value).collect() } else { Vec::new() },
                logs: logs
                    .into_iter()
                    .map(|log| Ids { fingerprint: log.fingerprint, ids: log.text_ids })
                    .collect(),
                ..PromptMessage::default()
            }),
        }
        if called {
            messages.extend(calls.into_iter().map(|call| result_message(Some(&row.id), call)));
        }
    }
    messages
}

/// As in OpenAI's messages.
pub(crate) fn call_value(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// What a call brought, as the model is told it; it is a part of the answer that called.
pub(crate) fn result_message(answer: Option<&str>, call: ToolCall) -> PromptMessage {
    let result = call.run.map(|run| run.result).filter(|result| !result.is_empty());
    PromptMessage {
        role: "tool".into(),
        content: result.unwrap_or_else(|| NOT_RUN.into()),
        tool_call_id: Some(call.id),
        name: Some(call.name),
        ids: answer.into_iter().map(Into::into).collect(),
        ..PromptMessage::default()
    }
}

/// The branch, and what its answer has already where that is a message too.
pub(crate) fn prompt(
    branch: Vec<BranchMessage>,
    system: Option<String>,
    partial: Option<PromptMessage>,
) -> Prompt {
    let mut messages = with_system(history(branch), system);
    messages.extend(partial);
    Prompt::Chat(messages)
}

/// With a conversation's own system prompt before it.
pub(crate) fn with_system(mut messages: Vec<PromptMessage>, prompt: Option<String>) -> Vec<PromptMessage> {
    if let Some(content) = prompt.filter(|prompt| !prompt.trim().is_empty()) {
        messages.insert(0, PromptMessage { role: "system".into(), content, ..PromptMessage::default() });
    }
    messages
}

/// With one more question at the end, as `history` would have it.
pub(crate) fn with_question(mut messages: Vec<PromptMessage>, text: &str) -> Vec<PromptMessage> {
    match messages.last_mut() {
        Some(last) if last.role == "user" => {
            last.content.push_str("\n\n");
            last.content.push_str(text);
            last.logs.clear();
        }
        Some(_) | None => {
            let (role, content) = ("user".into(), text.into());
            messages.push(PromptMessage { role, content, ..PromptMessage::default() });
        }
    }
    messages
}
