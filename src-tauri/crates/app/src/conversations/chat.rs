//! Conversations and their turns: list, open, rename, delete, send, retry, cancel, watch.

use std::collections::HashMap;
use std::sync::Arc;

use contract::protocol::{GenerateRequest, Ids, Prompt, PromptMessage, WorkerRequest};
use contract::types::{
    AppEvent, AttachmentKind, CompactionStrategy, Conversation, ConversationOptions, ConversationSummary,
    Message, OneOffOptions, SendArgs, TurnEvent, TurnStarted,
};
use contract::{Error, Responder, Result};
use file_search::citations;
use file_search::images::with_thumbnails;
use platform::Watch;
use prompt::history::chat_prompt;
use prompt::title_text;
use session::{BranchMessage, NewTurn, Role, Session, StartedTurn};

use super::per_chat_options::constraint_of;
use super::projects::ConversationStart;
use crate::App;
use crate::context::stored_compactions::{compaction_info, compression_of, own_choice};
use crate::context::summary;
use crate::retrieval::check_sight;
use crate::retrieval::images::can_see;
use crate::turns::turn::{AnswerPlace, ContinuedFrom};
use crate::turns::turn_plan::NextAnswer;
use file_search::injected::with_files;
use records::conversations::{self, history_messages};

/// Longest message that is taken, in bytes: far beyond any context, small enough to keep.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The options that a conversation begins with.
#[derive(Default)]
struct PerChatOptions {
    options: ConversationOptions,
    json: Option<String>,
    compaction: Option<CompactionStrategy>,
    folder: Option<String>,
    /// Of the answer that begins now, and no other.
    one_off: OneOffOptions,
}

impl PerChatOptions {
    fn save(&self, session: &mut Session, conversation: &str) -> Result<()> {
        if let Some(json) = &self.json {
            session.set_options(conversation, Some(json))?;
        }
        if let Some(choice) = self.compaction {
            session.set_compaction_strategy(conversation, Some(choice.name()))?;
        }
        if let Some(folder) = &self.folder {
            session.move_to(conversation, Some(folder))?;
        }
        Ok(())
    }
}

impl App {
    /// Newest first, without the trash.
    pub fn conversations_list(&self) -> Result<Vec<ConversationSummary>> {
        let store = self.store();
        let active: HashMap<_, _> = store.active_turns()?.into_iter().collect();
        let rows = store.conversations()?.into_iter();
        let summaries = rows.map(|row| {
            let active_turn = active.get(&row.id).cloned();
            conversations::summary(row, active_turn)
        });
        Ok(summaries.collect())
    }

    /// With the messages of its active branch.
    pub fn conversation_get(&self, id: &str) -> Result<Conversation> {
        let store = self.store();
        let mut branch = store.branch(id)?;
        for message in &mut branch.messages {
            self.services().turns.show_unsaved(&mut message.row);
        }
        let (compaction, compression) =
            (compaction_info(&store, id, &branch.messages)?, own_choice(&store, id)?);
        let mut sources = citations::sources(&branch.messages);
        let mut messages = Vec::with_capacity(branch.messages.len());
        for message in branch.messages {
            let sources = sources.remove(&message.row.id).unwrap_or_default();
            let rows = message.attachments.files.clone();
            let mut message = Message { sources, ..conversations::message(message) };
            with_thumbnails(&store, &rows, &mut message.attachments)?;
            messages.push(message);
        }
        let n = messages.len();
        for (at, message) in messages.iter_mut().enumerate().filter(|(_, it)| !it.tool_calls.is_empty()) {
            let calls = std::mem::take(&mut message.tool_calls);
            message.tool_calls = self.services().rounds.calls_now(&message.id, calls, at + 1 == n);
        }
        let options = conversations::options(branch.conversation.options.clone());
        Ok(Conversation {
            summary: summary(&store, branch.conversation)?,
            messages,
            options,
            compaction,
            compression,
        })
    }

    pub fn conversation_rename(&self, id: &str, title: &str) -> Result<ConversationSummary> {
        let title = title_text::clean(title);
        if title.is_empty() {
            return Err(Error::input("chat.empty_title", "The title is empty.", "Enter a name."));
        }
        self.changed(|store| Ok(store.rename(id, &title)?))
    }

    pub fn conversation_set_model(&self, id: &str, model: &str) -> Result<ConversationSummary> {
        self.responder(model)?;
        self.changed(|store| Ok(store.set_model(id, model)?))
    }

    pub(crate) fn changed(
        &self,
        change: impl FnOnce(&mut Session) -> Result<session::ConversationRow>,
    ) -> Result<ConversationSummary> {
        let mut store = self.store();
        let row = change(&mut store)?;
        let conversation = summary(&store, row)?;
        drop(store);
        Ok(self.told(conversation))
    }

