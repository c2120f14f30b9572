//! Arguments of commands that read texts or token ids.

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
    /// Parse control tokens in the text
    #[arg(long)]
    pub parse_special: bool,
    /// Add the BOS and EOS tokens the model expects
    #[arg(long)]
    pub add_special: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct TextArgs {
    #[arg(long, allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Text file; - reads standard input
    #[arg(long, value_name = "F")]
    pub file: Option<PathBuf>,
    /// File with one {"text":…} per line; - reads standard input
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
    /// Role of the texts, for models that distinguish queries from documents
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

#[derive(Debug, Args)]
pub struct RerankArgs {
    /// Library id or path of a reranker
    #[arg(long)]
    pub model: String,
    /// What the passages should answer
    #[arg(long, allow_hyphen_values = true)]
    pub query: String,
    /// File with one {"text":…} per line; - reads standard input
    #[arg(long, value_name = "F")]
    pub jsonl: PathBuf,
}
