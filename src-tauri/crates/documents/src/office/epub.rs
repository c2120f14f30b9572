//! Text of electronic books (EPUB 2 and 3): chapters in the order of the spine.
//!
//! A chapter that can't be read is named, and the others are read.

use std::collections::HashMap;

use super::archive::{Archive, damaged};
use super::relationships::resolve;
use super::xml::{XmlEvent, XmlReader};
use crate::block_builder::{BlockBuilder, BlockShape};
use crate::extract_error::ExtractError;
use crate::html::{self, MarkupDialect};

/// Says where the list of a book's parts is.
pub const CONTAINER: &str = "META-INF/container.xml";

/// A file of the book.
struct ManifestItem {
    href: String,
    media_type: String,
}

/// What the package document of a book says.
#[derive(Default)]
struct BookPackage {
    title: String,
    creators: Vec<String>,
    items: HashMap<String, ManifestItem>,
    spine: Vec<String>,
}

/// The book as Markdown.
pub fn read(archive: &Archive<'_>) -> Result<String, ExtractError> {
    check_copy_protection(archive)?;
    let name = package_name(archive)?;
    let text = archive.require_text(&name)?;
    let package = package(XmlReader::new(archive, &name, &text))?;
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut builder = BlockBuilder::default();
    if !package.title.is_empty() {
        builder.begin(BlockShape::Heading(1));
        builder.text(&package.title);
        builder.begin(BlockShape::Paragraph);
        builder.text(&package.creators.join(", "));
        builder.end();
    }
    let (mut first_error, mut n_read) = (None, 0);
    for id in &package.spine {
        let Some(item) = package.items.get(id).filter(|item| item.media_type.contains("html")) else {
            continue;
        };
        if builder.is_full() || archive.is_stopped() {
            break;
        }
        let part = resolve(folder, &decode_percent(item.href.split('#').next().unwrap_or_default()));
        match archive.require_text(&part) {
            Ok(text) => {
                n_read += 1;
                let page = html::page(&text, MarkupDialect::Xhtml);
                builder.count(page.n_bytes);
                page.blocks.into_iter().for_each(|block| builder.push(block));
            }
            Err(error) => {
                builder.begin(BlockShape::Paragraph);
                builder.text(&format!("[A chapter can't be read: {}.]", error.why));
                builder.end();
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if n_read == 0 => Err(error),
        None if n_read == 0 => Err(damaged("it lists no chapters")),
        _ => builder.finish(),
    }
}

/// Fonts may be disguised; anything else that is encrypted needs a key.
fn check_copy_protection(archive: &Archive<'_>) -> Result<(), ExtractError> {
    const LIST: &str = "META-INF/encryption.xml";
    const FONTS: [&str; 2] = ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"];
    let Some(text) = archive.text(LIST)? else { return Ok(()) };
    let mut xml = XmlReader::new(archive, LIST, &text);
    // keys are encrypted, too: what counts is the method of data
    let mut is_in_data = false;
    while let Some(event) = xml.next()? {
        match event {
            XmlEvent::Start(element) if element.name() == "EncryptedData" => is_in_data = true,
            XmlEvent::Start(element) if element.name() == "KeyInfo" => xml.skip()?,
            XmlEvent::Start(element) if is_in_data && element.name() == "EncryptionMethod" => {
                let method = element.attribute("Algorithm").unwrap_or_default();
                if !FONTS.contains(&method.as_str()) {
                    return Err(ExtractError::new(
                        "it is copy-protected (DRM)",
                        "Attach a copy without copy protection.",
                    ));
                }
            }
            XmlEvent::End(name) if &*name == "EncryptedData" => is_in_data = false,
            XmlEvent::Start(_) | XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
    }
    Ok(())
}

fn package_name(archive: &Archive<'_>) -> Result<String, ExtractError> {
    let text = archive.require_text(CONTAINER)?;
    let mut xml = XmlReader::new(archive, CONTAINER, &text);
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        if let Some(path) = element.attribute("full-path").filter(|_| element.name() == "rootfile") {
            return Ok(decode_percent(&path));
        }
    }
    Err(damaged("it does not say where its contents are"))
}

fn package(mut xml: XmlReader<'_>) -> Result<BookPackage, ExtractError> {
    let mut package = BookPackage::default();
    let clean = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(event) = xml.next()? {
        let XmlEvent::Start(element) = event else { continue };
        let word = |name: &str| element.attribute(name).unwrap_or_default();
        match element.name() {
            "title" if package.title.is_empty() => package.title = clean(xml.text()?),
            "creator" => package.creators.push(clean(xml.text()?)),
            "item" => {
                let item = ManifestItem { href: word("href"), media_type: word("media-type") };
                package.items.insert(word("id"), item);
            }
            "itemref" => package.spine.push(word("idref")),
            _ => {}
        }
    }
    Ok(package)
}

/// `%20` stands for a space in names of parts.
fn decode_percent(name: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_decoded() {
        for (name, expected) in
            [("a%20b.xhtml", "a b.xhtml"), ("%e6%9d%b1", "東"), ("50%", "50%"), ("%zz", "%zz")]
        {
            assert_eq!(decode_percent(name), expected);
        }
    }
}
