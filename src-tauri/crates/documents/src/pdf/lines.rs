//! Joins pieces of text into lines by their positions: inserts spaces and line breaks.

/// A gap wider than this part of the letters' height is a space.
const SPACE: f32 = 0.2;
/// A piece so far up or down is on another line.
const LINE: f32 = 0.5;
/// Farther than this the next line begins a paragraph.
const PARAGRAPH: f32 = 1.9;

/// A page's text as it grows.
#[derive(Default)]
pub struct Lines {
    text: String,
    /// Where the last piece began and ended, and its height; in the page's units.
    last: Option<(f32, f32, f32, f32)>,
}

impl Lines {
    /// A piece at (`x`, `y`), `width` wide and `height` high.
    pub fn put(&mut self, (x, y): (f32, f32), width: f32, height: f32, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let height = height.abs().max(0.1);
        if let Some((begin, end, last_y, last_height)) = self.last {
            let high = height.max(last_height);
            let down = (y - last_y).abs();
            if down > high * PARAGRAPH {
                self.end_line();
                self.end_paragraph();
            } else if down > high * LINE || x <= begin {
                self.end_line();
            } else if x > end + high * SPACE {
                self.space();
            }
        }
        let piece = piece.replace(['\r', '\n', super::PAGE_BREAK, '\0'], " ");
        self.text.push_str(&piece);
        self.last = Some((x, x + width, y, height));
    }

    /// A gap that the file itself makes between two letters.
    pub fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn end_line(&mut self) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn end_paragraph(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn into_text(self) -> String {
        self.text
    }
}
