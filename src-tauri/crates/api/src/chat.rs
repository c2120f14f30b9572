//! Conversations and their turns: list, open, rename, delete, send, retry, cancel, watch.

use std::collections::HashMap;

use session::{BranchMessage, MessageState, NewTurn, Role, Started};

use crate::convert;
use crate::error::{Error, Result};
use crate::feed::Watch;
use crate::summaries::Setup;
use crate::title;
use crate::types::{AppEvent, Conversation, ConversationSummary, SendArgs, TurnEvent, TurnStarted};
use crate::worker::protocol::{
    ChatOptions, GenerateRequest, Ids, ModelRef, Prompt, PromptMessage, WorkerRequest,
};
use crate::{App, Had, Place, State};

/// Longest message that is taken, in bytes: far beyond any context, small enough to keep.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Responder {
    /// A model on this machine.
    Local(ModelRef),
    /// A server that speaks the same protocol.
    Remote { name: String },
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
        let (fold, compression) = (state.fold_info(id, &branch.messages)?, state.own_strategy(id)?);
        let messages = branch.messages.into_iter().map(convert::message).collect();
        let options = convert::options(branch.conversation.options.clone());
        Ok(Conversation {
            summary: state.summary(branch.conversation)?,
            messages,
            options,
            fold,
            compression,
        })
    }

    pub fn conversation_rename(&self, id: &str, title: &str) -> Result<ConversationSummary> {
        let title = title::clean(title);
        if title.is_empty() {
            return Err(Error::input("chat.empty_title", "A title needs a letter.", "Write a name."));
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
        let title = title::of_message(&args.text);
        let conversation = args.conversation.as_deref();
        let new = NewTurn::Message { conversation, title: &title, text: &args.text };
        self.start(conversation, args.model.as_deref(), new, None)
    }

    /// The last question again: a new version of its answer.
    pub fn retry(&self, conversation: &str) -> Result<TurnStarted> {
        self.start(Some(conversation), None, NewTurn::Retry { conversation }, None)
    }

    /// `had`: what the answer has already.
    pub(crate) fn start(
        &self,
        conversation: Option<&str>,
        model: Option<&str>,
        new: NewTurn,
        had: Option<Had>,
    ) -> Result<TurnStarted> {
        let model = match (model, conversation) {
            (Some(model), _) => model.to_owned(),
            (None, Some(id)) => self.shared().state().session.conversation(id)?.model,
            (None, None) => self.default_model()?,
        };
        let reference = match self.responder(&model)? {
            Responder::Local(reference) => reference,
            Responder::Remote { name } => return Err(not_built(&name)),
        };
        let limits = self.limits()?;
        let options = conversation.map(|id| self.options_of(id)).transpose()?.unwrap_or_default();
        let (load, sampling) = (self.load_spec()?, self.sampling_with(&options)?);
        let max_tokens = limits.answer(self.max_tokens_with(&options)?);
        let chat = self.chat_options(&model, ChatOptions::default())?;
        let default = self.default_strategy()?;
        let mut state = self.shared().state();
        limits.admit(state.n_open(), said(&new))?;
        let started = state.session.start(new, &model)?;
        let mut row = state.session.conversation(&started.conversation)?;
        if row.model != model {
            row = state.session.set_model(&row.id, &model)?;
        }
        let branch = state.session.branch(&started.conversation)?.messages;
        let compression = state.compression_of(&started.conversation, &branch, default)?;
        let setup = Setup {
            conversation: started.conversation.clone(),
            model: reference.clone(),
            load: load.clone(),
            chat: chat.clone(),
            max_tokens,
            default,
        };
        state.setups.insert(started.turn.clone(), Box::new(setup));
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
            model: reference,
            load,
            conversation: Some(started.conversation.clone()),
            prompt: Prompt::Chat(with_system(history(branch), options.system_prompt)),
            sampling,
            max_tokens,
            stop: Vec::new(),
            ignore_eos: false,
            chat,
            speculation: self.speculation()?,
            resume: None,
            bounds: limits.bounds(),
            compression,
            had: words,
            keeping: Some(self.keeping()?),
        })))?;
        Ok(told(started))
    }

    /// Ends a turn before its next token; what was written stays. One that has ended is left alone.
    pub fn turn_cancel(&self, turn: &str) -> Result<()> {
        let summary = self.shared().state().summary_for(turn);
        if let Some(summary) = summary {
            self.ask(WorkerRequest::Cancel { turn: summary })?;
        }
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
                "Open its conversation: what was written is there.",
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
}

pub(crate) fn check_message(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        let remedy = "Write a message first.";
        return Err(Error::input("chat.empty_message", "There is nothing to send.", remedy));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        let message = format!("The message has {} bytes; the most is {MAX_MESSAGE_BYTES}.", text.len());
        return Err(Error::input("chat.message_too_long", message, "Send a part of it."));
    }
    Ok(())
}

/// What the user says with it.
fn said<'a>(new: &NewTurn<'a>) -> Option<&'a str> {
    match new {
        NewTurn::Message { text, .. } | NewTurn::Edit { text, .. } => Some(*text),
        NewTurn::Retry { .. } | NewTurn::Again { .. } | NewTurn::Continue { .. } => None,
    }
}

fn told(started: Started) -> TurnStarted {
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
        if row.state == MessageState::Streaming || row.text.is_empty() {
            continue;
        }
        let role = match row.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match messages.last_mut() {
            Some(last) if last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&row.text);
                last.logs.clear();
                last.ids.push(row.id);
            }
            Some(_) | None => messages.push(PromptMessage {
                role: role.into(),
                content: row.text,
                reasoning: row.reasoning,
                ids: vec![row.id],
                logs: logs
                    .into_iter()
                    .map(|log| Ids { fingerprint: log.fingerprint, ids: log.ids })
                    .collect(),
                ..PromptMessage::default()
            }),
        }
    }
    messages
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

pub(crate) fn not_built(name: &str) -> Error {
    Error::new(
        crate::ErrorKind::Usage,
        "remote.not_built",
        format!("Answers from other servers ({name}) are not built yet."),
        "Choose a model on this machine.",
    )
}
