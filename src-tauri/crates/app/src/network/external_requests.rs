//! What other programs may request: this machine's own models. Models of other servers are not
//! passed on: their keys belong to this user alone.

use crate::settings::TypedSettings;
use crate::{App, GenerateArgs};
use contract::Responder;
use contract::protocol::{Backend, CountRequest, Prompt, TokenCounts, WorkerRequest};
use contract::types::ModelEntry;
use contract::{Error, Result};

/// What Ollama's clients add to the name of a model.
const LATEST_TAG: &str = ":latest";

/// A model of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    pub id: String,
    /// Tokens of context that an answer has, where it is known.
    pub context: Option<u32>,
    /// Its file; None: the starter model, which is in the program.
    pub path: Option<String>,
}

impl App {
    /// Models that answer or embed; assistants only draft for them.
    pub fn models_served(&self) -> Result<Vec<ServedModel>> {
        let is_served = |entry: &ModelEntry| entry.remote.is_none() && !entry.only_drafts;
        let entries = self.models_list()?.into_iter().filter(is_served);
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

    /// The model that a request names, with or without Ollama's tag for the newest version.
    ///
    /// Errors: 404 with the names of all models.
    pub fn model_named(&self, name: &str) -> Result<ServedModel> {
        let plain = name.strip_suffix(LATEST_TAG);
        let found =
            self.model_served(name).or_else(|error| plain.map_or(Err(error), |it| self.model_served(it)));
        found.map_err(|error| match error.code() {
            "model.unknown" => self.no_such_model(name),
            _ => error,
        })
    }

    /// The model that answers a request. `name`: what the request says; None: the default model. An unknown name is
    /// answered by the default model where the setting `api_model_alias` says so.
    pub fn model_for_request(&self, name: Option<&str>) -> Result<ServedModel> {
        let default = || self.model_served(&self.default_model()?);
        self.named_or(name, default)
    }

    /// As `model_for_request`, with the embedding model of the settings as the default.
    pub fn embedding_model_for_request(&self, name: Option<&str>) -> Result<ServedModel> {
        self.named_or(name, || self.embedding_model_served())
    }

    fn named_or(
        &self,
        name: Option<&str>,
        default: impl FnOnce() -> Result<ServedModel>,
    ) -> Result<ServedModel> {
        let Some(name) = name else { return default() };
        match self.model_named(name) {
            Err(error) if error.code() == "model.unknown" && self.ctx().settings.api_model_alias()? => {
                default()
            }
            outcome => outcome,
        }
    }

    fn no_such_model(&self, name: &str) -> Error {
        let ids: Vec<String> = self.models_served().unwrap_or_default().into_iter().map(|it| it.id).collect();
        let message = format!("There is no model \"{name}\".");
        Error::not_found("model.unknown", message, format!("Available models: {}.", ids.join(", ")))
    }

    /// The one that the user has chosen for vectors of texts.
    pub fn embedding_model_served(&self) -> Result<ServedModel> {
        match self.embedding_model()? {
            Some(model) => self.model_served(&model),
            None => Err(Error::not_found(
                "model.none_embeds",
                "No model that computes embeddings was named, and none is selected.",
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

    /// What computes a model: `gpu` where a GPU holds layers of it, else `cpu` or `scalar`.
    pub fn backend_name(&self, entry: &ModelEntry) -> Result<&'static str> {
        let card = entry.fit.as_ref().and_then(|fit| fit.card.as_ref());
        let is_on_gpu = card.is_some_and(|card| card.layers_asked != Some(0));
        Ok(match self.load_spec_of(&entry.id)?.backend {
            Backend::Scalar => "scalar",
            Backend::Cpu => "cpu",
            Backend::Gpu => "gpu",
            Backend::Auto if is_on_gpu => "gpu",
            Backend::Auto => "cpu",
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
        ServedModel { id: entry.id, context, path: entry.path }
    }
}
