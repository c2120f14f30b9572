//! Builds a tokenizer from a SentencePiece `.model` file, or its equivalent in GGUF.
//!
//! The file is a protocol buffer; the few relevant fields are read by hand, with all checks.

use tokenizers::NormalizerWrapper;
use tokenizers::normalizers::Sequence;
use tokenizers::normalizers::precompiled::Precompiled;
use tokenizers::normalizers::prepend::Prepend;
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::strip::Strip;

use super::pre::{RestartPoints, Splitter};
use super::source::{TokenRoles, added_by_kind};
use super::spm::Spm;
use super::unigram::Unigram;
use super::vocab::{Decoding, TokenKind, Vocab, broken};
use super::{MergeModel, SpaceRules, TokenId, Tokenizer};
use crate::error::{EngineError, Result};

/// A field of a message: its number and value.
enum ProtoField<'a> {
    Number(u64, u64),
    Fixed32(u64, [u8; 4]),
    Bytes(u64, &'a [u8]),
    Other,
}

/// The fields of a protocol buffer message.
struct ProtoFields<'a> {
    rest: &'a [u8],
}

impl<'a> ProtoFields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<ProtoField<'a>> {
        let tag = self.varint()?;
        let number = tag >> 3;
        Some(match tag & 7 {
            0 => ProtoField::Number(number, self.varint()?),
            1 => {
                self.take(8)?;
                ProtoField::Other
            }
            2 => {
                let n = usize::try_from(self.varint()?).ok()?;
                ProtoField::Bytes(number, self.take(n)?)
            }
            5 => ProtoField::Fixed32(number, self.take(4)?.try_into().ok()?),
            _ => return None,
        })
    }

    /// Calls `each` with every field.
    ///
    /// Errors: a damaged message.
    fn for_each(bytes: &'a [u8], mut each: impl FnMut(ProtoField<'a>) -> Result<()>) -> Result<()> {
        let mut fields = ProtoFields { rest: bytes };
        while !fields.rest.is_empty() {
            let field =
                fields.field().ok_or_else(|| broken("the SentencePiece model is truncated or damaged"))?;
            each(field)?;
        }
        Ok(())
    }
}

/// A SentencePiece model from any container.
pub struct SentencePieceModel<'a> {
    pub pieces: Vec<(&'a [u8], f32, TokenKind)>,
    pub is_unigram: bool,
    pub unknown: Option<TokenId>,
    pub bos: Option<TokenId>,
    pub eos: Option<TokenId>,
    /// Whether a space is added before a text.
    pub prefix: bool,
    pub collapse: bool,
    pub charsmap: &'a [u8],
    /// Whether user-defined pieces write `▁` for a space, as the others do.
    pub marks_added_spaces: bool,
}

const UNIGRAM: u64 = 1;
const BPE: u64 = 2;

impl<'a> SentencePieceModel<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut this = Self {
            pieces: Vec::new(),
            is_unigram: true,
            unknown: Some(0),
            bos: Some(1),
            eos: Some(2),
            prefix: true,
            collapse: true,
            charsmap: &[],
            marks_added_spaces: true,
        };
        ProtoFields::for_each(bytes, |field| match field {
            ProtoField::Bytes(1, piece) => this.piece(piece),
            ProtoField::Bytes(2, trainer) => this.trainer(trainer),
            ProtoField::Bytes(3, normalizer) => this.normalizer(normalizer),
            _ => Ok(()),
        })?;
        let n_pieces = this.pieces.len();
        this.unknown = this.unknown.filter(|id| (*id as usize) < n_pieces);
        Ok(this)
    }

    fn piece(&mut self, bytes: &'a [u8]) -> Result<()> {
        let (mut text, mut score, mut kind) = (&[][..], 0.0, TokenKind::Normal);
        ProtoFields::for_each(bytes, |field| {
            match field {
                ProtoField::Bytes(1, bytes) => text = bytes,
                ProtoField::Fixed32(2, bytes) => score = f32::from_le_bytes(bytes),
                ProtoField::Number(3, number) => {
                    kind = TokenKind::from_number(i64::try_from(number).unwrap_or(0))
                }
                _ => {}
            }
            Ok(())
        })?;
        self.pieces.push((text, score, kind));
        Ok(())
    }

    fn trainer(&mut self, bytes: &'a [u8]) -> Result<()> {
        // A negative id is encoded as a huge number: there is no such token.
        let id = |number: u64| TokenId::try_from(number).ok();
        ProtoFields::for_each(bytes, |field| {
            match field {
                ProtoField::Number(3, UNIGRAM) => self.is_unigram = true,
                ProtoField::Number(3, BPE) => self.is_unigram = false,
                ProtoField::Number(3, _) => return Err(unsupported()),
                ProtoField::Number(40, number) => self.unknown = id(number),
                ProtoField::Number(41, number) => self.bos = id(number),
                ProtoField::Number(42, number) => self.eos = id(number),
                _ => {}
            }
            Ok(())
        })
    }

    fn normalizer(&mut self, bytes: &'a [u8]) -> Result<()> {
        ProtoFields::for_each(bytes, |field| {
            match field {
                ProtoField::Bytes(2, charsmap) => self.charsmap = charsmap,
                ProtoField::Number(3, flag) => self.prefix = flag != 0,
                ProtoField::Number(4, flag) => self.collapse = flag != 0,
                _ => {}
            }
            Ok(())
        })
    }
}

