//! What other programs may ask of a model's vocabulary and template: tokens, texts, prompts.

use contract::protocol::{
    ChatOptions, GapText, Prompt, PromptPart, SpecialTokens, TokenPiece, VocabularyAnswer,
    VocabularyDescription, VocabularyQuery, VocabularyRequest, WorkerRequest,
};
use contract::{Error, Responder, Result};

use crate::{App, GenerateArgs};

impl App {
    /// The tokens of texts and tokens, in order. `model` is a library id.
    pub fn tokenize(
        &self,
        model: &str,
        parts: Vec<PromptPart>,
        add: SpecialTokens,
        parse_special: bool,
    ) -> Result<Vec<TokenPiece>> {
        let query = VocabularyQuery::Tokenize { parts, add, parse_special };
        self.tokens_of(model, query)
    }

    /// The text of tokens.
    pub fn detokenize(&self, model: &str, ids: Vec<u32>) -> Result<String> {
        self.text_of(model, VocabularyQuery::Detokenize { ids })
    }

    /// The text that the model's chat template makes of a request's messages.
    pub fn rendered_prompt(&self, model: &str, args: GenerateArgs) -> Result<String> {
        let Prompt::Chat(messages) = args.prompt else {
            return Err(Error::bug("only messages are rendered"));
        };
        let chat: Box<ChatOptions> = Box::new(self.chat_options(model, args.chat)?);
        self.text_of(model, VocabularyQuery::Render { messages, chat })
    }

    /// The prompt whose answer fills the gap between two texts.
    ///
    /// Errors: `model.no_fill_in`.
    pub fn fill_in_prompt(&self, model: &str, gap: GapText) -> Result<Vec<TokenPiece>> {
        self.tokens_of(model, VocabularyQuery::FillIn(Box::new(gap)))
    }

    /// Special tokens and the chat template of a model.
    pub fn vocabulary_description(&self, model: &str) -> Result<VocabularyDescription> {
        match self.ask_vocabulary(model, VocabularyQuery::Describe)? {
            VocabularyAnswer::Description(description) => Ok(description),
            VocabularyAnswer::Tokens(_) | VocabularyAnswer::Text(_) => Err(mismatch()),
        }
    }

    fn tokens_of(&self, model: &str, query: VocabularyQuery) -> Result<Vec<TokenPiece>> {
        match self.ask_vocabulary(model, query)? {
            VocabularyAnswer::Tokens(tokens) => Ok(tokens),
            VocabularyAnswer::Text(_) | VocabularyAnswer::Description(_) => Err(mismatch()),
        }
    }

    fn text_of(&self, model: &str, query: VocabularyQuery) -> Result<String> {
        match self.ask_vocabulary(model, query)? {
            VocabularyAnswer::Text(text) => Ok(text),
            VocabularyAnswer::Tokens(_) | VocabularyAnswer::Description(_) => Err(mismatch()),
        }
    }

    fn ask_vocabulary(&self, model: &str, query: VocabularyQuery) -> Result<VocabularyAnswer> {
        let Responder::Local(model) = self.responder(model)? else {
            return Err(Error::bug("a model of this machine is on another"));
        };
        let vocabulary = Box::new(VocabularyRequest { model, query });
        let backends = &self.ctx().backends;
        backends.replies.call(&backends.replies.vocabularies, |request| {
            backends.ask(WorkerRequest::Vocabulary { request, vocabulary })
        })?
    }
}

fn mismatch() -> Error {
    Error::bug("the worker answered another question")
}
