//! Builds a tokenizer from GGUF metadata.

use super::bpe::{self, Bpe, BpeOptions};
use super::json::split_merge;
use super::pre::{NamedPreTokenizer, RestartPoints, Splitter, split};
use super::sentencepiece::SentencePieceModel;
use super::source::{TokenRoles, added_by_kind, mend_kinds};
use super::vocab::{Decoding, TokenKind, Vocab, broken};
use super::wordpiece::WordPiece;
use super::{MergeModel, TokenId, Tokenizer};
use crate::error::{EngineError, Result};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::normalizers::replace::Replace;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

/// Contents of `tokenizer.ggml.*`.
#[derive(Debug, Default)]
pub struct GgufVocab<'a> {
    /// `gpt2`, `llama`, `gemma4` …
    pub model: &'a str,
    pub pre: Option<&'a str>,
    pub tokens: Vec<&'a [u8]>,
    /// Empty or one per token, as `kinds`.
    pub scores: Vec<f32>,
    pub kinds: Vec<i64>,
    /// `"left right"`, best first.
    pub merges: Vec<&'a [u8]>,
    pub bos: Option<TokenId>,
    pub eos: Option<TokenId>,
    pub unknown: Option<TokenId>,
    /// BERT's tokens before and after a text.
    pub class: Option<TokenId>,
    pub separator: Option<TokenId>,
    /// End of turn, end of message.
    pub ends: Vec<TokenId>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
    pub remove_extra_whitespaces: bool,
    /// SentencePiece's table that normalizes texts.
    pub charsmap: Vec<u8>,
}

impl GgufVocab<'_> {
    fn kind(&self, at: usize) -> TokenKind {
        self.kinds.get(at).map_or(TokenKind::Normal, |number| TokenKind::from_number(*number))
    }

    /// Checks that each list has one entry per token, or none.
    fn check(&self) -> Result<()> {
        let n = self.tokens.len();
        for (name, len) in [("scores", self.scores.len()), ("token_type", self.kinds.len())] {
            if len != 0 && len != n {
                return Err(broken(format!("tokenizer.ggml.{name} has {len} entries for {n} tokens")));
            }
        }
        Ok(())
    }

    fn roles(&self, add_bos: bool) -> TokenRoles {
        let around = |wanted: bool, id: Option<TokenId>| id.filter(|_| wanted).into_iter().collect();
        TokenRoles {
            bos: self.bos,
            eos: self.eos,
            ends: self.ends.clone(),
            before: around(self.add_bos.unwrap_or(add_bos), self.bos),
            after: around(self.add_eos.unwrap_or(false), self.eos),
        }
    }
}

impl Tokenizer {
    pub(super) fn from_gguf_vocab(source: &GgufVocab<'_>) -> Result<Self> {
        source.check()?;
        match source.model {
            "gpt2" if source.pre.is_some_and(|pre| SPACED.contains(&pre)) => spaced_bpe(source),
            "gpt2" => byte_level(source),
            "gemma4" => spaced_bpe(source),
            "llama" => sentencepiece(source, false),
            "t5" => sentencepiece(source, true),
            "bert" => wordpiece(source),
            other => Err(EngineError::new(
                "tokenizer.unsupported",
                format!("a tokenizer of kind `{other}` (tokenizer.ggml.model) is not supported"),
                "Choose a model with a BPE, SentencePiece or WordPiece tokenizer.",
            )),
        }
    }
}

/// Pre-tokenizers of vocabularies with `▁` for spaces, whatever the file calls its type.
const SPACED: &[&str] = &["gemma4", "sarvam-moe", "granite-embed-multi-311m"];

fn vocabulary(source: &GgufVocab<'_>, decoding: Decoding, roles: &TokenRoles) -> Result<Vocab> {
    let tokens = source.tokens.iter().enumerate().map(|(at, text)| (*text, source.kind(at)));
    let mut vocab = Vocab::new(tokens, Vec::new(), decoding)?;
    mend_kinds(&mut vocab, roles);
    Ok(vocab)
}

fn merges<'a>(source: &GgufVocab<'a>) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone {
    source.merges.iter().map(|both| split_merge(both))
}

