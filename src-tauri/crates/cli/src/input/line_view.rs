//! Where each character of an edited text stands on the screen, and what draws it there.

use unicode_width::UnicodeWidthChar;

/// Rows and columns of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    pub rows: usize,
    pub columns: usize,
}

/// What of a text is on the screen.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LineView {
    rows: Vec<String>,
    /// Row and column.
    cursor: (usize, usize),
}

impl LineView {
    /// Lays out a text behind its prompt. `cursor`: in bytes of the text. Of more rows than the screen has, those around
    /// the cursor are shown.
    pub fn of(prompt: &str, text: &str, cursor: usize, size: ScreenSize) -> Self {
        let (mut rows, mut column, mut at_cursor) = (vec![String::new()], 0, None);
        let places = prompt.chars().map(|c| (None, c));
        for (at, c) in places.chain(text.char_indices().map(|(at, c)| (Some(at), c))) {
            let (shown, width) = shown(c);
            let is_break = c == '\n' && at.is_some();
            if !is_break && column + width > size.columns {
                rows.push(String::new());
                column = 0;
            }
            if at == Some(cursor) {
                at_cursor = Some((rows.len() - 1, column));
            }
            if is_break {
                rows.push(String::new());
                column = 0;
            } else if let Some(row) = rows.last_mut() {
                row.push(shown);
                column += width;
            }
        }
        let at_end = (rows.len() - 1, column);
        let mut cursor = at_cursor.unwrap_or(at_end);
        if cursor.1 >= size.columns {
            if cursor.0 + 1 == rows.len() {
                rows.push(String::new());
            }
            cursor = (cursor.0 + 1, 0);
        }
        let first = (cursor.0 + 1).saturating_sub(size.rows.max(1));
        let rows: Vec<String> = rows.into_iter().skip(first).take(size.rows.max(1)).collect();
        Self { rows, cursor: (cursor.0 - first, cursor.1) }
    }

    /// What draws this view over the one before.
    pub fn drawn_over(&self, before: &Self) -> String {
        let mut drawn = String::from("\r");
        if before.cursor.0 > 0 {
            drawn.push_str(&format!("\x1b[{}A", before.cursor.0));
        }
        drawn.push_str("\x1b[J");
        drawn.push_str(&self.rows.join("\r\n"));
        let n_up = self.rows.len() - 1 - self.cursor.0;
        if n_up > 0 {
            drawn.push_str(&format!("\x1b[{n_up}A"));
        }
        drawn.push('\r');
        if self.cursor.1 > 0 {
            drawn.push_str(&format!("\x1b[{}C", self.cursor.1));
        }
        drawn
    }
}

/// How a character is shown, and its columns. No character of a text steers the terminal.
fn shown(c: char) -> (char, usize) {
    match (c, c.width()) {
        ('\t', _) => (' ', 1),
        ('\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}', _) | (_, None) => ('\u{fffd}', 1),
        (c, Some(width)) => (c, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, cursor: usize, size: (usize, usize), rows: &[&str], at: (usize, usize)) {
        let size = ScreenSize { rows: size.0, columns: size.1 };
        let view = LineView::of("> ", text, cursor, size);
        let rows: Vec<String> = rows.iter().map(|row| row.to_string()).collect();
        assert_eq!(view, LineView { rows, cursor: at }, "{text:?} at {cursor}");
    }

    #[test]
    fn rows_wrap_where_the_terminal_wraps() {
        check("", 0, (24, 80), &["> "], (0, 2));
        check("abc", 1, (24, 80), &["> abc"], (0, 3));
        check("abcdef", 6, (24, 6), &["> abcd", "ef"], (1, 2));
        check("abcd", 4, (24, 6), &["> abcd", ""], (1, 0));
        check("abcd\nx", 4, (24, 6), &["> abcd", "x"], (1, 0));
        check("abcdef", 4, (24, 6), &["> abcd", "ef"], (1, 0));
        check("a\nb", 3, (24, 80), &["> a", "b"], (1, 1));
        check("a\n", 2, (24, 80), &["> a", ""], (1, 0));
        check("日本", 6, (24, 5), &["> 日", "本"], (1, 2));
        check("e\u{301}x", 4, (24, 80), &["> e\u{301}x"], (0, 4));
        check("a\x1b\u{202e}\tb", 7, (24, 80), &["> a\u{fffd}\u{fffd} b"], (0, 7));
    }

    #[test]
    fn of_a_long_text_the_rows_at_the_cursor_are_shown() {
        check("1\n2\n3\n4", 7, (2, 80), &["3", "4"], (1, 1));
        check("1\n2\n3\n4", 0, (2, 80), &["> 1", "2"], (0, 2));
        check("1\n2\n3\n4", 2, (2, 80), &["> 1", "2"], (1, 0));
    }

    #[test]
    fn drawing_begins_where_the_last_view_began() {
        let size = ScreenSize { rows: 24, columns: 80 };
        let first = LineView::of("> ", "a\nb", 3, size);
        assert_eq!(first.drawn_over(&LineView::default()), "\r\x1b[J> a\r\nb\r\x1b[1C");
        let second = LineView::of("> ", "a\nb", 0, size);
        assert_eq!(second.drawn_over(&first), "\r\x1b[1A\x1b[J> a\r\nb\x1b[1A\r\x1b[2C");
    }
}
