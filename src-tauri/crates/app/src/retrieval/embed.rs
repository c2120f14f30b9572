//! Text embeddings and scores of passages by models of the library: for callers, and for finding passages.

use crate::App;
use crate::settings::TypedSettings;
use contract::Responder;
use contract::protocol::{
    EmbedAs, EmbedInput, EmbedRequest, EmbeddingBatch, PassageScores, RankRequest, WorkerRequest,
};
use contract::types::ModelEntry;
use contract::{Error, Result};
use inference::model_file::not_here;

/// Texts embedded per request, so that other callers get a turn in between.
const AT_ONCE: usize = 8;

/// What a model is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Answer,
    /// Drafting for the model that answers.
    Draft,
    Embed,
}

impl Purpose {
    /// Of the model that a setting names. None: it names none.
    pub fn of(setting: &str) -> Option<Self> {
        match setting {
            "model" => Some(Self::Answer),
            "draft_model" => Some(Self::Draft),
            "embedding_model" => Some(Self::Embed),
            _ => None,
        }
    }

    pub fn suits(self, model: &ModelEntry) -> bool {
        match self {
            Self::Answer => !model.embeds && !model.only_drafts,
            Self::Draft => !model.embeds,
            Self::Embed => model.embeds,
        }
    }
}

impl App {
    /// Errors: there is no such model, `model.embeds_only`, `model.drafts_only`, `model.no_embeddings`.
    pub(crate) fn check_purpose(&self, model: &str, purpose: Purpose) -> Result<()> {
        self.responder(model)?;
        // what is no entry says so itself, once it is loaded
        let entry = self.models_list()?.into_iter().find(|entry| entry.id == model);
        let Some(entry) = entry.filter(|entry| !purpose.suits(entry)) else { return Ok(()) };
        let ModelEntry { name, only_drafts, .. } = entry;
        Err(match purpose {
            Purpose::Answer if only_drafts => Error::input(
                "model.drafts_only",
                format!("{name} is an assistant: it drafts for another model but can't chat."),
                "Choose another model to chat with. You can use this one as the \"Draft model\" in the settings.",
            ),
            Purpose::Answer | Purpose::Draft => Error::input(
                "model.embeds_only",
                format!("{name} is an embedding model: it finds passages in files but can't chat."),
                "Choose another model to chat with. You can use this one as the \"Embedding model\" in the settings.",
            ),
            Purpose::Embed => Error::input(
                "model.no_embeddings",
                format!("{name} is no embedding model and can't compute embeddings."),
                "Choose an embedding model, such as Qwen3-Embedding or EmbeddingGemma.",
            ),
        })
    }

    /// A vector of length 1 for each text. `model` is a library id or a path.
    ///
    /// Errors: `model.no_embeddings`, a model that can't be loaded, a text that is empty or too long.
    pub fn embed(&self, model: &str, kind: EmbedAs, texts: &[String]) -> Result<EmbeddingBatch> {
        let inputs: Vec<EmbedInput> = texts.iter().cloned().map(EmbedInput::Text).collect();
        self.embed_inputs(model, kind, &inputs)
    }

    /// A vector of length 1 for each text or list of tokens. `model` is a library id or a path.
    ///
    /// Errors: as `embed`, and `request.token_unknown`.
    pub fn embed_inputs(&self, model: &str, kind: EmbedAs, inputs: &[EmbedInput]) -> Result<EmbeddingBatch> {
        let model = match self.responder(model)? {
            Responder::Local(reference) => reference,
            Responder::Remote(reference) => return Err(not_here(&reference.id)),
        };
        let load = self.load_spec_of(&model.id)?;
        let mut all = EmbeddingBatch::default();
        for texts in inputs.chunks(AT_ONCE) {
            let texts = texts.to_vec();
            let (model, load) = (model.clone(), load.clone());
            let part = self.ask_embedding(EmbedRequest { model, load, kind, texts })?;
            all.tokens = all.tokens.saturating_add(part.tokens);
            all.vectors.extend(part.vectors);
            part.notices.into_iter().for_each(|error| self.ctx().events.notice(error.info));
        }
        Ok(all)
    }

    /// How well each passage answers a query, in the order of the passages. `model` is a library id or a path.
    ///
    /// Errors: `model.no_ranking`, a model that can't be loaded, a query that is too long.
    pub fn rank(&self, model: &str, query: &str, passages: &[String]) -> Result<PassageScores> {
        let model = match self.responder(model)? {
            Responder::Local(reference) => reference,
            Responder::Remote(reference) => return Err(not_here(&reference.id)),
        };
        let load = self.load_spec_of(&model.id)?;
        let mut all = PassageScores::default();
        for (part, passages) in (0..).zip(passages.chunks(AT_ONCE)) {
            let (model, load, query) = (model.clone(), load.clone(), query.to_owned());
            let request = RankRequest { model, load, query, passages: passages.to_vec() };
            let backends = &self.ctx().backends;
            let scores = backends.replies.call(&backends.replies.passage_scores, |id| {
                backends.ask(WorkerRequest::Rank { request: id, rank: Box::new(request) })
            })??;
            all.scores.extend(scores.scores);
            all.tokens = all.tokens.saturating_add(scores.tokens);
            all.cut.extend(scores.cut.iter().map(|index| index + part * AT_ONCE as u32));
            scores.notices.into_iter().for_each(|error| self.ctx().events.notice(error.info));
        }
        Ok(all)
    }

    fn ask_embedding(&self, embed: EmbedRequest) -> Result<EmbeddingBatch> {
        let backends = &self.ctx().backends;
        backends.replies.call(&backends.replies.embeddings, |request| {
            backends.ask(WorkerRequest::Embed { request, embed: Box::new(embed) })
        })?
    }

    /// The library id of the model that passages are found with. None: by their words alone.
    pub(crate) fn embedding_model(&self) -> Result<Option<String>> {
        Ok(Some(self.ctx().settings.embedding_model()?).filter(|id| !id.is_empty()))
    }
}
