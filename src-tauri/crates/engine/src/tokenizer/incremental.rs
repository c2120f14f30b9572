//! Incremental encoding of a changing text: after each change the ids equal those of the whole text, but only the
//! surroundings of the change are encoded again.
//!
//! Encoding records restart points: starts of pieces, or gaps between characters that are adjacent in no token. A
//! restart point is valid once the text after it is long enough that later text cannot affect it.

use std::ops::Range;

use super::{AddedToken, KnownIds, RestartPoints, TokenId, Tokenizer};
use crate::template::{ContentSpan, RenderedPrompt};

/// Bytes that a splitting rule may look ahead beyond a run of similar characters.
const LOOKAHEAD: usize = 16;

/// Bytes encoded at once.
const WINDOW: usize = if cfg!(test) { 256 } else { 4096 };

/// A point from which encoding may restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartMark {
    pub byte: usize,
    /// Ids before it.
    pub n_ids: usize,
}

/// The ids of a changing text. Belongs to the tokenizer it is first used with.
#[derive(Debug, Clone, Default)]
pub struct IncrementalEncoder {
    text: String,
    spans: Vec<ContentSpan>,
    known: Vec<Range<usize>>,
    is_rendered: bool,
    ids: Vec<TokenId>,
    marks: Vec<RestartMark>,
    n_encoded: usize,
}

/// What is encoded: a plain text, or a rendered prompt with known ids.
#[derive(Clone, Copy)]
struct EncodeInput<'a> {
    text: &'a str,
    rendered: Option<(&'a RenderedPrompt, &'a [KnownIds<'a>])>,
}

impl IncrementalEncoder {
    /// Creates an encoder without text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Encodes a text as [`Tokenizer::encode`] with control tokens as text.
    pub fn encode(&mut self, tokenizer: &Tokenizer, text: &str) -> &[TokenId] {
        self.update(tokenizer, EncodeInput { text, rendered: None })
    }

    /// Encodes a prompt as [`Tokenizer::encode_rendered`].
    pub fn encode_rendered(
        &mut self,
        tokenizer: &Tokenizer,
        rendered: &RenderedPrompt,
        known: &[KnownIds<'_>],
    ) -> &[TokenId] {
        self.update(tokenizer, EncodeInput { text: &rendered.text, rendered: Some((rendered, known)) })
    }

    /// Returns the ids of the current text.
    pub fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// Returns the bytes encoded so far, including those encoded repeatedly.
    pub fn n_encoded(&self) -> usize {
        self.n_encoded
    }

    fn update(&mut self, tokenizer: &Tokenizer, source: EncodeInput<'_>) -> &[TokenId] {
        let changed = self.first_change(source);
        let (old_ids, old_marks) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.marks));
        let kept = old_marks.iter().rposition(|mark| counts(tokenizer, source.text, mark.byte, changed));
        self.marks.extend_from_slice(kept.map_or(&[], |at| &old_marks[..=at]));
        let begin = kept.map_or(RestartMark { byte: 0, n_ids: 0 }, |at| old_marks[at]);
        self.ids.extend_from_slice(&old_ids[..begin.n_ids]);
        // What follows the change is unchanged if both texts end the same.
        let same_end = match source.rendered {
            None => common_end(&self.text[changed..], &source.text[changed..]),
            Some(_) => 0,
        };
        let tail = OldTail {
            marks: &old_marks,
            ids: &old_ids,
            begins: self.text.len() - same_end,
            moved: source.text.len() as isize - self.text.len() as isize,
        };
        self.run(tokenizer, source, begin.byte, &tail);
        self.text.replace_range(changed.., &source.text[changed..]);
        self.is_rendered = source.rendered.is_some();
        let (spans, known) =
            source.rendered.map_or((&[][..], &[][..]), |(it, known)| (&it.content_spans, known));
        spans.clone_into(&mut self.spans);
        self.known = known.iter().map(|span| span.range.clone()).collect();
        &self.ids
    }

    /// Returns the first byte that differs in text, content span or known ids.
    fn first_change(&self, source: EncodeInput<'_>) -> usize {
        let text = source.text;
        let mut at = self.text.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
        let (spans, known) =
            source.rendered.map_or((&[][..], &[][..]), |(it, known)| (&it.content_spans[..], known));
        if self.is_rendered != source.rendered.is_some() {
            at = 0;
        }
        let first = |old: Option<&Range<usize>>, new: Option<&Range<usize>>| match (old, new) {
            (Some(old), Some(new)) if old.start == new.start => old.end.min(new.end),
            (old, new) => old.into_iter().chain(new).map(|range| range.start).min().unwrap_or(usize::MAX),
        };
        let n = self.spans.iter().zip(spans).take_while(|(a, b)| a.range == b.range).count();
        at = at.min(first(self.spans.get(n).map(|it| &it.range), spans.get(n).map(|it| &it.range)));
        // Known ids may differ for the same text, so they are compared with what was written.
        let n = self.known.iter().zip(known).take_while(|(a, b)| *a == b.range).count();
        let begins = [self.known.get(n).map(|it| it.start), known.get(n).map(|it| it.range.start)];
        at = begins.into_iter().flatten().fold(at, usize::min);
        text.floor_char_boundary(at)
    }

    /// Encodes from `from` on, window by window, until the end or until old results apply again.
    fn run(&mut self, tokenizer: &Tokenizer, source: EncodeInput<'_>, from: usize, tail: &OldTail<'_>) {
        // Without restart points nothing is gained by encoding a part first.
        let has_restarts = tokenizer.restarts() != RestartPoints::Never;
        let (mut from, mut window) = (from, if has_restarts { WINDOW } else { usize::MAX });
        while from < source.text.len() {
            let (n_ids, n_marks) = (self.ids.len(), self.marks.len());
            let until = source.text.floor_char_boundary(from.saturating_add(window).min(source.text.len()));
            // A span with known ids is not split.
            let until = source.span_at(until).map_or(until, |span| span.end);
            let begins_mark = RestartMark { byte: from, n_ids };
            source.encode(tokenizer, from..until, &mut self.ids, &mut self.marks);
            self.n_encoded += until - from;
            if let Some((at, rest)) =
                tail.met(&self.marks[n_marks..], until, source.text.len(), tokenizer, source)
            {
                self.marks.truncate(n_marks + at + 1);
                let here = self.marks[n_marks + at];
                self.ids.truncate(here.n_ids);
                self.ids.extend_from_slice(&tail.ids[rest.n_ids..]);
                self.marks.extend(tail.after(rest).map(|mark| RestartMark {
                    byte: (mark.byte as isize + tail.moved) as usize,
                    n_ids: mark.n_ids - rest.n_ids + here.n_ids,
                }));
                return;
            }
            if until == source.text.len() {
                return;
            }
            // The end of a window is like the end of the text written so far.
            let last =
                self.marks[n_marks..].iter().rposition(|it| counts(tokenizer, source.text, it.byte, until));
            match last {
                Some(at) => {
                    let mark = self.marks[n_marks + at];
                    self.marks.truncate(n_marks + at + 1);
                    self.ids.truncate(mark.n_ids);
                    (from, window) = (mark.byte, WINDOW);
                }
                None => {
                    self.marks.truncate(n_marks);
                    self.ids.truncate(begins_mark.n_ids);
                    window = window.saturating_mul(2);
                }
            }
        }
    }
}