fn byte_level(source: &GgufVocab<'_>) -> Result<Tokenizer> {
    let pre = NamedPreTokenizer::find(source.pre)?;
    let roles = source.roles(pre.add_bos);
    let vocab = vocabulary(source, Decoding::ByteLevel, &roles)?;
    let options = BpeOptions { ignore_merges: pre.ignore_merges, ..BpeOptions::default() };
    bpe::check_merges(&vocab, merges(source), "tokenizer.ggml.merges")?;
    let bpe = Bpe::new(&vocab, merges(source), options);
    let added = added_by_kind(&vocab);
    let mut tokenizer =
        Tokenizer::assemble(vocab, MergeModel::Bpe { splitter: pre.splitter, bpe }, added, roles);
    if source.pre.is_none() {
        tokenizer.notice = Some(
            "The file does not say how its text is split (tokenizer.ggml.pre): the oldest rules are used, and \
             answers may be worse for it."
                .into(),
        );
    }
    Ok(tokenizer)
}

/// BPE over text with `▁` for spaces, and byte tokens: Gemma 4. Only line ends are split off.
fn spaced_bpe(source: &GgufVocab<'_>) -> Result<Tokenizer> {
    let roles = source.roles(true);
    let vocab = vocabulary(source, Decoding::SentencePiece { strips_space: false }, &roles)?;
    let spaces = Replace::new(" ", "▁").map_err(|error| broken(error.to_string()))?;
    let splitter = Splitter {
        normalizer: Some(NormalizerWrapper::Replace(spaces)),
        pre_tokenizer: Some(PreTokenizerWrapper::Split(split(r"\n+")?)),
        inner: None,
        restarts: RestartPoints::BetweenUnpairedChars,
    };
    let options =
        BpeOptions { ignore_merges: false, byte_fallback: true, unknown: source.unknown, fuse_unknown: true };
    bpe::check_merges(&vocab, merges(source), "tokenizer.ggml.merges")?;
    let bpe = Bpe::new(&vocab, merges(source), options);
    let added = added_by_kind(&vocab);
    Ok(Tokenizer::assemble(vocab, MergeModel::Bpe { splitter, bpe }, added, roles))
}

/// BERT's: letters without case and accents, and a token before and after every text.
fn wordpiece(source: &GgufVocab<'_>) -> Result<Tokenizer> {
    let (first, last) = (source.class.or(source.bos), source.separator.or(source.eos));
    let mut roles = source.roles(true);
    roles.before = first.into_iter().collect();
    roles.after = last.into_iter().collect();
    let vocab = vocabulary(source, Decoding::SentencePiece { strips_space: true }, &roles)?;
    let splitter = Splitter {
        normalizer: Some(NormalizerWrapper::BertNormalizer(BertNormalizer::default())),
        pre_tokenizer: Some(PreTokenizerWrapper::BertPreTokenizer(BertPreTokenizer)),
        inner: None,
        restarts: RestartPoints::Never,
    };
    let wordpiece = WordPiece { unknown: source.unknown };
    let added = added_by_kind(&vocab);
    Ok(Tokenizer::assemble(vocab, MergeModel::WordPiece { splitter, wordpiece }, added, roles))
}

fn sentencepiece(source: &GgufVocab<'_>, is_unigram: bool) -> Result<Tokenizer> {
    if source.scores.is_empty() && !source.tokens.is_empty() {
        return Err(broken("tokenizer.ggml.scores is missing"));
    }
    let pieces = source.tokens.iter().zip(&source.scores).enumerate();
    let description = SentencePieceModel {
        pieces: pieces.map(|(at, (text, score))| (*text, *score, source.kind(at))).collect(),
        is_unigram,
        unknown: source.unknown.or(Some(0)),
        bos: source.bos,
        eos: source.eos,
        prefix: source.add_space_prefix.unwrap_or(true),
        collapse: source.remove_extra_whitespaces,
        charsmap: &source.charsmap,
        // Converters write such pieces as they occur in text.
        marks_added_spaces: false,
    };
    Tokenizer::from_description(&description, source.roles(!is_unigram))
}
