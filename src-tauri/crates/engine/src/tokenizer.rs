//! Tokenizer: text to token ids and back.
//!
//! Built from GGUF metadata, a `tokenizer.json` or a SentencePiece `.model`. Control tokens are recognized only on
//! request, so typed text can never steer the model.
//!
//! Splitting and normalizing use the `tokenizers` crate. Merging is our own: large vocabularies must load at once,
//! and a damaged one must not crash the program.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::template::{ContentSpan, RenderedPrompt};

mod added;
mod bpe;
mod char_pairs;
mod export;
mod gguf;
mod incremental;
mod json;
mod load;
mod merge;
mod pair_hash;
mod pre;
mod restarts;
mod sentencepiece;
mod source;
mod spm;
mod stream;
#[cfg(test)]
mod tests;
mod unigram;
mod vocab;
mod wordpiece;

use added::{AddedToken, AddedTokens};
use bpe::Bpe;
use char_pairs::CharPairs;
pub(crate) use export::gguf_pairs;
pub use incremental::IncrementalEncoder;
use incremental::{MarkRecorder, RestartMark};
use merge::MergeScratch;
use pre::{RestartPoints, Splitter};
use spm::Spm;
pub use stream::DetokenizeStream;
use unigram::Unigram;
use vocab::{Decoding, TokenKind, Vocab};
use wordpiece::WordPiece;

/// Index of a token in the vocabulary.
pub type TokenId = u32;

/// Whether the text of a control token (`<|im_end|>`) becomes that token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// It stays text: for the words of people, files and tools.
    Plain,
    /// It becomes the token: for the markup of a chat template.
    Parse,
}

/// Known ids of a span of rendered text. They are reused, never encoded again.
#[derive(Debug, Clone, Copy)]
pub struct KnownIds<'a> {
    /// Bytes of the rendered text.
    pub range: &'a Range<usize>,
    /// Their tokens.
    pub ids: &'a [TokenId],
}

/// How pieces become tokens.
#[derive(Debug)]
enum MergeModel {
    Bpe { splitter: Splitter, bpe: Bpe },
    Spm { spaces: SpaceRules, spm: Spm },
    Unigram { splitter: Splitter, unigram: Unigram },
    WordPiece { splitter: Splitter, wordpiece: WordPiece },
}

/// SentencePiece's treatment of spaces, which become `▁`.
#[derive(Debug, Clone, Copy)]
struct SpaceRules {
    /// Whether a space is added before a text and after a control token.
    prefix: bool,
    /// Whether runs of spaces are collapsed and outer spaces dropped.
    collapse: bool,
}

/// A vocabulary and its rules.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Arc<Vocab>,
    merging: MergeModel,
    added: AddedTokens,
    bos: Option<TokenId>,
    eos: Option<TokenId>,
    /// Sorted.
    eog: Vec<TokenId>,
    /// Tokens that [`Tokenizer::add_special`] puts before and after.
    before: Vec<TokenId>,
    after: Vec<TokenId>,
    /// Created when a changing text is first encoded.
    char_pairs: OnceLock<CharPairs>,
    /// A remark on the vocabulary for the user.
    notice: Option<String>,
}

impl Tokenizer {
    /// Encodes a text without BOS and EOS; see [`Tokenizer::add_special`].
    pub fn encode(&self, text: &str, special: Special) -> Vec<TokenId> {
        let mut ids = Vec::new();
        let parse = special == Special::Parse;
        self.encode_marked(text, true, &|added, _| parse || !added.is_control, &mut ids, None);
        ids
    }

