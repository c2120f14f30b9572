//! Sessions: chats that are saved with every message, and their checkpoints.

use std::sync::{Mutex, MutexGuard, PoisonError};

use app::App;
use contract::types::{CheckpointArgs, ConversationOptions, ExportFormat, SendArgs};
use contract::{Error, ErrorKind, Result};

use crate::generation::{AnswerOptions, CompleteAnswer, follow};
use crate::open_models::OpenModel;

/// A chat with a model. It is stored with its first message.
pub struct ChatSession {
    app: App,
    model: String,
    system_prompt: Option<String>,
    conversation: Mutex<Option<String>>,
}

impl ChatSession {
    /// A session without messages.
    pub fn new(model: &OpenModel, system_prompt: Option<String>) -> Self {
        Self::of(model, system_prompt, None)
    }

    /// A session that was stored earlier, by its id.
    pub fn open(model: &OpenModel, id: &str) -> Result<Self> {
        let id = model.app.conversation_get(id)?.summary.id;
        Ok(Self::of(model, None, Some(id)))
    }

    /// The session in a file that `save` wrote.
    pub fn restore(model: &OpenModel, path: &str) -> Result<Self> {
        let summary = model.app.import_file(path)?;
        match (summary.conversations.first(), summary.failures.into_iter().next()) {
            (Some(conversation), _) => Ok(Self::of(model, None, Some(conversation.id.clone()))),
            (None, Some(error)) => Err(Error::from(error)),
            (None, None) => Err(Error::input(
                "capi.no_session",
                format!("{path} holds no session."),
                "Name a file that inglenook_session_save wrote.",
            )),
        }
    }

    fn of(model: &OpenModel, system_prompt: Option<String>, conversation: Option<String>) -> Self {
        Self {
            app: model.app.clone(),
            model: model.id.clone(),
            system_prompt,
            conversation: Mutex::new(conversation),
        }
    }

    fn conversation(&self) -> MutexGuard<'_, Option<String>> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id under which it is stored.
    ///
    /// Errors: `capi.session_empty`.
    pub fn id(&self) -> Result<String> {
        self.conversation().clone().ok_or_else(|| {
            Error::new(
                ErrorKind::Conflict,
                "capi.session_empty",
                "The session has no messages, so nothing of it is stored.",
                "Send a message first.",
            )
        })
    }

    /// Sends a message and waits for its answer. `pass_on` gets each piece of text; false stops the answer.
    pub fn send(
        &self,
        text: String,
        options: AnswerOptions,
        pass_on: &mut dyn FnMut(&str) -> bool,
    ) -> Result<CompleteAnswer> {
        let mut conversation = self.conversation();
        let options = self.chat_options(conversation.as_deref(), options)?;
        if let Some(id) = conversation.as_deref() {
            self.app.conversation_set_options(id, &options)?;
        }
        let started = self.app.send(SendArgs {
            conversation: conversation.clone(),
            text,
            model: Some(self.model.clone()),
            options: Some(options),
            ..SendArgs::default()
        })?;
        *conversation = Some(started.conversation);
        drop(conversation);
        follow(&self.app, &started.turn, pass_on)
    }

    /// The session's own options, with those of the caller over them.
    fn chat_options(
        &self,
        conversation: Option<&str>,
        options: AnswerOptions,
    ) -> Result<ConversationOptions> {
        let own = match conversation {
            Some(id) => self.app.conversation_get(id)?.options,
            None => ConversationOptions {
                // An empty one: the default instructions are for the user's own chats.
                system_prompt: Some(self.system_prompt.clone().unwrap_or_default()),
                ..ConversationOptions::default()
            },
        };
        let AnswerOptions { max_tokens, sampling } = options;
        Ok(ConversationOptions {
            temperature: sampling.temperature.or(own.temperature),
            top_k: sampling.top_k.or(own.top_k),
            top_p: sampling.top_p.or(own.top_p),
            min_p: sampling.min_p.or(own.min_p),
            repeat_penalty: sampling.repeat_penalty.or(own.repeat_penalty),
            seed: sampling.seed.or(own.seed),
            max_tokens: max_tokens.or(own.max_tokens),
            // No user is there to permit a tool call.
            tools: Some(Vec::new()),
            ..own
        })
    }

    /// Writes the whole session to a file.
    pub fn save(&self, path: &str) -> Result<()> {
        self.app.export_to(Some(&self.id()?), ExportFormat::Json, path)?;
        Ok(())
    }

    /// Names the end of the session, and keeps its computed context. Returns the checkpoint's id.
    pub fn save_checkpoint(&self, name: &str) -> Result<String> {
        let args = CheckpointArgs { conversation: self.id()?, name: name.to_owned() };
        Ok(self.app.checkpoint_save(&args)?.id)
    }

    /// Goes back to a checkpoint of this session.
    pub fn restore_checkpoint(&self, id: &str) -> Result<()> {
        let own = self.id()?;
        let of_this = self.app.checkpoints_list(Some(&own))?.iter().any(|checkpoint| checkpoint.id == id);
        if !of_this {
            return Err(Error::not_found(
                "capi.checkpoint",
                format!("The session has no checkpoint {id}."),
                "Pass an id that inglenook_checkpoint_save returned for this session.",
            ));
        }
        self.app.checkpoint_restore(id)?;
        Ok(())
    }
}
