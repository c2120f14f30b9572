//! Number formats of cells: which numbers are dates, times, durations or percentages.

use std::collections::HashMap;

use super::dates::{DateSystem, duration};
use crate::extract_error::ExtractError;
use crate::office::sheet_text::number_text;
use crate::office::xml::{XmlEvent, XmlReader};

/// What a number of a cell means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellFormat {
    #[default]
    Number,
    Percent,
    Moment {
        has_date: bool,
        has_time: bool,
    },
    /// Hours beyond a day.
    Duration,
}

impl CellFormat {
    /// By the number of a format that is built in (ECMA-376, 18.8.30), with those of East Asian versions.
    fn of_builtin(id: u32) -> Self {
        match id {
            9 | 10 => Self::Percent,
            14..=17 | 27..=31 | 34..=36 | 50..=58 => Self::Moment { has_date: true, has_time: false },
            18..=21 | 32 | 33 | 45 | 47 => Self::Moment { has_date: false, has_time: true },
            22 => Self::Moment { has_date: true, has_time: true },
            46 => Self::Duration,
            _ => Self::Number,
        }
    }

    /// By the code of a format, such as `yyyy\-mm\-dd`.
    fn of_code(code: &str) -> Self {
        // positive numbers come first
        let section = code.split(';').next().unwrap_or_default().replace("General", "");
        let (mut has_date, mut has_time, mut has_month, mut is_percent) = (false, false, false, false);
        let mut chars = section.chars();
        while let Some(c) = chars.next() {
            match c.to_ascii_lowercase() {
                '"' => drop(chars.by_ref().find(|c| *c == '"')),
                '\\' | '_' | '*' => drop(chars.next()),
                '[' => {
                    let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                    if matches!(inside.to_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss") {
                        return Self::Duration;
                    }
                }
                'y' | 'd' | 'e' if c != 'E' => has_date = true,
                'h' | 's' => has_time = true,
                'm' => has_month = true,
                '%' => is_percent = true,
                _ => {}
            }
        }
        // without hours or seconds, it is the month
        has_date |= has_month && !has_time;
        match (has_date || has_time, is_percent) {
            (true, _) => Self::Moment { has_date, has_time },
            (false, true) => Self::Percent,
            (false, false) => Self::Number,
        }
    }

    /// The number as text.
    pub fn write(self, number: f64, dates: DateSystem) -> String {
        match self {
            Self::Number => number_text(number),
            Self::Percent => format!("{}%", number_text(number * 100.0)),
            Self::Moment { has_date, has_time } => {
                dates.write(number, has_date, has_time).unwrap_or_else(|| number_text(number))
            }
            Self::Duration => duration(number),
        }
    }
}

/// Formats of a workbook, by the number of a cell's style.
#[derive(Debug, Clone, Default)]
pub struct CellFormats(Vec<CellFormat>);

impl CellFormats {
    pub fn read(mut xml: XmlReader<'_>) -> Result<Self, ExtractError> {
        let (mut codes, mut formats, mut is_in_cells) = (HashMap::new(), Vec::new(), false);
        while let Some(event) = xml.next()? {
            match event {
                XmlEvent::Start(element) => match element.name() {
                    "numFmt" => {
                        let code = element.attribute("formatCode").unwrap_or_default();
                        codes.insert(element.number("numFmtId").unwrap_or(0), CellFormat::of_code(&code));
                    }
                    "cellXfs" => is_in_cells = true,
                    "xf" if is_in_cells => {
                        let id: u32 = element.number("numFmtId").unwrap_or(0);
                        formats.push(codes.get(&id).copied().unwrap_or_else(|| CellFormat::of_builtin(id)));
                    }
                    // formats of rules
                    "dxfs" => xml.skip()?,
                    _ => {}
                },
                XmlEvent::End(name) if &*name == "cellXfs" => is_in_cells = false,
                XmlEvent::End(_) | XmlEvent::Text(_) => {}
            }
        }
        Ok(Self(formats))
    }

    pub fn of_style(&self, style: usize) -> CellFormat {
        self.0.get(style).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_dates_from_numbers() {
        let moment = |has_date, has_time| CellFormat::Moment { has_date, has_time };
        for (code, expected) in [
            ("General", CellFormat::Number),
            ("General\\ \"units\"", CellFormat::Number),
            ("0.00", CellFormat::Number),
            ("0.00E+00", CellFormat::Number),
            ("#,##0.00 \"days\"", CellFormat::Number),
            ("#,##0\\ \"€\";[Red]-#,##0", CellFormat::Number),
            ("[$-409]d\\-mmm\\-yy;@", moment(true, false)),
            ("yyyy\"年\"m\"月\"d\"日\"", moment(true, false)),
            ("mmmm", moment(true, false)),
            ("h:mm AM/PM", moment(false, true)),
            ("mm:ss", moment(false, true)),
            ("dd/mm/yyyy hh:mm", moment(true, true)),
            ("[h]:mm:ss", CellFormat::Duration),
            ("0.0%", CellFormat::Percent),
        ] {
            assert_eq!(CellFormat::of_code(code), expected, "{code}");
        }
    }

    #[test]
    fn percentages_are_written_as_such() {
        assert_eq!(CellFormat::Percent.write(0.07, DateSystem::From1900), "7%");
    }
}
