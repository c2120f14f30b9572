//! Text of Excel workbooks (ECMA-376, SpreadsheetML): the stored values of all cells, sheet by sheet.
//!
//! A sheet that can't be read is named, and the others are read.

mod cell_format;
mod dates;
#[cfg(test)]
mod tests;

use super::archive::Archive;
use super::relationships;
use super::sheet_text::SheetText;
use super::xml::{XmlElement, XmlEvent, XmlReader};
use crate::extract_error::ExtractError;
use cell_format::CellFormats;
use dates::DateSystem;

/// Columns of a sheet.
const MAX_COLUMNS: usize = 16_384;

/// A sheet as the workbook lists it.
struct SheetEntry {
    name: String,
    relationship: String,
    is_hidden: bool,
}

/// What cells refer to.
struct CellContext {
    strings: Vec<String>,
    formats: CellFormats,
    dates: DateSystem,
}

/// A cell that is being read.
#[derive(Default)]
struct CellParts {
    /// From 0.
    column: usize,
    kind: String,
    style: usize,
    value: String,
    formula: String,
}

/// The workbook in `part` as Markdown.
pub fn read(archive: &Archive<'_>, part: &str) -> Result<String, ExtractError> {
    let links = relationships::read(archive, part)?;
    let text = archive.require_text(part)?;
    let (sheets, dates) = workbook(XmlReader::new(archive, part, &text))?;
    let strings = match relationships::of_kind(&links, "sharedStrings") {
        Some(name) => shared_strings(XmlReader::new(archive, name, &archive.require_text(name)?))?,
        None => Vec::new(),
    };
    let formats = match relationships::of_kind(&links, "styles") {
        Some(name) => CellFormats::read(XmlReader::new(archive, name, &archive.require_text(name)?))?,
        None => CellFormats::default(),
    };
    let context = CellContext { strings, formats, dates };
    let mut written = SheetText::default();
    let mut first_error = None;
    let mut n_read = 0;
    for entry in sheets {
        // charts have pages of their own
        let Some(name) = relationships::of_id(&links, &entry.relationship) else { continue };
        if name.contains("chartsheets/") || written.is_full() {
            continue;
        }
        written.begin_sheet(&entry.name, entry.is_hidden);
        let read = archive
            .require_text(name)
            .and_then(|text| sheet(XmlReader::new(archive, name, &text), &context, &mut written));
        match read {
            Ok(()) => n_read += 1,
            Err(error) => {
                written.note(&format!("[This sheet can't be read: {}.]", error.why));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if n_read == 0 => Err(error),
        _ => written.finish(),
    }
}

fn workbook(mut xml: XmlReader<'_>) -> Result<(Vec<SheetEntry>, DateSystem), ExtractError> {
    let (mut sheets, mut dates) = (Vec::new(), DateSystem::From1900);
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        match element.name() {
            "workbookPr" if matches!(element.attribute("date1904").as_deref(), Some("1" | "true")) => {
                dates = DateSystem::From1904;
            }
            "sheet" => sheets.push(SheetEntry {
                name: element.attribute("name").unwrap_or_default(),
                relationship: element.relationship().unwrap_or_default(),
                is_hidden: element.attribute("state").is_some_and(|state| state != "visible"),
            }),
            _ => {}
        }
    }
    Ok((sheets, dates))
}

/// Texts that cells name by number. How they are pronounced is left out.
fn shared_strings(mut xml: XmlReader<'_>) -> Result<Vec<String>, ExtractError> {
    let mut strings = Vec::new();
    while let Some(event) = xml.next()? {
        if matches!(&event, XmlEvent::Start(element) if element.name() == "si") {
            strings.push(rich_text(&mut xml)?);
        }
    }
    Ok(strings)
}

/// The text of the element that just began, of its `t` alone.
fn rich_text(xml: &mut XmlReader<'_>) -> Result<String, ExtractError> {
    let end = xml.depth() - 1;
    let mut text = String::new();
    while xml.depth() > end {
        match xml.next()? {
            Some(XmlEvent::Start(element)) if element.name() == "rPh" => xml.skip()?,
            Some(XmlEvent::Start(element)) if element.name() == "t" => text.push_str(&xml.text()?),
            Some(_) => {}
            None => break,
        }
    }
    Ok(unescape(&text))
}

/// `_x000D_` stands for a character that XML does not allow.
fn unescape(text: &str) -> String {
    let mut parts = text.split("_x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..4).filter(|_| part.as_bytes().get(4) == Some(&b'_'));
        let c = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match c {
            Some(c) => {
                plain.extend(Some(c).filter(|c| !c.is_control() || *c == '\n' || *c == '\t'));
                plain.push_str(&part[5..]);
            }
            None => {
                plain.push_str("_x");
                plain.push_str(part);
            }
        }
    }
    plain
}

fn sheet(mut xml: XmlReader<'_>, context: &CellContext, written: &mut SheetText) -> Result<(), ExtractError> {
    let (mut row, mut last_row, mut next_column) = (0_u32, 0_u32, 0);
    while let Some(event) = xml.next()? {
        match event {
            XmlEvent::Start(element) => match element.name() {
                "row" => {
                    row = element.number("r").unwrap_or(last_row.saturating_add(1));
                    next_column = 0;
                }
                "c" => {
                    let cell = cell(&mut xml, &element, next_column)?;
                    next_column = cell.column + 1;
                    if row > last_row.saturating_add(1) {
                        written.gap();
                    }
                    last_row = row;
                    written.cell(cell.column, &context.shown(&cell));
                }
                _ => {}
            },
            XmlEvent::End(name) if &*name == "row" => written.end_row(1),
            XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
        if written.is_full() {
            break;
        }
    }
    Ok(())
}

fn cell(xml: &mut XmlReader<'_>, element: &XmlElement<'_>, column: usize) -> Result<CellParts, ExtractError> {
    let named = element.attribute("r").and_then(|name| column_of(&name));
    let mut cell = CellParts {
        column: named.unwrap_or(column).min(MAX_COLUMNS - 1),
        kind: element.attribute("t").unwrap_or_default(),
        style: element.number("s").unwrap_or(0),
        ..CellParts::default()
    };
    let end = xml.depth() - 1;
    while xml.depth() > end {
        match xml.next()? {
            Some(XmlEvent::Start(element)) => match element.name() {
                "v" => cell.value = xml.text()?,
                "f" => cell.formula = xml.text()?,
                "is" => cell.value = rich_text(xml)?,
                _ => {}
            },
            Some(_) => {}
            None => break,
        }
    }
    Ok(cell)
}

/// From 0: `AB12` is 27.
fn column_of(name: &str) -> Option<usize> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic);
    let n = letters.take(4).fold(0, |n, letter| n * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    n.checked_sub(1)
}

impl CellContext {
    /// A cell as people see it, without its format of numbers. A formula that was never computed is shown itself.
    fn shown(&self, cell: &CellParts) -> String {
        let value = cell.value.trim();
        if value.is_empty() && !cell.formula.is_empty() {
            return format!("={}", cell.formula);
        }
        match cell.kind.as_str() {
            "s" => value.parse().ok().and_then(|n: usize| self.strings.get(n)).cloned().unwrap_or_default(),
            "inlineStr" => cell.value.clone(),
            "str" => unescape(&cell.value),
            "b" => if value == "0" { "FALSE" } else { "TRUE" }.to_owned(),
            "e" | "d" => value.to_owned(),
            _ => match value.parse() {
                Ok(number) => self.formats.of_style(cell.style).write(number, self.dates),
                Err(_) => value.to_owned(),
            },
        }
    }
}