/// Results from before the change that are still valid after it.
struct OldTail<'a> {
    marks: &'a [RestartMark],
    ids: &'a [TokenId],
    /// From here on the old text is the end of the new one.
    begins: usize,
    moved: isize,
}

impl OldTail<'_> {
    /// Returns the first new restart point that matches an old one, and the old one.
    fn met(
        &self,
        marks: &[RestartMark],
        until: usize,
        len: usize,
        tokenizer: &Tokenizer,
        source: EncodeInput<'_>,
    ) -> Option<(usize, RestartMark)> {
        marks.iter().enumerate().find_map(|(at, mark)| {
            let old =
                (mark.byte as isize).checked_sub(self.moved).and_then(|byte| usize::try_from(byte).ok())?;
            let is_sure = until == len || counts(tokenizer, source.text, mark.byte, until);
            if old < self.begins || !is_sure {
                return None;
            }
            let found = self.marks.binary_search_by_key(&old, |mark| mark.byte).ok()?;
            Some((at, self.marks[found]))
        })
    }

    fn after(&self, mark: RestartMark) -> impl Iterator<Item = &RestartMark> {
        self.marks.iter().filter(move |it| it.byte > mark.byte)
    }
}

impl EncodeInput<'_> {
    /// Returns the known span around `at`.
    fn span_at(&self, at: usize) -> Option<Range<usize>> {
        let known = self.rendered.map_or(&[][..], |(_, known)| known);
        known.iter().map(|it| it.range).find(|range| range.start < at && at < range.end).cloned()
    }

    fn encode(
        &self,
        tokenizer: &Tokenizer,
        range: Range<usize>,
        ids: &mut Vec<TokenId>,
        marks: &mut Vec<RestartMark>,
    ) {
        let Some((rendered, known)) = self.rendered else {
            let accept = |added: &AddedToken, _: &Range<usize>| !added.is_control;
            let begins = range.start == 0;
            let mut marking = MarkRecorder { at: range.start, marks };
            return tokenizer.encode_marked(&self.text[range], begins, &accept, ids, Some(&mut marking));
        };
        let inside = known.iter().filter(|it| it.range.start >= range.start && it.range.end <= range.end);
        let inside: Vec<KnownIds<'_>> = inside.copied().collect();
        tokenizer.encode_spans(rendered, &inside, range, ids, Some(marks));
    }
}

/// Returns whether encoding may restart at `byte` if the text before `until` stays the same.
fn counts(tokenizer: &Tokenizer, text: &str, byte: usize, until: usize) -> bool {
    let margin = tokenizer.longest_added().max(LOOKAHEAD);
    let Some(after) = text.get(byte..until.min(text.len())).filter(|after| after.len() >= 2 * margin) else {
        return false;
    };
    let Some(first) = after.chars().next().map(class) else { return false };
    let run = after.find(|c: char| class(c) != first);
    run.is_some_and(|run| run + margin <= after.len())
}

/// Splitting rules look as far as a run of similar characters.
fn class(c: char) -> u8 {
    match c {
        c if c.is_whitespace() => 0,
        c if c.is_numeric() => 1,
        c if c.is_alphabetic() || c > '\u{2ff}' => 2,
        _ => 3,
    }
}

fn common_end(old: &str, new: &str) -> usize {
    let n = old.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    // Not inside a character.
    (0..=n).rev().find(|n| new.is_char_boundary(new.len() - n)).unwrap_or(0)
}

/// Records restart points of a text that begins at byte `at` of the whole.
pub struct MarkRecorder<'a> {
    pub at: usize,
    pub marks: &'a mut Vec<RestartMark>,
}

impl MarkRecorder<'_> {
    /// Records that encoding may restart `offset` bytes into this text, after `n_ids` ids.
    pub fn note(&mut self, offset: usize, n_ids: usize) {
        // All of them: after thinning, old and new ones might never meet again.
        self.marks.push(RestartMark { byte: self.at + offset, n_ids });
    }
}

#[cfg(test)]
mod tests;
