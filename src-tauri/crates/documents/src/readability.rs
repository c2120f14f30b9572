//! How much of a text could not be read: letters that no font or encoding explains.

/// Below this share, in percent, unreadable letters are single symbols.
const TOLERATED_PERCENT: usize = 3;

/// The unreadable share of a text's letters, in percent. None: too small to matter.
pub fn unreadable_percent(text: &str) -> Option<u32> {
    let (mut n, mut n_unknown) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        n += 1;
        n_unknown += usize::from(c == '\u{fffd}' || ('\u{e000}'..='\u{f8ff}').contains(&c));
    }
    let is_much = n_unknown * 100 > n * TOLERATED_PERCENT;
    is_much.then(|| u32::try_from((n_unknown * 100).div_ceil(n.max(1))).unwrap_or(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_unknown_letters_are_tolerated() {
        for (n_unknown, n_known, expected) in
            [(0, 0, None), (0, 9, None), (3, 97, None), (4, 96, Some(4)), (1, 2, Some(34)), (5, 0, Some(100))]
        {
            let text = format!("{} {}", "\u{fffd}".repeat(n_unknown), "a\n".repeat(n_known));
            assert_eq!(unreadable_percent(&text), expected, "{n_unknown} of {n_known}");
        }
        assert_eq!(unreadable_percent("\u{e001}a"), Some(50));
    }
}
