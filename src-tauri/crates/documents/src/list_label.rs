//! Labels of numbered lists: letters, Roman numerals, and patterns of several levels.

/// How a number of a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumberStyle {
    #[default]
    Decimal,
    /// `01`
    PaddedDecimal,
    LowerLetter,
    UpperLetter,
    LowerRoman,
    UpperRoman,
    /// Not numbered.
    Bullet,
    /// Neither number nor sign.
    Hidden,
}

impl NumberStyle {
    /// By the names of WordprocessingML; unknown ones are decimal.
    pub fn of_word(name: &str) -> Self {
        match name {
            "bullet" => Self::Bullet,
            "none" => Self::Hidden,
            "lowerLetter" => Self::LowerLetter,
            "upperLetter" => Self::UpperLetter,
            "lowerRoman" => Self::LowerRoman,
            "upperRoman" => Self::UpperRoman,
            "decimalZero" => Self::PaddedDecimal,
            _ => Self::Decimal,
        }
    }

    /// By the formats of OpenDocument.
    pub fn of_open_document(format: &str) -> Self {
        match format {
            "" => Self::Hidden,
            "a" => Self::LowerLetter,
            "A" => Self::UpperLetter,
            "i" => Self::LowerRoman,
            "I" => Self::UpperRoman,
            _ => Self::Decimal,
        }
    }

    /// By the names of DrawingML (`alphaLcParenR`): the style, and the label with `{}` for the number.
    pub fn of_drawing(name: &str) -> (Self, &'static str) {
        let style = match name {
            _ if name.starts_with("alphaLc") => Self::LowerLetter,
            _ if name.starts_with("alphaUc") => Self::UpperLetter,
            _ if name.starts_with("romanLc") => Self::LowerRoman,
            _ if name.starts_with("romanUc") => Self::UpperRoman,
            _ => Self::Decimal,
        };
        let pattern = match name {
            _ if name.ends_with("ParenBoth") => "({})",
            _ if name.ends_with("ParenR") => "{})",
            _ if name.ends_with("Plain") => "{}",
            _ => "{}.",
        };
        (style, pattern)
    }

    /// The number as this style writes it.
    pub fn write(self, n: u32) -> String {
        match self {
            Self::Decimal => n.to_string(),
            Self::PaddedDecimal => format!("{n:02}"),
            Self::LowerLetter => letters(n).to_lowercase(),
            Self::UpperLetter => letters(n),
            Self::LowerRoman => roman(n).to_lowercase(),
            Self::UpperRoman => roman(n),
            Self::Bullet | Self::Hidden => String::new(),
        }
    }
}

/// As Word counts: A to Z, then AA to ZZ, AAA to ZZZ.
fn letters(n: u32) -> String {
    const MAX_REPEATS: u32 = 30;
    if n == 0 || n > 26 * MAX_REPEATS {
        return n.to_string();
    }
    let letter = char::from(b'A' + ((n - 1) % 26) as u8);
    letter.to_string().repeat(((n - 1) / 26 + 1) as usize)
}

fn roman(mut n: u32) -> String {
    const NUMERALS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if n == 0 || n >= 4000 {
        return n.to_string();
    }
    let mut written = String::new();
    for (value, numeral) in NUMERALS {
        while n >= value {
            written.push_str(numeral);
            n -= value;
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_each_style() {
        for (style, n, expected) in [
            (NumberStyle::Decimal, 12, "12"),
            (NumberStyle::PaddedDecimal, 7, "07"),
            (NumberStyle::LowerLetter, 26, "z"),
            (NumberStyle::UpperLetter, 28, "BB"),
            (NumberStyle::LowerRoman, 14, "xiv"),
            (NumberStyle::UpperRoman, 1994, "MCMXCIV"),
            (NumberStyle::UpperRoman, 4000, "4000"),
            (NumberStyle::LowerLetter, 0, "0"),
            (NumberStyle::Bullet, 3, ""),
        ] {
            assert_eq!(style.write(n), expected);
        }
        assert_eq!(NumberStyle::of_drawing("romanLcParenBoth"), (NumberStyle::LowerRoman, "({})"));
    }
}
