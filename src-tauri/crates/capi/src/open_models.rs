//! A model that the caller has loaded.

use std::path::Path;

use app::App;
use contract::protocol::{EmbedAs, Location};
use contract::{Error, Responder, Result};
use engine::TokenId;
use engine::tokenizer::{Special, Tokenizer};
use inference::model_file::not_here;
use inference::starter;
use weights::WeightFile;

/// A model of an application, by its library id or path, with its tokenizer.
pub struct OpenModel {
    pub app: App,
    pub id: String,
    tokenizer: Tokenizer,
}

impl OpenModel {
    /// Finds a model of this computer and reads its vocabulary: a file that is damaged or missing is refused here, not
    /// at the first answer.
    pub fn load(app: App, name: &str) -> Result<Self> {
        let reference = match app.responder(name)? {
            Responder::Local(reference) => reference,
            Responder::Remote(reference) => return Err(not_here(&reference.id)),
        };
        let tokenizer = match &reference.location {
            Location::BuiltIn => {
                Tokenizer::from_weights(&WeightFile::from_static(starter::ID, starter::bytes())?)?
            }
            Location::Path(path) => Tokenizer::from_path(Path::new(path))?,
            Location::Remote { name, .. } => return Err(not_here(name)),
        };
        Ok(Self { app, id: name.to_owned(), tokenizer })
    }

    /// The tokens of a text.
    pub fn tokenize(&self, text: &str, options: TokenOptions) -> Vec<TokenId> {
        let special = if options.parse_special { Special::Parse } else { Special::Plain };
        let ids = self.tokenizer.encode(text, special);
        if options.add_special { self.tokenizer.add_special(ids) } else { ids }
    }

    /// The text of tokens.
    ///
    /// Errors: `request.token_unknown`.
    pub fn detokenize(&self, ids: &[TokenId]) -> Result<String> {
        let n = self.tokenizer.n_vocab();
        match ids.iter().find(|id| **id as usize >= n) {
            None => Ok(self.tokenizer.decode(ids)),
            Some(id) => Err(Error::input(
                "request.token_unknown",
                format!("Token id {id} is outside the vocabulary of {n}."),
                "Use ids of this model's tokenizer.",
            )),
        }
    }

    /// The vector of a text.
    pub fn embed(&self, text: &str, kind: EmbedAs) -> Result<Vec<f32>> {
        let batch = self.app.embed(&self.id, kind, &[text.to_owned()])?;
        batch.vectors.into_iter().next().ok_or_else(|| Error::bug("a text has no vector"))
    }
}

/// How a text becomes tokens.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenOptions {
    /// Adds the tokens that begin and end a prompt.
    pub add_special: bool,
    /// Reads the texts of special tokens as those tokens.
    pub parse_special: bool,
}
