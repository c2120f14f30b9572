//! Stop strings: ends a reply at the first of them and never shows part of one.
//!
//! Text that may begin a stop string is held back until that is decided. Knows nothing of tokens.

/// Watches one reply for its stop strings.
#[derive(Debug, Clone, Default)]
pub struct StopStrings {
    /// With their places in the caller's list.
    stops: Vec<(usize, String)>,
    held: String,
    found: Option<usize>,
}

impl StopStrings {
    /// Creates a watch. Empty strings are ignored: they would stop everything.
    pub fn new(stops: &[String]) -> Self {
        let stops = stops.iter().cloned().enumerate().filter(|(_, stop)| !stop.is_empty());
        Self { stops: stops.collect(), held: String::new(), found: None }
    }

    /// Which of the stop strings was found: its place in the list.
    pub fn found(&self) -> Option<usize> {
        self.found
    }

    /// Takes the next piece of the reply and appends to `out` what may be shown. Returns true once a stop string was
    /// found: the text before it is in `out`, the rest is dropped.
    pub fn push(&mut self, piece: &str, out: &mut String) -> bool {
        if self.stops.is_empty() {
            out.push_str(piece);
            return false;
        }
        self.held.push_str(piece);
        let found =
            self.stops.iter().filter_map(|(index, stop)| Some((self.held.find(stop.as_str())?, *index)));
        if let Some((at, index)) = found.min() {
            self.found = Some(index);
            out.push_str(&self.held[..at]);
            self.held.clear();
            return true;
        }
        let keep = self.stops.iter().map(|(_, stop)| held_suffix(&self.held, stop)).max().unwrap_or(0);
        let shown = self.held.len() - keep;
        out.push_str(&self.held[..shown]);
        self.held.drain(..shown);
        false
    }

    /// Ends the reply without a stop string: what was held back is appended to `out`.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

/// Returns the length in bytes of the longest proper prefix of `tag` that `text` ends with.
pub(crate) fn held_suffix(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len().saturating_sub(1));
    (1..=longest).rev().find(|&n| tag.is_char_boundary(n) && text.ends_with(&tag[..n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stops: &[&str], pieces: &[&str], expected: &[&str], stopped: bool) {
        let stops: Vec<String> = stops.iter().map(|s| s.to_string()).collect();
        let mut watch = StopStrings::new(&stops);
        let mut shown = Vec::new();
        for piece in pieces {
            let mut out = String::new();
            let hit = watch.push(piece, &mut out);
            shown.push(out);
            if hit {
                assert_eq!(shown, expected);
                assert!(stopped);
                return;
            }
        }
        let mut out = String::new();
        watch.finish(&mut out);
        shown.push(out);
        assert_eq!(shown, expected);
        assert!(!stopped);
    }

    #[test]
    fn the_string_that_was_found_is_told() {
        let mut watch = StopStrings::new(&["".into(), "END".into(), "\n".into()]);
        assert_eq!((watch.push("a", &mut String::new()), watch.found()), (false, None));
        assert_eq!((watch.push("b\nEND", &mut String::new()), watch.found()), (true, Some(2)), "the first");
    }

    #[test]
    fn stop_strings_end_and_hold_back_text() {
        check(&[], &["a", "b"], &["a", "b", ""], false);
        check(&[""], &["a"], &["a", ""], false);
        check(&["END"], &["abcEND", "x"], &["abc"], true);
        check(&["END"], &["abcE", "N", "Dx"], &["abc", "", ""], true);
        check(&["END"], &["abcE", "N", "d"], &["abc", "", "ENd", ""], false);
        check(&["END"], &["E", "E", "END"], &["", "E", "E"], true);
        check(&["aab"], &["a", "a", "a", "b"], &["", "", "a", ""], true);
        check(&["\n\n", "User:"], &["hi\n", "\nUser:"], &["hi", ""], true);
        check(&["User:", "hi"], &["ohi User:"], &["o"], true);
        check(&["…x"], &["a…", "y"], &["a", "…y", ""], false);
        check(&["stop"], &["st"], &["", "st"], false);
    }
}
