//! Splits a text into passages at the end of a paragraph, else a line, else a word; never across
//! pages.

use std::ops::Range;

use crate::pdf::PAGE_BREAK;

/// What a passage has at most, and what it should have at least before a good place ends it. Bytes.
const MOST: usize = 900;
const LEAST: usize = 350;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// From 1.
    pub first_line: u32,
    pub last_line: u32,
    /// From 1; None: it has no pages.
    pub page: Option<u32>,
}

impl Passage {
    /// Only this share of it is left, to the end of a word.
    pub fn shorten(&mut self, text: &str, share: f64) {
        let words = &text[self.range.clone()];
        let end = words.floor_char_boundary((words.len() as f64 * share) as usize);
        let end = words[..end].rfind(char::is_whitespace).unwrap_or(end);
        let left = words[..end].trim_end();
        self.range.end = self.range.start + left.len();
        self.last_line = self.first_line + lines(left);
    }
}

/// All of a text; blanks between passages belong to none.
pub fn cut(text: &str, has_pages: bool) -> Vec<Passage> {
    let mut passages = Vec::new();
    let (mut line, mut start) = (1_u32, 0);
    let pages: Vec<&str> = if has_pages { text.split(PAGE_BREAK).collect() } else { vec![text] };
    for (n, page) in pages.into_iter().enumerate() {
        let number = has_pages.then(|| u32::try_from(n + 1).unwrap_or(u32::MAX));
        let mut at = 0;
        while at < page.len() {
            let end = at + end_of(&page[at..]);
            let piece = &page[at..end];
            let lead = piece.len() - piece.trim_start().len();
            let words = piece.trim();
            let first_line = line + lines(&piece[..lead]);
            if !words.is_empty() {
                let begin = start + at + lead;
                passages.push(Passage {
                    range: begin..begin + words.len(),
                    first_line,
                    last_line: first_line + lines(words),
                    page: number,
                });
            }
            line += lines(piece);
            at = end;
        }
        start += page.len() + PAGE_BREAK.len_utf8();
    }
    passages
}

fn lines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

/// Where the first passage of a text ends.
fn end_of(text: &str) -> usize {
    if text.len() <= MOST {
        return text.len();
    }
    let most = text.floor_char_boundary(MOST);
    let head = &text[..most];
    let good = |mark: &str| head.rfind(mark).map(|at| at + mark.len()).filter(|end| *end >= LEAST);
    let places = ["\n\n", "\n", ". ", "。", " "];
    places.into_iter().find_map(good).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_end_where_something_ends() {
        let paragraph = "A sentence of words that say little. ".repeat(15);
        let text = format!("{paragraph}\n\n{paragraph}\n\n{paragraph}\n");
        let passages = cut(&text, false);
        assert_eq!(passages.len(), 3);
        for passage in &passages {
            assert_eq!(&text[passage.range.clone()], paragraph.trim());
        }
        let lines: Vec<_> = passages.iter().map(|it| (it.first_line, it.last_line)).collect();
        assert_eq!(lines, [(1, 1), (3, 3), (5, 5)]);
    }

    #[test]
    fn everything_is_in_some_passage_and_lines_are_counted() {
        let rows: Vec<String> = (1..=500).map(|n| format!("row {n}, with something in it, ä東{n}")).collect();
        let text = rows.join("\n");
        let passages = cut(&text, false);
        let together: Vec<&str> = passages.iter().flat_map(|it| text[it.range.clone()].lines()).collect();
        assert_eq!(together, rows);
        for passage in &passages {
            let first = &text[passage.range.clone()];
            assert!(first.starts_with(&rows[passage.first_line as usize - 1]), "{passage:?}");
            assert!(first.ends_with(&rows[passage.last_line as usize - 1]), "{passage:?}");
            assert!(first.len() <= MOST);
        }
    }

    #[test]
    fn a_passage_is_shortened_at_words() {
        let text = "one two\nthree four\nfive";
        let mut passage = cut(text, false).remove(0);
        passage.shorten(text, 0.7);
        assert_eq!((&text[passage.range.clone()], passage.last_line), ("one two\nthree", 2));
        passage.shorten(text, 0.0);
        assert_eq!((&text[passage.range.clone()], passage.last_line), ("", 1));
    }

    #[test]
    fn pages_are_kept_apart_and_long_words_are_cut() {
        let text = format!("one\u{c}\u{c}three\nand {}", "東".repeat(1000));
        let passages = cut(&text, true);
        let pages: Vec<_> = passages.iter().map(|it| it.page).collect();
        assert_eq!(pages, [Some(1), Some(3), Some(3), Some(3), Some(3)]);
        assert_eq!(&text[passages[0].range.clone()], "one");
        assert_eq!(cut("", false), []);
        assert_eq!(cut(" \n ", true), []);
    }
}