    /// Saves the message, then has it answered. The turn is followed by `watch_turn`. If the database shows damage meanwhile,
    /// it has been repaired when the error arrives, and what is left to do is done in the new one.
    pub fn send(&self, args: SendArgs) -> Result<TurnStarted> {
        let mut stored = None;
        match self.send_once(args.clone(), &mut stored) {
            Err(error) if error.code() == "session.damaged" => self.send_once(args, &mut stored),
            sent => sent,
        }
    }

    fn send_once(&self, mut args: SendArgs, stored: &mut Option<StartedTurn>) -> Result<TurnStarted> {
        let mut files = self.pending(&args.attachments)?;
        let image = files.iter().find(|file| file.kind == AttachmentKind::Image || !file.pages.is_empty());
        check_message(if image.is_some() && args.text.trim().is_empty() { "?" } else { &args.text })?;
        self.guard_text(&args.text)?;
        let folder = args.folder.take().filter(|_| args.conversation.is_none());
        let asked = ConversationStart {
            model: args.model.take(),
            options: args.options.take(),
            compression: args.compression.take(),
            files: Vec::new(),
        };
        let start = self.start_in(folder.as_deref(), asked)?;
        (args.model, args.options, args.compression) = (start.model, start.options, start.compression);
        if image.is_some() {
            let model = self.model_of(args.model.as_deref(), args.conversation.as_deref())?;
            check_sight(&model, || self.model_sees(&model), &files)?;
        }
        let title = match image.filter(|_| args.text.trim().is_empty()) {
            Some(image) => title_text::of_message(&image.name),
            None => title_text::of_message(&args.text),
        };
        files.splice(..0, start.files);
        let planned = self.plan_message(&args, &files)?;
        self.keep_images(&files)?;
        let conversation = args.conversation.as_deref();
        let new = NewTurn::Message {
            conversation,
            title: &title,
            text: &args.text,
            attachments: Some(&planned.given),
        };
        let own = match conversation {
            Some(_) => None,
            None => Some(self.with_default_instructions(args.options.unwrap_or_default())?),
        };
        let json = own.as_ref().map(|own| self.options_json(own)).transpose()?.flatten();
        let compaction = args.compression.filter(|_| conversation.is_none());
        let options = own.unwrap_or_default();
        let own = PerChatOptions { options, json, compaction, folder, ..Default::default() };
        let started = self.start_with(conversation, args.model.as_deref(), (new, stored), None, own)?;
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
            (None, Some(id)) => Ok(self.store().conversation(id)?.model),
            (None, None) => self.default_model(),
        }
    }

    /// `continued`: what the answer has already.
    pub(crate) fn start(
        &self,
        conversation: Option<&str>,
        model: Option<&str>,
        new: NewTurn,
        continued: Option<ContinuedFrom>,
    ) -> Result<TurnStarted> {
        self.start_with(conversation, model, (new, &mut None), continued, PerChatOptions::default())
    }

    /// `once`: what this answer alone is asked for otherwise.
    pub(crate) fn start_one_off(
        &self,
        conversation: &str,
        model: Option<&str>,
        new: NewTurn,
        once: OneOffOptions,
    ) -> Result<TurnStarted> {
        self.start_with(
            Some(conversation),
            model,
            (new, &mut None),
            None,
            PerChatOptions { one_off: once, ..PerChatOptions::default() },
        )
    }

    /// `own`: the attachments that the conversation brings if it begins with this message. `stored`: the turn, once it is.
    fn start_with(
        &self,
        conversation: Option<&str>,
        model: Option<&str>,
        (new, stored): (NewTurn, &mut Option<StartedTurn>),
        continued: Option<ContinuedFrom>,
        own: PerChatOptions,
    ) -> Result<TurnStarted> {
        let model = self.model_of(model, conversation)?;
        let responder = self.current_responder(&model)?;
        let limits = self.limits()?;
        let options =
            conversation.map(|id| self.options_of(id)).transpose()?.unwrap_or_else(|| own.options.clone());
        let partial = continued.as_ref().and_then(|continued| continued.message(&responder));
        let is_guided = self.is_guided(&responder)?;
        let next = self.next_one_off(&model, responder, options, own.one_off.clone())?;
        // What is called there is overtaken.
        conversation.into_iter().for_each(|id| self.services().stop_rounds_in(id));
        let services = self.services();
        let mut store = self.store();
        limits.admit(services.turns.n_open(), user_text(&new))?;
        let started = match stored {
            Some(before) => before.clone(),
            None => stored.insert(store.start(new, &model)?).clone(),
        };
        own.save(&mut store, &started.conversation)?;
        let mut row = store.conversation(&started.conversation)?;
        if row.model != model {
            row = store.set_model(&row.id, &model)?;
        }
        let branch = store.branch(&started.conversation)?.messages;
        let compression = compression_of(&store, &started.conversation, &branch, next.default)?;
        // An answer from the guide has neither tools nor a title to be written.
        if !is_guided {
            services.turns.set_plan(&started.turn, next.plan(&started.conversation));
        }
        let question = last_question(&branch);
        let sees = || can_see(&next.request.model, &next.request.load);
        let branch = with_files(&store, branch, &sees)?;
        let give_way = [services.summaries.turns_ahead(), services.titles.turns()].concat();
        let place = AnswerPlace::of(&started);
        let had = continued.as_ref().map(|it| it.text.clone()).unwrap_or_default();
        let words = continued.as_ref().map(ContinuedFrom::ids);
        let summary = summary(&store, row)?;
        services.turns.add(started.turn.clone(), Some(place), continued, self.origin(&model));
        drop(store);
        self.ctx().events.publish(AppEvent::ConversationChanged { conversation: summary });
        for turn in give_way {
            self.ask(WorkerRequest::Cancel { turn })?;
        }
        if is_guided {
            self.answer_from_guide(&started.turn, &question, &had)?;
            return Ok(turn_started(started));
        }
        self.ask(WorkerRequest::Generate(Box::new(GenerateRequest {
            turn: started.turn.clone(),
            conversation: Some(started.conversation.clone()),
            prompt: chat_prompt(history_messages(branch), next.system, partial),
            compression,
            had: words,
            ..next.request
        })))?;
        Ok(turn_started(started))
    }

    /// The options for this model's next answer in a conversation with these options.
    pub(crate) fn next(
        &self,
        model: &str,
        responder: Responder,
        options: &ConversationOptions,
    ) -> Result<NextAnswer> {
        let limits = self.limits()?;
        let offer = self.tools_offer(Some(options))?;
        let request = GenerateRequest {
            turn: String::new(),
            load: self.load_spec_for(&responder)?,
            model: responder.reference(),
            conversation: None,
            prompt: Prompt::Chat(Vec::new()),
            sampling: self.sampling_with(options)?,
            max_tokens: limits.answer(self.max_tokens_with(options)?),
            stop: options.stop.clone().unwrap_or_default(),
            ignore_eos: false,
            chat: self.chat_options_with(model, options, offer.definitions())?,
            constraint: constraint_of(options)?,
            logprobs: None,
            speculation: self.speculation()?,
            resume: None,
            bounds: limits.bounds(),
            compression: None,
            had: None,
            keeping: Some(self.keeping()?),
            profile: self.is_profiling(),
        };
        let (system, default) = (self.system_of(options)?, self.default_strategy()?);
        Ok(NextAnswer { offer: Arc::new(offer), request, system, default, round: 0, one_off: None })
    }

    /// Ends a turn before its next token; what was written stays. One that has ended is left alone.
    pub fn turn_cancel(&self, turn: &str) -> Result<()> {
        let summary = self.services().summaries.awaited_by(turn);
        if let Some(summary) = summary {
            self.ask(WorkerRequest::Cancel { turn: summary })?;
        }
        self.services().stop_round_of_turn(turn);
        self.ask(WorkerRequest::Cancel { turn: turn.into() })
    }

    /// A turn's events after sequence number `after_seq`: those that were, then those that come. A
    /// watcher that leaves cancels nothing.
    pub fn watch_turn(&self, turn: &str, after_seq: u64) -> Result<Watch<TurnEvent>> {
        let turn = self.services().turns.get(turn).ok_or_else(|| {
            Error::not_found(
                "turn.unknown",
                "This answer is not being written here.",
                "Open its chat to see what was written.",
            )
        })?;
        Ok(Watch::new(&turn.feed, after_seq))
    }
}

impl ContinuedFrom {
    /// For the worker.
    fn ids(&self) -> Ids {
        Ids { fingerprint: self.fingerprint.clone(), ids: self.ids.clone() }
    }

    /// For a server, which doesn't know token ids: the answer so far is the prompt's last message.
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

/// The user's own words in it.
fn user_text<'a>(new: &NewTurn<'a>) -> Option<&'a str> {
    match new {
        NewTurn::Message { text, .. } | NewTurn::Edit { text, .. } => Some(*text),
        NewTurn::Retry { .. }
        | NewTurn::Regenerate { .. }
        | NewTurn::Continue { .. }
        | NewTurn::ToolResults { .. } => None,
    }
}

/// The message that a branch ends with an answer to.
fn last_question(branch: &[BranchMessage]) -> String {
    let question = branch.iter().rev().find(|message| message.row.role == Role::User);
    question.map(|message| message.row.text.clone()).unwrap_or_default()
}

fn turn_started(started: StartedTurn) -> TurnStarted {
    TurnStarted {
        turn: started.turn,
        conversation: started.conversation,
        user_message: started.user_message,
        assistant_message: started.assistant_message,
    }
}
