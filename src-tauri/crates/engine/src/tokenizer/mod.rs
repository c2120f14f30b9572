//! Text to token ids and back.
//!
//! Built from GGUF metadata, a `tokenizer.json` or a SentencePiece `.model`. Control tokens are recognised only
//! where that is asked for, so that what a person types can never steer the model.

use std::ops::Range;
use std::path::Path;

use weights::WeightFile;

use crate::error::Result;
use crate::template::Rendered;

mod stream;

pub use stream::DetokenizeStream;

pub type TokenId = u32;

/// Whether the text of a control token (`<|im_end|>`) becomes that token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// It stays text: for everything a person, a file or a tool wrote.
    Plain,
    /// It becomes the token: for the markup of a chat template.
    Parse,
}

/// Ids that a stretch of rendered text is known to have come from: reused, never made again.
#[derive(Debug, Clone, Copy)]
pub struct KnownIds<'a> {
    /// Bytes of the rendered text.
    pub range: &'a Range<usize>,
    pub ids: &'a [TokenId],
}

/// A vocabulary and its rules.
#[derive(Debug)]
pub struct Tokenizer {}

impl Tokenizer {
    /// The tokenizer that a model file carries: in its GGUF metadata, or as `tokenizer.json` beside it.
    pub fn from_weights(file: &WeightFile) -> Result<Self> {
        unimplemented!()
    }

    /// From a GGUF file (a vocabulary alone will do), a `tokenizer.json` or a SentencePiece `.model`.
    pub fn from_path(path: &Path) -> Result<Self> {
        unimplemented!()
    }

    /// Without BOS and EOS; see [`Tokenizer::add_special`].
    pub fn encode(&self, text: &str, special: Special) -> Vec<TokenId> {
        unimplemented!()
    }

    /// A rendered prompt: control tokens are recognised outside message contents only, `known` stretches keep
    /// their ids, and everything else is split as if the whole text had been encoded at once.
    pub fn encode_rendered(&self, rendered: &Rendered, known: &[KnownIds<'_>]) -> Vec<TokenId> {
        unimplemented!()
    }

    /// The text of `ids`, control tokens written out. Bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[TokenId]) -> String {
        unimplemented!()
    }

    /// Decodes a reply token by token; control tokens are left out.
    pub fn stream(&self) -> DetokenizeStream {
        unimplemented!()
    }

    pub fn bos(&self) -> Option<TokenId> {
        unimplemented!()
    }

    pub fn eos(&self) -> Option<TokenId> {
        unimplemented!()
    }

    /// Whether `id` ends a reply (end of sequence, end of turn and their like).
    pub fn is_eog(&self, id: TokenId) -> bool {
        unimplemented!()
    }

    /// `ids` with the BOS and EOS that this model wants around a text.
    pub fn add_special(&self, ids: Vec<TokenId>) -> Vec<TokenId> {
        unimplemented!()
    }

    /// The token's text as the vocabulary has it; None for an id that does not exist.
    pub fn token_text(&self, id: TokenId) -> Option<&str> {
        unimplemented!()
    }

    pub fn n_vocab(&self) -> usize {
        unimplemented!()
    }
}
