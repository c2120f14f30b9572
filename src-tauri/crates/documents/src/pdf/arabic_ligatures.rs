//! Accents on ligatures of Arabic letters. A page shows a ligature as one glyph and its accents as others, and nothing
//! tells which of the letters has which accent.

/// Doubles its letter. A vowel may be part of its glyph or follow it.
const SHADDA: char = '\u{651}';

/// Says that its letter has no vowel.
const SUKUN: char = '\u{652}';

/// The letters of a glyph with the accents on it, which come in the order in which they are written.
pub fn with_accents(letters: &str, accents: &[&str]) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let ends = accent_ends(&letters, accents);
    let mut text = String::new();
    let mut at = 0;
    for (n, letter) in letters.iter().enumerate() {
        text.push(*letter);
        // Those of all letters before the ligature are on its last one.
        let end = (n + ends.len()).checked_sub(letters.len()).map_or(0, |n| ends[n]);
        text.extend(accents[at..end].iter().copied());
        at = end;
    }
    text
}

/// Where the accents of each of the last letters end.
fn accent_ends(letters: &[char], accents: &[&str]) -> Vec<usize> {
    let n = accents.len();
    // Of one letter with its accents at the front.
    let first_end = |from: usize| {
        let is_shadda_alone = accents.get(from).is_some_and(|it| it.chars().eq([SHADDA]));
        (from + if is_shadda_alone { 2 } else { 1 }).min(n)
    };
    match letters {
        // Bare alef is the vowel of the letter before it.
        [.., 'ل', 'ا' | 'ٱ' | 'آ'] => vec![n, n],
        [.., 'ل', 'أ' | 'إ'] if n == 1 && !accents[0].contains(SUKUN) => vec![0, n],
        [.., 'ل', 'أ' | 'إ'] => vec![first_end(0), n],
        // The second letter of the name of God is doubled.
        [.., 'ل', 'ل', 'ه'] => match accents.iter().position(|accent| accent.contains(SHADDA)) {
            // In canonical order its vowel comes first.
            Some(at) if at > 0 && n - at <= 2 => vec![at - 1, at + 1, n],
            Some(at) => vec![at, first_end(at), n],
            None => vec![0, 0, n],
        },
        _ => vec![n],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_get_the_accents_that_they_have_in_words() {
        let cases: &[(&str, &[&str], &str)] = &[
            ("ب", &["\u{651}", "\u{64e}"], "ب\u{651}\u{64e}"),
            ("لا", &["\u{64e}"], "ل\u{64e}ا"),
            ("لأ", &["\u{650}", "\u{64e}"], "ل\u{650}أ\u{64e}"),
            ("لأ", &["\u{652}"], "ل\u{652}أ"),
            ("لإ", &["\u{650}"], "لإ\u{650}"),
            ("لله", &["\u{651}\u{64e}", "\u{650}"], "لل\u{651}\u{64e}ه\u{650}"),
            ("لله", &["\u{64e}", "\u{651}", "\u{650}"], "لل\u{64e}\u{651}ه\u{650}"),
            ("لله", &["\u{650}", "\u{64e}", "\u{651}", "\u{650}"], "ل\u{650}ل\u{64e}\u{651}ه\u{650}"),
            ("لله", &["\u{650}", "\u{651}", "\u{64e}", "\u{650}"], "ل\u{650}ل\u{651}\u{64e}ه\u{650}"),
            ("الله", &["\u{64f}"], "الله\u{64f}"),
            ("", &[], ""),
        ];
        for (letters, accents, expected) in cases {
            assert_eq!(with_accents(letters, accents), *expected, "{letters} {accents:?}");
        }
    }
}