    /// Encodes a rendered prompt as if at once, except that control tokens are recognized only outside message
    /// contents, and `known` spans keep their ids.
    ///
    /// `known` must be ordered and without overlap; spans that are not are encoded like any others.
    pub fn encode_rendered(&self, rendered: &RenderedPrompt, known: &[KnownIds<'_>]) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.encode_spans(rendered, known, 0..rendered.text.len(), &mut ids, None);
        ids
    }

    /// Encodes part of a rendered prompt as [`Tokenizer::encode_rendered`] would.
    fn encode_spans(
        &self,
        rendered: &RenderedPrompt,
        known: &[KnownIds<'_>],
        part: Range<usize>,
        ids: &mut Vec<TokenId>,
        mut marks: Option<&mut Vec<RestartMark>>,
    ) {
        let text = rendered.text.as_str();
        let mut from = part.start;
        let mut encode = |range: Range<usize>, ids: &mut Vec<TokenId>| {
            let accept = |added: &AddedToken, at: &Range<usize>| {
                let (start, end) = (range.start + at.start, range.start + at.end);
                !added.may_steer() || !touches(&rendered.content_spans, start..end)
            };
            let mut marking = marks.as_deref_mut().map(|marks| MarkRecorder { at: range.start, marks });
            self.encode_marked(&text[range.clone()], range.start == 0, &accept, ids, marking.as_mut());
        };
        for span in known {
            let in_order = span.range.start >= from && text.get(span.range.clone()).is_some();
            if in_order {
                encode(from..span.range.start, ids);
                ids.extend_from_slice(span.ids);
                from = span.range.end;
            }
        }
        encode(from..part.end, ids);
    }

    /// Returns the text of `ids`, with control tokens written out. Invalid UTF-8 becomes U+FFFD.
    pub fn decode(&self, ids: &[TokenId]) -> String {
        let mut bytes = Vec::new();
        let strips = matches!(self.vocab.decoding, Decoding::SentencePiece { strips_space: true });
        let mut begins = strips;
        for &id in ids {
            let from = bytes.len();
            self.vocab.append_bytes(id, &mut bytes);
            let is_control = self.vocab.kind(id) == Some(TokenKind::Control);
            if begins && !is_control && bytes.get(from) == Some(&b' ') {
                bytes.remove(from);
            }
            begins = strips && is_control;
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns a decoder for a reply, token by token. It leaves out control tokens.
    pub fn stream(&self) -> DetokenizeStream {
        DetokenizeStream::new(Arc::clone(&self.vocab))
    }

    /// Returns the begin-of-sequence token.
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    /// Returns the end-of-sequence token.
    pub fn eos(&self) -> Option<TokenId> {
        self.eos
    }

    /// Returns whether `id` ends a reply (end of sequence, end of turn and the like).
    pub fn is_eog(&self, id: TokenId) -> bool {
        self.eog.binary_search(&id).is_ok()
    }

    /// Returns whether `id` steers the model and has no text in a reply.
    pub fn is_control(&self, id: TokenId) -> bool {
        self.vocab.kind(id) == Some(TokenKind::Control)
    }

    /// Returns whether spaces are `▁` and unknown characters bytes, as in SentencePiece.
    pub fn is_sentencepiece(&self) -> bool {
        matches!(self.vocab.decoding, Decoding::SentencePiece { .. })
    }

    /// Returns the single token of this text, if it is matched as a whole: a control or user-defined token, or one
    /// mislabeled as normal.
    pub fn markup_token(&self, text: &str) -> Option<TokenId> {
        let added =
            self.added.find(text, 0, &|_, range| *range == (0..text.len())).map(|found| found.added.id);
        added.or_else(|| self.vocab.find(text.as_bytes()))
    }

    /// Returns the markup tokens in a text and their byte ranges.
    pub fn marks_in(&self, text: &str) -> Vec<(Range<usize>, TokenId)> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(next) = self.added.find(text, from, &|added, _| added.may_steer()) {
            from = next.range.end;
            found.push((next.range, next.added.id));
        }
        found
    }

    /// Returns `ids` with the BOS and EOS that the model expects around a text.
    pub fn add_special(&self, ids: Vec<TokenId>) -> Vec<TokenId> {
        let mut all = self.before.clone();
        all.extend(ids);
        all.extend_from_slice(&self.after);
        all
    }

    /// Returns the token's text in the vocabulary. `None` for unknown ids and invalid UTF-8.
    pub fn token_text(&self, id: TokenId) -> Option<&str> {
        self.vocab.kind(id)?;
        std::str::from_utf8(self.vocab.text(id)).ok()
    }

    /// Returns the bytes that a token stands for in a text. Of markup, its name.
    pub fn token_bytes(&self, id: TokenId) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.vocab.kind(id).is_some() {
            self.vocab.append_bytes(id, &mut bytes);
        }
        bytes
    }

    /// Returns what a token stands for where a constraint is applied.
    pub(crate) fn constraint_text(&self, id: TokenId) -> ::constraint::TokenText {
        use ::constraint::TokenText;
        match self.vocab.kind(id) {
            Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Byte) => {
                TokenText::Bytes(self.token_bytes(id))
            }
            Some(TokenKind::Control) => TokenText::Markup(self.token_text(id).unwrap_or_default().to_owned()),
            Some(TokenKind::Unknown | TokenKind::Unused) | None => TokenText::Unused,
        }
    }

    /// Returns the number of tokens in the vocabulary.
    pub fn n_vocab(&self) -> usize {
        self.vocab.len()
    }

    /// Returns a remark on the vocabulary for the user, if there is one.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Returns the bytes of the longest token that is matched as a whole.
    fn longest_added(&self) -> usize {
        self.added.longest()
    }

    /// Encodes a text: added tokens that `accept` permits, and what lies between. `begins`: nothing precedes `text`.
    /// `marking` records restart points.
    fn encode_marked(
        &self,
        text: &str,
        begins: bool,
        accept: &dyn Fn(&AddedToken, &Range<usize>) -> bool,
        out: &mut Vec<TokenId>,
        mut marking: Option<&mut MarkRecorder<'_>>,
    ) {
        let mut scratch = MergeScratch::default();
        let (mut from, mut begins) = (0, begins);
        loop {
            let found = self.added.find(text, from, accept);
            let until = found.as_ref().map_or(text.len(), |found| found.range.start);
            let place = TextPosition { at: from, begins, prefixed: begins || from > 0 };
            self.encode_piece(&text[from..until], place, &mut scratch, out, marking.as_deref_mut());
            let Some(found) = found else { return };
            out.push(found.added.id);
            (from, begins) = (found.range.end, false);
        }
    }

    fn encode_piece(
        &self,
        text: &str,
        place: TextPosition,
        scratch: &mut MergeScratch,
        out: &mut Vec<TokenId>,
        mut marking: Option<&mut MarkRecorder<'_>>,
    ) {
        if text.is_empty() {
            return;
        }
        let restarts = self.restarts();
        if let (MergeModel::Bpe { splitter, bpe }, RestartPoints::AtPieces) = (&self.merging, restarts) {
            return splitter.for_each(text, place.begins, |offset, piece| {
                if let Some(marking) = marking.as_deref_mut()
                    && offset > 0
                    && splitter.is_apart(text, offset)
                {
                    marking.note(place.at + offset, out.len());
                }
                bpe.encode(&self.vocab, piece, scratch, out);
            });
        }
        let (Some(marking), RestartPoints::BetweenUnpairedChars) = (marking, restarts) else {
            return self.encode_part(text, place, scratch, out);
        };
        let char_pairs = self.char_pairs.get_or_init(|| CharPairs::new(&self.vocab, &self.added));
        let mut from = 0;
        for until in char_pairs.cuts(&self.vocab, text).chain([text.len()]) {
            let part = TextPosition {
                at: place.at + from,
                begins: place.begins && from == 0,
                prefixed: place.prefixed && from == 0,
            };
            if from > 0 {
                marking.note(part.at, out.len());
            }
            self.encode_part(&text[from..until], part, scratch, out);
            from = until;
        }
    }

    fn encode_part(
        &self,
        text: &str,
        place: TextPosition,
        scratch: &mut MergeScratch,
        out: &mut Vec<TokenId>,
    ) {
        match &self.merging {
            MergeModel::Bpe { splitter, bpe } => {
                splitter
                    .for_each(text, place.begins, |_, piece| bpe.encode(&self.vocab, piece, scratch, out));
            }
            MergeModel::Spm { spaces, spm } => {
                spm.encode(&self.vocab, &spaces.escape(text, place.prefixed), scratch, out);
            }
            MergeModel::Unigram { splitter, unigram } => {
                splitter.for_each(text, place.begins, |_, piece| unigram.encode(&self.vocab, piece, out));
            }
            MergeModel::WordPiece { splitter, wordpiece } => {
                splitter.for_each(text, place.begins, |_, piece| wordpiece.encode(&self.vocab, piece, out));
            }
        }
    }

    /// Returns where encoding may restart in the middle of a text.
    fn restarts(&self) -> RestartPoints {
        match &self.merging {
            _ if self.added.depend_on_surroundings() => RestartPoints::Never,
            MergeModel::Spm { spaces, .. } if !spaces.collapse => RestartPoints::BetweenUnpairedChars,
            MergeModel::Spm { .. } | MergeModel::WordPiece { .. } => RestartPoints::Never,
            MergeModel::Bpe { splitter, bpe } => match splitter.restarts {
                // A part of a piece could be a token as a whole, where the piece is none.
                RestartPoints::BetweenUnpairedChars if bpe.options.ignore_merges => RestartPoints::Never,
                restarts => restarts,
            },
            MergeModel::Unigram { splitter, .. } => match splitter.restarts {
                RestartPoints::BetweenUnpairedChars => RestartPoints::BetweenUnpairedChars,
                RestartPoints::AtPieces | RestartPoints::Never => RestartPoints::Never,
            },
        }
    }
}

/// Position of a part of a text.
#[derive(Debug, Clone, Copy)]
struct TextPosition {
    /// Bytes before it, from where recording began.
    at: usize,
    /// Nothing precedes it.
    begins: bool,
    /// Nothing or an added token precedes it.
    prefixed: bool,
}

impl SpaceRules {
    fn escape(self, text: &str, prefixed: bool) -> String {
        let mut escaped = String::with_capacity(text.len() + 16);
        if self.prefix && prefixed {
            escaped.push('▁');
        }
        if self.collapse {
            for (i, word) in text.split(' ').filter(|word| !word.is_empty()).enumerate() {
                if i > 0 {
                    escaped.push('▁');
                }
                escaped.push_str(word);
            }
        } else {
            text.chars().for_each(|c| escaped.push(if c == ' ' { '▁' } else { c }));
        }
        escaped
    }
}

fn touches(spans: &[ContentSpan], range: Range<usize>) -> bool {
    let first = spans.partition_point(|span| span.range.end <= range.start);
    spans.get(first).is_some_and(|span| span.range.start < range.end)
}
