//! Accents that are drawn first, with their letter over them: TeX does so in its old encodings, and strikes out relations.
//! The file has such an accent as a separate character, and the letter may lack its dot.

use unicode_normalization::UnicodeNormalization as _;

use super::font_source::GlyphText;

/// The combining form of the accent at the end of a text. None: it ends otherwise.
pub fn accent_at_end(text: &str) -> Option<char> {
    let mut chars = text.chars().rev();
    let last = chars.next().and_then(accent_of)?;
    // Mathematics puts several dots over a letter.
    chars.next().and_then(accent_of).is_none().then_some(last)
}

/// The combining form of an accent that stands by itself.
fn accent_of(c: char) -> Option<char> {
    Some(match c {
        '`' | '\u{2cb}' => '\u{300}',
        '´' | '\u{2ca}' => '\u{301}',
        '^' | 'ˆ' => '\u{302}',
        '~' | '˜' => '\u{303}',
        '¯' => '\u{304}',
        '˘' => '\u{306}',
        '˙' => '\u{307}',
        '¨' => '\u{308}',
        '˚' => '\u{30a}',
        '˝' => '\u{30b}',
        'ˇ' => '\u{30c}',
        '¸' => '\u{327}',
        '\u{338}' | '/' => '\u{338}',
        _ => return None,
    })
}

/// The glyphs with an accent on the first letter. None: no such letter exists.
pub fn with_accent(glyphs: &GlyphText, accent: char) -> Option<GlyphText> {
    let first = glyphs.iter().next()?;
    let mut chars = first.chars();
    let letter = match chars.next()? {
        'ı' => 'i',
        'ȷ' => 'j',
        letter => letter,
    };
    let mut composed = [letter, accent].into_iter().nfc();
    let (Some(composed), None) = (composed.next(), composed.next()) else { return None };
    Some(glyphs.with_texts(&[Some(format!("{composed}{}", chars.as_str()))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_letters_are_one_where_such_a_letter_exists() {
        for (accent, letters, expected) in [
            ("na¨", "ıve", Some("ïve")),
            ("caf´", "e.", Some("é.")),
            ("Erd˝", "os", Some("ős")),
            ("\u{338}", "= 0", Some("≠ 0")),
            ("/", "∈", Some("∉")),
            ("´", "1", None),
        ] {
            let mut glyphs = GlyphText::default();
            letters.chars().for_each(|c| glyphs.push(c.encode_utf8(&mut [0; 4]), 1.0));
            let found = with_accent(&glyphs, accent_at_end(accent).unwrap());
            assert_eq!(found.map(|glyphs| glyphs.text).as_deref(), expected, "{accent}{letters}");
        }
        assert_eq!((accent_at_end("plain"), accent_at_end("˙˙˙")), (None, None));
    }
}
