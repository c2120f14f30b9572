//! A conversation's title: the first words of its first message.

/// Longest title, in characters.
pub const MAX_CHARS: usize = 60;

/// One line without control characters; cut between words where it is long.
pub fn clean(text: &str) -> String {
    let visible = |c: &char| !is_invisible(*c);
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .map(|word| word.chars().filter(visible).collect::<String>())
        .filter(|word| !word.is_empty())
        .take(MAX_CHARS)
        .collect();
    let line = words.join(" ");
    if line.chars().count() <= MAX_CHARS {
        return line;
    }
    let cut: String = line.chars().take(MAX_CHARS - 1).collect();
    let kept = match cut.rfind(' ') {
        Some(end) if end > cut.len() / 2 => &cut[..end],
        Some(_) | None => &cut,
    };
    format!("{}…", kept.trim_end_matches([' ', ',', '.', ';', ':', '-']))
}

/// Of a first message; never empty.
pub fn of_message(text: &str) -> String {
    let title = clean(text.trim_start_matches(['#', '*', '>', '-', '`', ' ', '\n']));
    if title.is_empty() { "New chat".into() } else { title }
}

/// Characters that show nothing and can turn a line around: zero-width, bidi, tags.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200C}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        let cases = [
            ("How do I add a model?", "How do I add a model?"),
            ("  two\n\nlines\tand\0more ", "two lines and more"),
            ("", "New chat"),
            ("## \u{202E}\u{200B}", "New chat"),
            ("# Heading", "Heading"),
            ("👩‍👩‍👧 family", "👩‍👩‍👧 family"),
            (
                "Please explain, in as much detail as you can, how a transformer attends to its tokens",
                "Please explain, in as much detail as you can, how a…",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(of_message(text), expected);
        }
        let long = of_message(&"x".repeat(500));
        assert_eq!(long.chars().count(), MAX_CHARS);
    }
}
