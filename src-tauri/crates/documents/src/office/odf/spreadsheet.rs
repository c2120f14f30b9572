//! Sheets of an OpenDocument workbook: stored values, with dates as they are written there.

use crate::extract_error::ExtractError;
use crate::office::sheet_text::{SheetText, number_text};
use crate::office::xml::{XmlElement, XmlEvent, XmlReader};

/// Columns of a sheet.
const MAX_COLUMNS: usize = 16_384;

/// The workbook as Markdown.
pub fn read(mut xml: XmlReader<'_>) -> Result<String, ExtractError> {
    let mut written = SheetText::default();
    let (mut column, mut n_rows) = (0_usize, 1_usize);
    // sheets that are inside of a cell, or hold other files' data, are not shown
    let mut is_in_sheet = false;
    while let Some(event) = xml.next()? {
        match event {
            XmlEvent::Start(element) => match element.name() {
                "tracked-changes" | "shapes" | "forms" | "styles" | "automatic-styles"
                | "named-expressions" => {
                    xml.skip()?;
                }
                "table" if is_in_sheet => xml.skip()?,
                "table" => {
                    is_in_sheet = true;
                    written.begin_sheet(&element.attribute("name").unwrap_or_default(), false);
                }
                "table-row" => {
                    column = 0;
                    n_rows = element.number("number-rows-repeated").unwrap_or(1);
                }
                "table-cell" | "covered-table-cell" => {
                    let n =
                        element.number::<usize>("number-columns-repeated").unwrap_or(1).clamp(1, MAX_COLUMNS);
                    let shown = cell(&mut xml, &element)?;
                    if !shown.trim().is_empty() {
                        (column..column.saturating_add(n).min(MAX_COLUMNS))
                            .for_each(|column| written.cell(column, &shown));
                    }
                    column = column.saturating_add(n);
                }
                _ => {}
            },
            XmlEvent::End(name) if &*name == "table-row" => written.end_row(n_rows),
            XmlEvent::End(name) if &*name == "table" => is_in_sheet = false,
            XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
        if written.is_full() {
            break;
        }
    }
    written.finish()
}

/// The value of the cell that just began.
fn cell(xml: &mut XmlReader<'_>, element: &XmlElement<'_>) -> Result<String, ExtractError> {
    let kind = element.attribute("value-type").unwrap_or_default();
    let stored = match kind.as_str() {
        "float" | "currency" => {
            element.attribute("value").map(|value| value.parse().map_or(value.clone(), number_text))
        }
        "percentage" => {
            element.number::<f64>("value").map(|value| format!("{}%", number_text(value * 100.0)))
        }
        "date" => element.attribute("date-value").map(|date| date_text(&date)),
        "time" => element.attribute("time-value").and_then(|time| time_text(&time)),
        "boolean" => element.attribute("boolean-value").map(|value| value.to_uppercase()),
        _ => None,
    };
    let shown = paragraphs(xml)?;
    Ok(stored.unwrap_or(shown))
}

/// Without fractions of seconds.
fn date_text(date: &str) -> String {
    let whole = date.split('.').next().unwrap_or(date);
    whole.replace('T', " ")
}

/// `PT37H30M00S` is `37:30:00`.
fn time_text(time: &str) -> Option<String> {
    let (hours, rest) = time.strip_prefix("PT")?.split_once('H')?;
    let (minutes, rest) = rest.split_once('M')?;
    let seconds = rest.strip_suffix('S')?.split(['.', ',']).next()?;
    let number = |digits: &str| digits.parse::<u32>().ok();
    Some(format!("{:02}:{:02}:{:02}", number(hours)?, number(minutes)?, number(seconds)?))
}

/// Text of the paragraphs of the element that just began, without comments and pictures.
fn paragraphs(xml: &mut XmlReader<'_>) -> Result<String, ExtractError> {
    let end = xml.depth() - 1;
    let (mut text, mut n_open) = (String::new(), 0);
    while xml.depth() > end {
        match xml.next()? {
            Some(XmlEvent::Start(element)) => match element.name() {
                "annotation" | "frame" | "custom-shape" | "ruby-text" => xml.skip()?,
                "p" => {
                    n_open += 1;
                    if !text.is_empty() {
                        text.push('\n');
                    }
                }
                "s" => text.push(' '),
                "line-break" => text.push('\n'),
                _ => {}
            },
            Some(XmlEvent::End(name)) if &*name == "p" => n_open -= 1,
            Some(XmlEvent::Text(piece)) if n_open > 0 => text.push_str(&piece),
            Some(XmlEvent::End(_) | XmlEvent::Text(_)) => {}
            None => break,
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_dates_are_written_plainly() {
        for (time, expected) in [
            ("PT37H30M00S", Some("37:30:00")),
            ("PT09H05M07.25S", Some("09:05:07")),
            ("P1D", None),
            ("PTxH00M00S", None),
        ] {
            assert_eq!(time_text(time).as_deref(), expected);
        }
        assert_eq!(date_text("2024-02-29T14:30:00.123"), "2024-02-29 14:30:00");
    }
}
