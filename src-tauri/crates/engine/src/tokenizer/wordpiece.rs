//! WordPiece: each word is cut from its beginning into the longest possible tokens.
//!
//! A token that begins a word starts with `▁`, as in GGUF files.

use super::TokenId;
use super::vocab::Vocab;

/// Prefix of a token that begins a word.
pub const WORD_START: char = '▁';

/// Longer words are unknown, as in BERT's tokenizer. In characters.
const MAX_CHARS: usize = 100;

#[derive(Debug, Clone, Copy)]
pub struct WordPiece {
    /// Token of a word that cannot be cut into tokens.
    pub unknown: Option<TokenId>,
}

impl WordPiece {
    /// Appends the tokens of `word`, which contains no white space.
    pub fn encode(&self, vocab: &Vocab, word: &str, out: &mut Vec<TokenId>) {
        if word.is_empty() {
            return;
        }
        let before = out.len();
        let text = format!("{WORD_START}{word}");
        let mut rest = text.as_str();
        let fits = word.chars().count() <= MAX_CHARS;
        while fits && !rest.is_empty() {
            // the prefix alone is no token of a word
            let min_bytes = if rest.len() == text.len() { WORD_START.len_utf8() + 1 } else { 1 };
            let mut ends =
                rest.char_indices().rev().map(|(at, c)| at + c.len_utf8()).filter(|end| *end >= min_bytes);
            let found = ends.find_map(|end| Some((vocab.find(&rest.as_bytes()[..end])?, end)));
            let Some((id, end)) = found else { break };
            out.push(id);
            rest = &rest[end..];
        }
        if !fits || !rest.is_empty() {
            out.truncate(before);
            out.extend(self.unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::vocab::{Decoding, TokenKind};

    #[test]
    fn words_are_cut_from_the_left() {
        let texts = ["[UNK]", "▁un", "▁a", "aff", "able", "a", "▁unaffab", "▁", "▁é"];
        let kinds = texts.iter().enumerate();
        let kinds = kinds.map(|(at, text)| {
            (text.as_bytes(), if at == 0 { TokenKind::Unknown } else { TokenKind::Normal })
        });
        let decoding = Decoding::SentencePiece { strips_space: true };
        let vocab = Vocab::new(kinds, Vec::new(), decoding).expect("sound");
        let check = |word: &str, expected: &[TokenId]| {
            let mut ids = vec![9];
            WordPiece { unknown: Some(0) }.encode(&vocab, word, &mut ids);
            assert_eq!(ids[1..], *expected, "{word}");
        };
        check("unaffable", &[0]);
        check("unable", &[1, 4]);
        check("unaaff", &[1, 5, 3]);
        check("a", &[2]);
        check("é", &[8]);
        check("able", &[0]);
        check("", &[]);
        check(&"a".repeat(100), &[&[2][..], &[5; 99]].concat());
        check(&"a".repeat(101), &[0]);
    }
}
