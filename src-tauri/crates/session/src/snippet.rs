//! Excerpts of texts around what a search found, in the words as they were written.

use std::collections::VecDeque;

use crate::search_form::{SourceWord, find_form, words};

/// Words of an excerpt.
const MAX_SNIPPET_WORDS: usize = 28;

/// Words of an excerpt before the first match.
const WORDS_BEFORE: usize = 8;

/// Characters of a snippet on each side of a literal match.
const CONTEXT_CHARS: usize = 60;

/// Longest piece of an excerpt, in characters: a word may be an encoded file.
const MAX_PIECE_CHARS: usize = 400;

/// Excerpt in pieces; true marks a match.
pub(crate) type SnippetPieces = Vec<(String, bool)>;

/// A word or phrase that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchPhrase {
    /// Search forms of its words.
    pub forms: Vec<String>,
    /// The last word may go on.
    pub is_prefix: bool,
}

impl SearchPhrase {
    /// Whether `words` begin with it.
    fn is_at<'a>(&self, mut words: impl Iterator<Item = &'a SourceWord>) -> bool {
        let last = self.forms.len().saturating_sub(1);
        !self.forms.is_empty()
            && self.forms.iter().enumerate().all(|(n, form)| {
                words.next().is_some_and(|word| match self.is_prefix && n == last {
                    true => word.form.starts_with(form),
                    false => word.form == *form,
                })
            })
    }
}

/// Words around the first match, and whether the text begins and ends with them.
struct Excerpt {
    words: VecDeque<SourceWord>,
    is_start: bool,
    is_end: bool,
}

/// Excerpt around the first phrase of the text, or its beginning where none is found.
pub(crate) fn snippet_of(text: &str, phrases: &[SearchPhrase]) -> SnippetPieces {
    let excerpt = excerpt(text, phrases);
    let n = excerpt.words.len();
    // Whether a word is marked, and whether what follows it is.
    let mut marks = vec![(false, false); n];
    for start in 0..n {
        for phrase in phrases.iter().filter(|phrase| phrase.is_at(excerpt.words.iter().skip(start))) {
            for (k, mark) in marks.iter_mut().skip(start).take(phrase.forms.len()).enumerate() {
                *mark = (true, mark.1 || k + 1 < phrase.forms.len());
            }
        }
    }
    let mut pieces = SnippetPieces::new();
    let mut at = match excerpt.words.front() {
        Some(first) if !excerpt.is_start => {
            push_piece(&mut pieces, "…", false);
            first.start
        }
        _ => 0,
    };
    let mut is_gap_marked = false;
    for (word, (is_hit, joins_next)) in excerpt.words.iter().zip(&marks) {
        push_piece(&mut pieces, text.get(at..word.start).unwrap_or_default(), is_gap_marked);
        push_piece(&mut pieces, text.get(at.max(word.start)..word.end).unwrap_or_default(), *is_hit);
        at = at.max(word.end);
        is_gap_marked = *joins_next;
    }
    let rest = if excerpt.is_end { text.get(at..).unwrap_or_default() } else { "…" };
    push_piece(&mut pieces, rest, false);
    pieces
}

fn excerpt(text: &str, phrases: &[SearchPhrase]) -> Excerpt {
    let longest = phrases.iter().map(|phrase| phrase.forms.len()).max().unwrap_or(0);
    let mut ahead = words(text);
    let mut window = VecDeque::new();
    let mut n_before = 0;
    let is_found = loop {
        let ends_here = |phrase: &SearchPhrase| {
            let start = window.len().checked_sub(phrase.forms.len());
            start.is_some_and(|start| phrase.is_at(window.iter().skip(start)))
        };
        if phrases.iter().any(ends_here) {
            break true;
        }
        let Some(word) = ahead.next() else { break false };
        window.push_back(word);
        if window.len() > WORDS_BEFORE + longest {
            window.pop_front();
            n_before += 1;
        }
    };
    if !is_found {
        ahead = words(text);
        (window, n_before) = (VecDeque::new(), 0);
    }
    window.extend(ahead.by_ref().take(MAX_SNIPPET_WORDS.saturating_sub(window.len())));
    Excerpt { words: window, is_start: n_before == 0, is_end: ahead.next().is_none() }
}

