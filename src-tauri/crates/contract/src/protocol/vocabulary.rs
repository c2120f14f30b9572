//! Questions that a model's vocabulary and chat template answer, without its weights.

use serde::{Deserialize, Serialize};

use super::{ChatOptions, ModelRef, PromptMessage};

/// A question about a model's vocabulary.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VocabularyRequest {
    pub model: ModelRef,
    pub query: VocabularyQuery,
}

/// What to do with the vocabulary.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VocabularyQuery {
    /// Texts and tokens, in order, to tokens.
    Tokenize {
        parts: Vec<PromptPart>,
        add: SpecialTokens,
        /// Recognizes control tokens in texts.
        parse_special: bool,
    },
    /// Tokens to their text.
    Detokenize { ids: Vec<u32> },
    /// Messages to the text that the chat template makes of them.
    Render { messages: Vec<PromptMessage>, chat: Box<ChatOptions> },
    /// The tokens of a prompt whose answer fills the gap between two texts.
    FillIn(Box<GapText>),
    /// Special tokens and the chat template.
    Describe,
}

/// Tokens that the model wants around a text, such as its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecialTokens {
    /// None of them.
    Without,
    /// Those before a text that is to be continued.
    Before,
    /// All of them.
    Around,
}

/// A part of a prompt: text, or tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    Text(String),
    Ids(Vec<u32>),
}

/// The text around a gap, and other files that it may refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapText {
    pub prefix: String,
    pub suffix: String,
    /// Names and texts.
    pub files: Vec<(String, String)>,
}

/// The answer to a question about a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VocabularyAnswer {
    Tokens(Vec<TokenPiece>),
    Text(String),
    Description(VocabularyDescription),
}

/// A token and its bytes, which may be a part of a character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenPiece {
    pub id: u32,
    pub bytes: Vec<u8>,
}

/// What a vocabulary and a template contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VocabularyDescription {
    pub n_vocab: u32,
    /// Texts of the tokens that begin and end a text. Empty: there is none.
    pub bos: String,
    pub eos: String,
    /// Source of the chat template in use.
    pub template: String,
    /// Tokens of context that the model was trained for.
    pub context_length: u32,
}
