//! Text to token ids and back.
//!
//! Built from GGUF metadata, a `tokenizer.json` or a SentencePiece `.model`. Control tokens are recognised only
//! where that is asked for, so that what a person types can never steer the model. Splitting and normalising are
//! the `tokenizers` crate's; merging is ours, because a vocabulary of 200 000 tokens must be ready at once and a
//! damaged one must not end the program.

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
use pre::Splitter;
use spm::Spm;
pub use stream::DetokenizeStream;
use unigram::Unigram;
use vocab::{Decoding, TokenKind, Vocab};
use wordpiece::WordPiece;

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

/// How pieces become tokens.
#[derive(Debug)]
enum MergeModel {
    Bpe { splitter: Splitter, bpe: Bpe },
    Spm { spaces: SpaceRules, spm: Spm },
    Unigram { splitter: Splitter, unigram: Unigram },
    WordPiece { splitter: Splitter, wordpiece: WordPiece },
}

/// What SentencePiece does with spaces: all become `▁`.
#[derive(Debug, Clone, Copy)]
struct SpaceRules {
    /// A text begins with a space, and so does what follows a control token.
    prefix: bool,
    /// Runs of spaces become one, and spaces at the ends go.
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
    /// What [`Tokenizer::add_special`] puts before and after.
    before: Vec<TokenId>,
    after: Vec<TokenId>,
    /// Made when a text that changes is first encoded.
    neighbours: OnceLock<CharPairs>,
    /// Something about the vocabulary that a user should know.
    notice: Option<String>,
}

impl Tokenizer {
    /// Without BOS and EOS; see [`Tokenizer::add_special`].
    pub fn encode(&self, text: &str, special: Special) -> Vec<TokenId> {
        let mut ids = Vec::new();
        let parse = special == Special::Parse;
        self.encode_marked(text, true, &|added, _| parse || !added.is_control, &mut ids, None);
        ids
    }

    /// A rendered prompt: control tokens are recognised outside message contents only, `known` stretches keep
    /// their ids, and everything else is split as if the whole text had been encoded at once. `known` is in
    /// order and without overlap; a stretch that isn't is encoded like any other.
    pub fn encode_rendered(&self, rendered: &RenderedPrompt, known: &[KnownIds<'_>]) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.encode_stretches(rendered, known, 0..rendered.text.len(), &mut ids, None);
        ids
    }

    /// A part of a rendered prompt, as [`Tokenizer::encode_rendered`] has it.
    fn encode_stretches(
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
        for stretch in known {
            let in_order = stretch.range.start >= from && text.get(stretch.range.clone()).is_some();
            if in_order {
                encode(from..stretch.range.start, ids);
                ids.extend_from_slice(stretch.ids);
                from = stretch.range.end;
            }
        }
        encode(from..part.end, ids);
    }

    /// The text of `ids`, control tokens written out. Bytes that are no UTF-8 become U+FFFD.
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

    /// Decodes a reply token by token; control tokens are left out.
    pub fn stream(&self) -> DetokenizeStream {
        DetokenizeStream::new(Arc::clone(&self.vocab))
    }

    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    pub fn eos(&self) -> Option<TokenId> {
        self.eos
    }

    /// Whether `id` ends a reply (end of sequence, end of turn and their like).
    pub fn is_eog(&self, id: TokenId) -> bool {
        self.eog.binary_search(&id).is_ok()
    }

    /// Whether `id` steers the model and has no text of its own in a reply.
    pub fn is_control(&self, id: TokenId) -> bool {
        self.vocab.kind(id) == Some(TokenKind::Control)
    }

    /// SpaceRules are `▁` and unknown characters bytes, as SentencePiece has it.
    pub fn is_sentencepiece(&self) -> bool {
        matches!(self.vocab.decoding, Decoding::SentencePiece { .. })
    }

    /// The one token that this text is, if it is meant as a whole: a control or user-defined token, or one that a
    /// careless conversion calls normal.
    pub fn mark(&self, text: &str) -> Option<TokenId> {
        let added =
            self.added.find(text, 0, &|_, range| *range == (0..text.len())).map(|found| found.added.id);
        added.or_else(|| self.vocab.find(text.as_bytes()))
    }

    /// Where tokens of markup stand in a text.
    pub fn marks_in(&self, text: &str) -> Vec<(Range<usize>, TokenId)> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(next) = self.added.find(text, from, &|added, _| added.may_steer()) {
            from = next.range.end;
            found.push((next.range, next.added.id));
        }
        found
    }

    /// `ids` with the BOS and EOS that this model wants around a text.
    pub fn add_special(&self, ids: Vec<TokenId>) -> Vec<TokenId> {
        let mut all = self.before.clone();
        all.extend(ids);
        all.extend_from_slice(&self.after);
        all
    }

    /// The token's text as the vocabulary has it; None for an id that does not exist or a text that is no UTF-8.
    pub fn token_text(&self, id: TokenId) -> Option<&str> {
        self.vocab.kind(id)?;
        std::str::from_utf8(self.vocab.text(id)).ok()
    }

    pub fn n_vocab(&self) -> usize {
        self.vocab.len()
    }

    /// What a user should know of this vocabulary though it works.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Bytes of the longest token that is matched as a whole.
    fn longest_added(&self) -> usize {
        self.added.longest()
    }

    /// Finds the added tokens that `accept` lets through and encodes what lies between. `begins`: nothing stands
    /// before `text`. `marking` notes where encoding may begin again.
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
        let neighbours = self.neighbours.get_or_init(|| CharPairs::new(&self.vocab, &self.added));
        let mut from = 0;
        for until in neighbours.cuts(&self.vocab, text).chain([text.len()]) {
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

    /// Where the encoding of a text may begin in its middle.
    fn restarts(&self) -> RestartPoints {
        match &self.merging {
            _ if self.added.takes_white_space() => RestartPoints::Never,
            MergeModel::Spm { spaces, .. } if !spaces.collapse => RestartPoints::BetweenUnpairedChars,
            MergeModel::Spm { .. } | MergeModel::WordPiece { .. } => RestartPoints::Never,
            MergeModel::Bpe { splitter, .. } => splitter.restarts,
            MergeModel::Unigram { splitter, .. } => match splitter.restarts {
                RestartPoints::BetweenUnpairedChars => RestartPoints::BetweenUnpairedChars,
                RestartPoints::AtPieces | RestartPoints::Never => RestartPoints::Never,
            },
        }
    }
}

/// Where a part of a text stands.
#[derive(Debug, Clone, Copy)]
struct TextPosition {
    /// Bytes before it, from where noting marks began.
    at: usize,
    /// Nothing stands before.
    begins: bool,
    /// Nothing or an added token stands before.
    prefixed: bool,
}

/// Where the encoding of a text may begin in its middle and still give the same ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartPoints {
    /// Wherever a piece begins.
    AtPieces,
    /// Between characters that stand side by side in no token.
    BetweenUnpairedChars,
    Never,
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