fn unsupported() -> EngineError {
    EngineError::new(
        "tokenizer.unsupported",
        "a SentencePiece model of words or characters is not supported",
        "Choose a model with a BPE or Unigram tokenizer.",
    )
}

impl Tokenizer {
    pub(super) fn from_sentencepiece(bytes: &[u8]) -> Result<Self> {
        let description = SentencePieceModel::parse(bytes)?;
        let roles = TokenRoles {
            bos: description.bos,
            eos: description.eos,
            before: description.bos.into_iter().collect(),
            ..TokenRoles::default()
        };
        Self::from_description(&description, roles)
    }

    pub(super) fn from_description(description: &SentencePieceModel<'_>, roles: TokenRoles) -> Result<Self> {
        let tokens = description.pieces.iter().map(|(text, _, kind)| (*text, *kind));
        let scores = description.pieces.iter().map(|(_, score, _)| *score).collect();
        let decoding = Decoding::SentencePiece { strips_space: description.prefix };
        let mut vocab = Vocab::new(tokens, scores, decoding)?;
        super::source::mend_kinds(&mut vocab, &roles);
        let merging = if description.is_unigram {
            unigram(description, &vocab)?
        } else {
            let spaces = SpaceRules { prefix: description.prefix, collapse: description.collapse };
            MergeModel::Spm { spaces, spm: Spm { unknown: description.unknown } }
        };
        let mut added = added_by_kind(&vocab);
        for token in added.iter_mut().filter(|token| description.marks_added_spaces && !token.is_control) {
            token.text = token.text.replace('▁', " ");
        }
        Ok(Self::assemble(vocab, merging, added, roles))
    }
}

fn unigram(description: &SentencePieceModel<'_>, vocab: &Vocab) -> Result<MergeModel> {
    let bad = |what: String| broken(format!("the SentencePiece model: {what}"));
    let mut steps = Vec::new();
    if !description.charsmap.is_empty() {
        let map = Precompiled::from(description.charsmap).map_err(|error| bad(error.to_string()))?;
        steps.push(NormalizerWrapper::Precompiled(map));
    }
    let replace = |pattern: ReplacePattern, by: &str| -> Result<NormalizerWrapper> {
        let step = Replace::new(pattern, by).map_err(|error| bad(error.to_string()))?;
        Ok(NormalizerWrapper::Replace(step))
    };
    if description.collapse {
        steps.push(NormalizerWrapper::StripNormalizer(Strip::new(true, true)));
        steps.push(replace(ReplacePattern::Regex(" {2,}".into()), " ")?);
    }
    if description.prefix {
        steps.push(NormalizerWrapper::Prepend(Prepend::new("▁".to_string())));
    }
    steps.push(replace(ReplacePattern::String(" ".into()), "▁")?);
    let is_plain = steps.len() == 1;
    let normalizer = Some(NormalizerWrapper::Sequence(Sequence::new(steps)));
    let restarts = if is_plain { RestartPoints::BetweenUnpairedChars } else { RestartPoints::Never };
    let splitter = Splitter { normalizer, pre_tokenizer: None, inner: None, restarts };
    Ok(MergeModel::Unigram { splitter, unigram: Unigram::new(vocab, description.unknown) })
}
