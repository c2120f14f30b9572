//! Counting a draft while it is written: exactly what sending it would cost.

use std::sync::mpsc;

use crate::App;
use crate::chat::{Responder, history, with_question, with_system};
use crate::error::{Error, Result};
use crate::types::{DraftArgs, DraftCount};
use crate::worker::protocol::{ChatOptions, CountRequest, WorkerRequest};

impl App {
    /// Tokens of the prompt that sending this draft would make, and how many the model holds.
    pub fn draft_count(&self, args: &DraftArgs) -> Result<DraftCount> {
        let conversation = args.conversation.as_deref();
        let model = match (&args.model, conversation) {
            (Some(model), _) => model.clone(),
            (None, Some(id)) => self.shared().state().session.conversation(id)?.model,
            (None, None) => self.default_model()?,
        };
        let reference = match self.responder(&model)? {
            Responder::Local(reference) => reference,
            Responder::Remote { name } => return Err(crate::chat::not_built(&name)),
        };
        let (load, chat) = (self.load_spec()?, self.chat_options(&model, ChatOptions::default())?);
        let default = self.default_strategy()?;
        let (branch, compression) = match conversation {
            Some(id) => {
                let state = self.shared().state();
                let branch = state.session.branch(id)?.messages;
                let compression = state.compression_of(id, &branch, default)?;
                (branch, compression)
            }
            None => (Vec::new(), None),
        };
        let options = conversation.map(|id| self.options_of(id)).transpose()?.unwrap_or_default();
        let mut messages = with_system(history(branch), options.system_prompt);
        // As sending does: a blank draft is none.
        if !args.text.trim().is_empty() {
            messages = with_question(messages, &args.text);
        }
        if messages.iter().all(|message| message.role == "system") {
            messages = with_question(messages, "");
        }
        let (send, answer) = mpsc::channel();
        let request = {
            let mut state = self.shared().state();
            state.n_asked += 1;
            let request = state.n_asked;
            state.counts.insert(request, send);
            request
        };
        let conversation = args.conversation.clone();
        let count = CountRequest { model: reference, load, conversation, messages, chat, compression };
        self.ask(WorkerRequest::Count { request, count: Box::new(count) })?;
        let counted = answer.recv().map_err(|_| Error::bug("the worker ended while it counted"))??;
        Ok(DraftCount {
            tokens: counted.tokens,
            context_limit: counted.context_limit,
            can_think_or_not: counted.can_think_or_not,
        })
    }
}