/// Excerpt around the first place where the text has the search form. None if it has it nowhere.
pub(crate) fn snippet_around(text: &str, form: &str) -> Option<SnippetPieces> {
    let found = find_form(text, form)?;
    let before = text.get(..found.start)?;
    let after = text.get(found.end..)?;
    let mut pieces = SnippetPieces::new();
    let cut = before.char_indices().rev().nth(CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
    push_piece(&mut pieces, if cut > 0 { "…" } else { "" }, false);
    push_piece(&mut pieces, before.get(cut..)?, false);
    push_piece(&mut pieces, text.get(found)?, true);
    let end = after.char_indices().nth(CONTEXT_CHARS).map_or(after.len(), |(at, _)| at);
    push_piece(&mut pieces, after.get(..end)?, false);
    push_piece(&mut pieces, if end < after.len() { "…" } else { "" }, false);
    Some(pieces)
}

/// Appends a piece, joined with the last one where both are marked or neither is.
fn push_piece(pieces: &mut SnippetPieces, piece: &str, is_hit: bool) {
    if piece.is_empty() {
        return;
    }
    let cut = piece.char_indices().nth(MAX_PIECE_CHARS).map(|(at, _)| at);
    let (piece, rest) = (cut.and_then(|at| piece.get(..at)).unwrap_or(piece), cut.map_or("", |_| "…"));
    match pieces.last_mut() {
        Some((last, was_hit)) if *was_hit == is_hit => {
            last.push_str(piece);
            last.push_str(rest);
        }
        _ => pieces.push((format!("{piece}{rest}"), is_hit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(forms: &[&str], is_prefix: bool) -> SearchPhrase {
        SearchPhrase { forms: forms.iter().map(|&form| form.to_owned()).collect(), is_prefix }
    }

    fn check(text: &str, phrases: &[SearchPhrase], expected: &[(&str, bool)]) {
        let pieces = snippet_of(text, phrases);
        let pieces: Vec<_> = pieces.iter().map(|(text, is_hit)| (text.as_str(), *is_hit)).collect();
        assert_eq!(pieces, expected, "{text}");
    }

    #[test]
    fn matches_are_marked_in_the_text_as_written() {
        check(
            "Die Straße hier",
            &[phrase(&["strass"], true)],
            &[("Die ", false), ("Straße", true), (" hier", false)],
        );
        check(
            "東京タワー",
            &[phrase(&["京", "タ"], true)],
            &[("東", false), ("京タ", true), ("ワー", false)],
        );
        check(
            "a Brown  Fox.",
            &[phrase(&["brown", "fox"], false)],
            &[("a ", false), ("Brown  Fox", true), (".", false)],
        );
        check("nothing here", &[phrase(&["else"], false)], &[("nothing here", false)]);
        check("", &[phrase(&["else"], false)], &[]);
    }

    #[test]
    fn an_excerpt_is_cut_on_both_sides() {
        let text = format!("{}needle{}", "before ".repeat(100), " after".repeat(100));
        let before = format!("…{}", "before ".repeat(8));
        let after = format!("{}…", " after".repeat(19));
        check(&text, &[phrase(&["needle"], true)], &[(&before, false), ("needle", true), (&after, false)]);
    }

    #[test]
    fn a_word_without_end_is_cut() {
        let text = "x".repeat(100_000);
        let pieces = snippet_of(&text, &[phrase(&["x"], true)]);
        assert_eq!(pieces, [(format!("{}…", "x".repeat(MAX_PIECE_CHARS)), true)]);
    }

    #[test]
    fn symbols_are_shown_with_what_is_around_them() {
        let pieces = snippet_around("I ❤\u{FE0F} it", "❤").unwrap();
        let pieces: Vec<_> = pieces.iter().map(|(text, is_hit)| (text.as_str(), *is_hit)).collect();
        assert_eq!(pieces, [("I ", false), ("❤\u{FE0F}", true), (" it", false)]);
        assert_eq!(snippet_around("nothing", "❤"), None);
    }
}
