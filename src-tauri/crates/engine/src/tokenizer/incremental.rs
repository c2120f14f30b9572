//! Encoding a text that changes: after each change the ids are those of encoding the whole text, and only what is
//! near the change is encoded again.
//!
//! While a text is encoded, places are noted from which encoding may begin again: where a piece begins, or between
//! two characters that stand side by side in no token. Such a place counts once the text after it is long enough
//! that nothing written later can reach back to it.

use std::ops::Range;

use super::{AddedToken, KnownIds, TokenId, Tokenizer};
use crate::template::{ContentSpan, RenderedPrompt};

/// Bytes that a rule for pieces may look ahead beyond a run of like characters.
const LOOKAHEAD: usize = 16;

/// Bytes that are encoded at once.
const WINDOW: usize = if cfg!(test) { 256 } else { 4096 };

/// A place from which encoding may begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartMark {
    pub byte: usize,
    /// Ids before it.
    pub n_ids: usize,
}

/// The ids of a text that changes. Belongs to the tokenizer it is first used with.
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

/// What is encoded: a text alone, or a rendered prompt with stretches whose ids are known.
#[derive(Clone, Copy)]
struct EncodeInput<'a> {
    text: &'a str,
    rendered: Option<(&'a RenderedPrompt, &'a [KnownIds<'a>])>,
}

impl IncrementalEncoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Tokenizer::encode`] with control tokens as text.
    pub fn encode(&mut self, tokenizer: &Tokenizer, text: &str) -> &[TokenId] {
        self.update(tokenizer, EncodeInput { text, rendered: None })
    }

    /// As [`Tokenizer::encode_rendered`].
    pub fn encode_rendered(
        &mut self,
        tokenizer: &Tokenizer,
        rendered: &RenderedPrompt,
        known: &[KnownIds<'_>],
    ) -> &[TokenId] {
        self.update(tokenizer, EncodeInput { text: &rendered.text, rendered: Some((rendered, known)) })
    }

    /// The ids of the text as it is.
    pub fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// Bytes that were encoded since the beginning, those encoded again included.
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
        // What follows the change is as it was, if the rest of both texts is the same.
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
        self.known = known.iter().map(|stretch| stretch.range.clone()).collect();
        &self.ids
    }

    /// The first byte that is another, is somebody else's, or has other known ids than before.
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
        // Known ids may be others for the same text: what they are is compared with what was written.
        let n = self.known.iter().zip(known).take_while(|(a, b)| *a == b.range).count();
        let begins = [self.known.get(n).map(|it| it.start), known.get(n).map(|it| it.range.start)];
        at = begins.into_iter().flatten().fold(at, usize::min);
        text.floor_char_boundary(at)
    }

    /// Encodes from `from` on, window by window, until the end or until it meets what is known from before.
    fn run(&mut self, tokenizer: &Tokenizer, source: EncodeInput<'_>, from: usize, tail: &OldTail<'_>) {
        let (mut from, mut window) = (from, WINDOW);
        while from < source.text.len() {
            let (n_ids, n_marks) = (self.ids.len(), self.marks.len());
            let until = source.text.floor_char_boundary(from.saturating_add(window).min(source.text.len()));
            // A stretch with known ids is one whole.
            let until = source.stretch_at(until).map_or(until, |stretch| stretch.end);
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
            // The end of a window is like the end of what has been written so far.
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

/// What was known of the text before the change and still holds after it.
struct OldTail<'a> {
    marks: &'a [RestartMark],
    ids: &'a [TokenId],
    /// From here on the old text is the end of the new one.
    begins: usize,
    moved: isize,
}

impl OldTail<'_> {
    /// The first of the new marks that stands where an old one did, and that old one.
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
    /// The known stretch that `at` lies inside.
    fn stretch_at(&self, at: usize) -> Option<Range<usize>> {
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
        tokenizer.encode_stretches(rendered, &inside, range, ids, Some(marks));
    }
}

/// Whether encoding may begin again at `byte`, if everything before `until` stays as it is.
fn counts(tokenizer: &Tokenizer, text: &str, byte: usize, until: usize) -> bool {
    let margin = tokenizer.longest_added().max(LOOKAHEAD);
    let Some(after) = text.get(byte..until.min(text.len())).filter(|after| after.len() >= 2 * margin) else {
        return false;
    };
    let Some(first) = after.chars().next().map(class) else { return false };
    let run = after.find(|c: char| class(c) != first);
    run.is_some_and(|run| run + margin <= after.len())
}

/// Rules for pieces look as far as a run of like characters goes.
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
    // Not in the middle of a character.
    (0..=n).rev().find(|n| new.is_char_boundary(new.len() - n)).unwrap_or(0)
}

/// Notes marks for a text that begins at byte `at` of the whole.
pub struct MarkRecorder<'a> {
    pub at: usize,
    pub marks: &'a mut Vec<RestartMark>,
}

impl MarkRecorder<'_> {
    /// Encoding may begin again `offset` bytes into this text, before which there are `n_ids`.
    pub fn note(&mut self, offset: usize, n_ids: usize) {
        // All of them: thinned out by distance, old and new ones might never meet again after a change.
        self.marks.push(RestartMark { byte: self.at + offset, n_ids });
    }
}

#[cfg(test)]
mod tests;
