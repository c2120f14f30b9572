//! Commands that read texts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use contract::protocol::EmbedAs;

#[derive(Debug, Args)]
pub struct TokenizeArgs {
    /// Library id, model, vocabulary-only GGUF, tokenizer.json or SentencePiece .model
    #[arg(long)]
    pub model: String,
    #[command(flatten)]
    pub input: TextArgs,
    /// Control tokens in the text become tokens
    #[arg(long)]
    pub parse_special: bool,
    /// With the BOS and EOS that the model wants
    #[arg(long)]
    pub add_special: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TextArgs {
    #[arg(long, allow_hyphen_values = true)]
    pub text: Option<String>,
    /// A text file; - is standard input
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
    /// Lines {"text":…}; - is standard input
    #[arg(long, value_name = "F")]
    pub jsonl: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DetokenizeArgs {
    #[arg(long)]
    pub model: String,
    /// Token ids, such as 1,2,3
    #[arg(long, value_name = "IDS")]
    pub ids: String,
}

#[derive(Debug, Args)]
pub struct EmbedArgs {
    /// Library id or path
    #[arg(long)]
    pub model: String,
    #[command(flatten)]
    pub input: TextArgs,
    /// What the texts are, for models that are told: what is looked for, or where it may be found
    #[arg(long = "as", value_enum, default_value_t)]
    pub kind: EmbedKind,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum EmbedKind {
    #[default]
    Text,
    Question,
    Passage,
}

impl From<EmbedKind> for EmbedAs {
    fn from(kind: EmbedKind) -> Self {
        match kind {
            EmbedKind::Text => Self::Text,
            EmbedKind::Question => Self::Question,
            EmbedKind::Passage => Self::Passage,
        }
    }
}
