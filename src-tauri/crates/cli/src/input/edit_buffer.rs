//! A text and the cursor in it. The cursor never stands inside a character, or before what combines with one.

use unicode_width::UnicodeWidthChar;

/// The text that is edited.
#[derive(Debug, Default)]
pub struct EditBuffer {
    text: String,
    /// In bytes.
    cursor: usize,
}

impl EditBuffer {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor stands, in bytes of the text.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Replaces the text; the cursor stands behind it.
    pub fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Inserts at the cursor.
    pub fn insert(&mut self, piece: &str) {
        self.text.insert_str(self.cursor, piece);
        self.cursor += piece.len();
    }

    /// Moves one character to the left.
    pub fn move_left(&mut self) {
        self.cursor = self.before();
    }

    /// Moves one character to the right.
    pub fn move_right(&mut self) {
        self.cursor = self.after();
    }

    /// Moves to the beginning of the word on the left.
    pub fn move_word_left(&mut self) {
        self.cursor = self.word_start();
    }

    /// Moves behind the word on the right.
    pub fn move_word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let blank = rest.len() - rest.trim_start().len();
        let word = rest[blank..].find(char::is_whitespace).unwrap_or(rest.len() - blank);
        self.cursor += blank + word;
    }

    /// Moves to the beginning of the line.
    pub fn move_home(&mut self) {
        self.cursor = self.line_start();
    }

    /// Moves to the end of the line.
    pub fn move_end(&mut self) {
        self.cursor = self.line_end();
    }

    /// Moves behind the text.
    pub fn move_to_end(&mut self) {
        self.cursor = self.text.len();
    }

    /// Moves up a line. Returns false on the first one.
    pub fn move_up(&mut self) -> bool {
        let start = self.line_start();
        let Some(end) = start.checked_sub(1) else { return false };
        let column = self.text[start..self.cursor].chars().count();
        let above = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = above + nth(&self.text[above..end], column);
        true
    }

    /// Moves down a line. Returns false on the last one.
    pub fn move_down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let column = self.text[self.line_start()..self.cursor].chars().count();
        let below = end + 1;
        let below_end = self.text[below..].find('\n').map_or(self.text.len(), |at| below + at);
        self.cursor = below + nth(&self.text[below..below_end], column);
        true
    }

    /// Deletes the character on the left.
    pub fn delete_left(&mut self) {
        self.delete_from(self.before());
    }

    /// Deletes the character on the right.
    pub fn delete_right(&mut self) {
        self.text.drain(self.cursor..self.after());
    }

    /// Deletes the word on the left.
    pub fn delete_word(&mut self) {
        self.delete_from(self.word_start());
    }

    /// Deletes the line up to the cursor.
    pub fn delete_to_start(&mut self) {
        self.delete_from(self.line_start());
    }

    /// Deletes the line from the cursor on.
    pub fn delete_to_end(&mut self) {
        self.text.drain(self.cursor..self.line_end());
    }

    fn delete_from(&mut self, start: usize) {
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    fn before(&self) -> usize {
        let mut at = self.cursor;
        while let Some(c) = self.text[..at].chars().next_back() {
            at -= c.len_utf8();
            if !is_combining(c) {
                break;
            }
        }
        at
    }

    fn after(&self) -> usize {
        let mut chars = self.text[self.cursor..].chars();
        let first = chars.next().map_or(0, char::len_utf8);
        let combined: usize = chars.take_while(|c| is_combining(*c)).map(char::len_utf8).sum();
        self.cursor + first + combined
    }

    fn word_start(&self) -> usize {
        let word = self.text[..self.cursor].trim_end();
        word.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }
}

fn is_combining(c: char) -> bool {
    c.width() == Some(0)
}

/// Bytes up to the character with this number, or to the end.
fn nth(line: &str, n: usize) -> usize {
    line.char_indices().nth(n).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with `|` at the cursor.
    fn shown(buffer: &EditBuffer) -> String {
        let (before, after) = buffer.text.split_at(buffer.cursor);
        format!("{before}|{after}")
    }

    fn buffer(shown: &str) -> EditBuffer {
        let (before, after) = shown.split_once('|').unwrap();
        EditBuffer { text: format!("{before}{after}"), cursor: before.len() }
    }

    #[test]
    fn every_key_moves_or_deletes_what_it_says() {
        type Edit = fn(&mut EditBuffer);
        let cases: &[(&str, Edit, &str)] = &[
            ("ab|", EditBuffer::move_left, "a|b"),
            ("|ab", EditBuffer::move_left, "|ab"),
            ("a|b", EditBuffer::move_right, "ab|"),
            ("ab|", EditBuffer::move_right, "ab|"),
            ("ae\u{301}|b", EditBuffer::move_left, "a|e\u{301}b"),
            ("a|e\u{301}b", EditBuffer::move_right, "ae\u{301}|b"),
            ("日本|", EditBuffer::delete_left, "日|"),
            ("|日本", EditBuffer::delete_right, "|本"),
            ("one two  |", EditBuffer::delete_word, "one |"),
            ("one two|", EditBuffer::move_word_left, "one |two"),
            ("one| two x", EditBuffer::move_word_right, "one two| x"),
            ("a\nbc|d\ne", EditBuffer::move_home, "a\n|bcd\ne"),
            ("a\nb|cd\ne", EditBuffer::move_end, "a\nbcd|\ne"),
            ("a\nbc|d\ne", EditBuffer::delete_to_start, "a\n|d\ne"),
            ("a\nb|cd\ne", EditBuffer::delete_to_end, "a\nb|\ne"),
            ("a|b", EditBuffer::move_to_end, "ab|"),
        ];
        for (before, edit, after) in cases {
            let mut buffer = buffer(before);
            edit(&mut buffer);
            assert_eq!(shown(&buffer), *after, "{before}");
        }
    }

    #[test]
    fn lines_are_left_only_where_there_is_another() {
        let mut lines = buffer("abc\nd|\nefg");
        assert!(lines.move_up());
        assert_eq!(shown(&lines), "a|bc\nd\nefg");
        assert!(!lines.move_up());
        lines.move_end();
        assert!(lines.move_down());
        assert_eq!(shown(&lines), "abc\nd|\nefg");
        assert!(lines.move_down() && !lines.move_down());
        assert_eq!(shown(&lines), "abc\nd\ne|fg");
        lines.insert("xy");
        assert_eq!(shown(&lines), "abc\nd\nexy|fg");
    }
}
