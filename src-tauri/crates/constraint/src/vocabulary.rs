//! A model's tokens as bytes, in the form that llguidance reads.

use std::sync::Arc;

use llguidance::toktrie::{ApproximateTokEnv, INVALID_TOKEN, TokEnv, TokRxInfo, TokTrie};

/// What a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenText {
    /// Bytes of text; may be a part of a character.
    Bytes(Vec<u8>),
    /// Markup that is no text, by its name. No text contains it.
    Markup(String),
    /// Never generated.
    Unused,
}

/// The tokens of a model.
#[derive(Clone)]
pub struct Vocabulary {
    pub(crate) env: TokEnv,
    /// Tokens that end a reply.
    pub(crate) ends: Vec<u32>,
}

impl Vocabulary {
    /// Tokens in the order of their ids; `ends` are the ids that end a reply.
    pub fn new(tokens: Vec<TokenText>, ends: &[u32]) -> Self {
        let n = u32::try_from(tokens.len()).expect("a vocabulary has fewer tokens than its ids can name");
        let words: Vec<Vec<u8>> = tokens.into_iter().map(word).collect();
        let ends: Vec<u32> = ends.iter().copied().filter(|end| *end < n).collect();
        let trie = TokTrie::from(&TokRxInfo::new(n, ends.first().copied().unwrap_or(INVALID_TOKEN)), &words);
        let trie = if ends.is_empty() { trie } else { trie.with_eos_tokens(&ends) };
        Self { env: Arc::new(ApproximateTokEnv::new(trie)), ends }
    }

    /// One token for each byte, and one more that ends the text: for checking texts without a model.
    pub fn of_bytes() -> Self {
        let mut tokens: Vec<TokenText> = (0..=u8::MAX).map(|byte| TokenText::Bytes(vec![byte])).collect();
        tokens.push(TokenText::Markup("<end>".into()));
        Self::new(tokens, &[256])
    }

    /// Returns the bytes of a token; of markup nothing.
    pub(crate) fn bytes(&self, token: u32) -> &[u8] {
        let trie = self.env.tok_trie();
        if token as usize >= trie.vocab_size() || trie.is_special_token(token) {
            return &[];
        }
        trie.token(token)
    }
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary")
            .field("n_tokens", &self.env.tok_trie().vocab_size())
            .finish_non_exhaustive()
    }
}

/// The bytes of a token as the grammar sees it. Markup begins with a byte that no UTF-8 text contains.
fn word(token: TokenText) -> Vec<u8> {
    match token {
        TokenText::Bytes(bytes) => bytes,
        TokenText::Markup(name) => {
            let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
            word.extend(name.into_bytes());
            word
        }
        TokenText::Unused => Vec::new(),
    }
}
