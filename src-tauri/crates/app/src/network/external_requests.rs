//! What other programs may request: this machine's own models. Models of other servers are not
//! passed on: their keys belong to this user alone.

use crate::{App, GenerateArgs};
use contract::Responder;
use contract::protocol::{CountRequest, Prompt, TokenCounts, WorkerRequest};
use contract::types::ModelEntry;
use contract::{Error, Result};

/// A model of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    pub id: String,
    /// Tokens of context that an answer has, where it is known.
    pub context: Option<u32>,
}

impl App {
    pub fn models_served(&self) -> Result<Vec<ServedModel>> {
        let entries = self.models_list()?.into_iter().filter(|entry| entry.remote.is_none());
        Ok(entries.map(|entry| self.served(entry)).collect())
    }

    pub fn model_served(&self, id: &str) -> Result<ServedModel> {
        let entry = self.model_get(id)?;
        if entry.remote.is_some() {
            let message = format!("{id} is on another server. Its answers are not forwarded.");
            return Err(Error::not_found("model.unknown", message, "Connect to that server directly."));
        }
        Ok(self.served(entry))
    }

    /// The one that the user has chosen for vectors of texts.
    pub fn embedding_model_served(&self) -> Result<ServedModel> {
        match self.embedding_model()? {
            Some(model) => self.model_served(&model),
            None => Err(Error::not_found(
                "model.none_embeds",
                "No model was given, and no embedding model is selected.",
                "Add a model to the request, or choose one under \"Embedding model\" in the settings.",
            )),
        }
    }

    /// How many tokens the messages of a request would be, exactly.
    pub fn prompt_count(&self, model: Option<String>, args: GenerateArgs) -> Result<TokenCounts> {
        let model = self.model_served(&model.map_or_else(|| self.default_model(), Ok)?)?.id;
        let Responder::Local(reference) = self.responder(&model)? else {
            return Err(Error::bug("a model of this machine is on another"));
        };
        let Prompt::Chat(messages) = args.prompt else {
            let remedy = "Send messages as in a chat completion.";
            return Err(Error::input("request.no_messages", "The request contains no messages.", remedy));
        };
        let (load, chat) = (self.load_spec_of(&model)?, self.chat_options(&model, args.chat)?);
        self.counted(CountRequest {
            model: reference,
            load,
            conversation: None,
            messages,
            chat,
            compression: None,
            texts: Vec::new(),
        })
    }

    /// Has the answering backend count a prompt.
    pub(crate) fn counted(&self, count: CountRequest) -> Result<TokenCounts> {
        let backends = &self.ctx().backends;
        backends.replies.call(&backends.replies.counts, |request| {
            backends.ask(WorkerRequest::Count { request, count: Box::new(count) })
        })?
    }

    fn served(&self, entry: ModelEntry) -> ServedModel {
        let context = self.load_spec_of(&entry.id).ok().and_then(|load| load.context);
        let most = context.and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
        let context = Some(entry.context_length.min(most)).filter(|&n| n > 0);
        ServedModel { id: entry.id, context }
    }
}
