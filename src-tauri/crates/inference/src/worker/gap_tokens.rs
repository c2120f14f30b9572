//! The tokens of models that fill gaps: prefix, suffix and middle, and those around other files.

use engine::TokenId;
use engine::tokenizer::Tokenizer;

/// How a file names the token of one place around a gap. Vocabularies without such keys are searched for the texts.
struct GapRole {
    /// Keys in the metadata, the older name second.
    keys: [&'static str; 2],
    texts: &'static [&'static str],
}

const PREFIX: GapRole = GapRole {
    keys: ["tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"],
    texts: &["<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "▁<PRE>", "<｜fim▁begin｜>"],
};
const SUFFIX: GapRole = GapRole {
    keys: ["tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"],
    texts: &["<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<SUF>", "▁<SUF>", "<｜fim▁hole｜>"],
};
const MIDDLE: GapRole = GapRole {
    keys: ["tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"],
    texts: &["<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<MID>", "▁<MID>", "<｜fim▁end｜>"],
};
const REPOSITORY: GapRole = GapRole {
    keys: ["tokenizer.ggml.fim_rep_token_id", ""],
    texts: &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"],
};
const FILE: GapRole =
    GapRole { keys: ["tokenizer.ggml.fim_sep_token_id", ""], texts: &["<|file_sep|>", "<file_sep>"] };

/// Tokens of a model that fills gaps. None: it has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct GapTokens {
    pub prefix: Option<TokenId>,
    pub suffix: Option<TokenId>,
    pub middle: Option<TokenId>,
    pub repository: Option<TokenId>,
    pub file: Option<TokenId>,
}

impl GapTokens {
    /// `key` reads a number of the file's metadata.
    pub fn find(tokenizer: &Tokenizer, key: impl Fn(&str) -> Option<u32>) -> Self {
        let find = |role: &GapRole| {
            let by_key = role.keys.iter().filter(|name| !name.is_empty()).find_map(|name| key(name));
            let by_key = by_key.filter(|id| (*id as usize) < tokenizer.n_vocab());
            by_key.or_else(|| role.texts.iter().find_map(|text| tokenizer.markup_token(text)))
        };
        Self {
            prefix: find(&PREFIX),
            suffix: find(&SUFFIX),
            middle: find(&MIDDLE),
            repository: find(&REPOSITORY),
            file: find(&FILE),
        }
    }
}
