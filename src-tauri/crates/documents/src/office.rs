//! Text of office files and books: ZIP archives with XML inside. What it is, the archive tells, not the name.

mod archive;
mod docx;
mod epub;
mod odf;
pub mod old_office;
mod pptx;
mod relationships;
mod sheet_text;
#[cfg(test)]
mod test_archive;
#[cfg(test)]
mod tests;
mod xlsx;
mod xml;

use std::sync::atomic::AtomicBool;

use contract::types::AttachmentKind;

use crate::extract_error::{ExtractError, TEXT_MOST};
use crate::timed::{self, READ_TIMEOUT};
use archive::Archive;
use xml::{XmlEvent, XmlReader};

/// What an archive contains.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OfficeFormat {
    /// Each with the name of its main part.
    WordDocument(String),
    Workbook(String),
    Presentation(String),
    OdfText,
    OdfWorkbook,
    OdfPresentation,
    Book,
}

/// The text of an office file or book, as Markdown. None: the archive is neither.
pub fn read(bytes: &[u8]) -> Result<Option<(AttachmentKind, String)>, ExtractError> {
    let bytes = bytes.to_vec();
    let crashed = || archive::damaged("its contents can't be read");
    let read = timed::run(READ_TIMEOUT, crashed, move |stop| text(&bytes, stop))?;
    let Some((kind, text)) = read else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(ExtractError::new(
            "it contains no text",
            "If its text is in pictures, run text recognition (OCR) on them and attach the result.",
        ));
    }
    if text.len() > TEXT_MOST {
        return Err(ExtractError::too_long(text.len()));
    }
    Ok(Some((kind, text)))
}

fn text(bytes: &[u8], stop: &AtomicBool) -> Result<Option<(AttachmentKind, String)>, ExtractError> {
    let archive = Archive::open(bytes, stop)?;
    let Some(format) = format(&archive)? else { return Ok(None) };
    Ok(Some(match &format {
        OfficeFormat::WordDocument(part) => (AttachmentKind::Document, docx::read(&archive, part)?),
        OfficeFormat::Workbook(part) => (AttachmentKind::Spreadsheet, xlsx::read(&archive, part)?),
        OfficeFormat::Presentation(part) => (AttachmentKind::Presentation, pptx::read(&archive, part)?),
        OfficeFormat::OdfText => (AttachmentKind::Document, odf::read_text(&archive)?),
        OfficeFormat::OdfWorkbook => (AttachmentKind::Spreadsheet, odf::read_workbook(&archive)?),
        OfficeFormat::OdfPresentation => (AttachmentKind::Presentation, odf::read_presentation(&archive)?),
        OfficeFormat::Book => (AttachmentKind::Document, epub::read(&archive)?),
    }))
}

fn format(archive: &Archive<'_>) -> Result<Option<OfficeFormat>, ExtractError> {
    const OPEN_DOCUMENT: &str = "application/vnd.oasis.opendocument.";
    if let Some(kind) =
        archive.text("mimetype")?.as_deref().and_then(|it| it.trim().strip_prefix(OPEN_DOCUMENT))
    {
        odf::check_password(archive)?;
        return match kind {
            _ if kind.starts_with("text") => Ok(Some(OfficeFormat::OdfText)),
            _ if kind.starts_with("spreadsheet") => Ok(Some(OfficeFormat::OdfWorkbook)),
            // drawings have pages, too
            _ if kind.starts_with("presentation") || kind.starts_with("graphics") => {
                Ok(Some(OfficeFormat::OdfPresentation))
            }
            _ => Err(ExtractError::new(
                format!("it is an OpenDocument file of the kind {kind}, whose text can't be read"),
                "Save it as PDF, text or CSV and attach that.",
            )),
        };
    }
    if archive.has(epub::CONTAINER) {
        return Ok(Some(OfficeFormat::Book));
    }
    if !archive.has(CONTENT_TYPES) {
        return Ok(None);
    }
    let links = relationships::read(archive, "")?;
    let Some(part) = relationships::of_kind(&links, "officeDocument") else { return Ok(None) };
    office_format(&content_type(archive, part)?, part)
}

/// Lists what the parts of an Office file are.
const CONTENT_TYPES: &str = "[Content_Types].xml";

/// What the part is, or its name if nothing says it.
fn content_type(archive: &Archive<'_>, part: &str) -> Result<String, ExtractError> {
    let text = archive.require_text(CONTENT_TYPES)?;
    let mut xml = XmlReader::new(archive, CONTENT_TYPES, &text);
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        let name = element.attribute("PartName").unwrap_or_default();
        if name.trim_start_matches('/').eq_ignore_ascii_case(part) {
            return Ok(element.attribute("ContentType").unwrap_or_default().to_lowercase());
        }
    }
    Ok(part.to_lowercase())
}

fn office_format(content_type: &str, part: &str) -> Result<Option<OfficeFormat>, ExtractError> {
    let has = |words: &[&str]| words.iter().any(|word| content_type.contains(word));
    let part = part.to_owned();
    Ok(match () {
        () if has(&["sheet.binary"]) => {
            return Err(ExtractError::new(
                "it is a binary Excel workbook (.xlsb)",
                "Save it as .xlsx and attach that.",
            ));
        }
        () if has(&["word"]) => Some(OfficeFormat::WordDocument(part)),
        () if has(&["spreadsheet", "excel", "xl/"]) => Some(OfficeFormat::Workbook(part)),
        () if has(&["presentation", "powerpoint", "ppt/"]) => Some(OfficeFormat::Presentation(part)),
        () => None,
    })
}
