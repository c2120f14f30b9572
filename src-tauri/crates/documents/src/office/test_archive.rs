//! Writes the archives of tests, as other programs do.

use crate::extract_error::ExtractError;

/// Files in an archive, deflated.
pub fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut zip, mut central) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let packed = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6);
        let mut common = Vec::from([20, 0, 0, 8, 8, 0, 0, 0, 0, 0]);
        common.extend(crc32fast::hash(text.as_bytes()).to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((text.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        let at = (zip.len() as u32).to_le_bytes();
        zip.extend([b"PK\x03\x04", &*common, name.as_bytes(), &packed].concat());
        central.extend([b"PK\x01\x02\x14\0", &*common, &[0; 10], &at, name.as_bytes()].concat());
    }
    let n = (files.len() as u16).to_le_bytes();
    let sizes = [(central.len() as u32).to_le_bytes(), (zip.len() as u32).to_le_bytes()].concat();
    zip.extend(central);
    zip.extend([b"PK\x05\x06\0\0\0\0", &n[..], &n, &sizes, &[0, 0]].concat());
    zip
}

/// Markdown of a file, or why it can't be read.
pub fn markdown_of(bytes: &[u8]) -> Result<String, ExtractError> {
    super::read(bytes).map(|read| read.map(|(_, text)| text).unwrap_or_default())
}

/// The part of a Word document with this body; `parts` are others, by kind.
pub fn docx(body: &str, parts: &[(&str, &str)]) -> Vec<u8> {
    let document =
        format!("<?xml version=\"1.0\"?>\n<w:document><w:body>{body}<w:sectPr/></w:body></w:document>");
    let links: String =
        parts.iter().map(|(kind, _)| relationship(kind, kind, &format!("{kind}.xml"))).collect();
    let names: Vec<String> = parts.iter().map(|(kind, _)| format!("word/{kind}.xml")).collect();
    let links = format!("<Relationships>{links}</Relationships>");
    let mut files = vec![("word/document.xml", &*document), ("word/_rels/document.xml.rels", &*links)];
    files.extend(names.iter().zip(parts).map(|(name, (_, text))| (name.as_str(), *text)));
    office(
        "word/document.xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        &files,
    )
}

/// An Office file whose main part is of this content type.
pub fn office(main: &str, content_type: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let types = format!("<Types><Override PartName=\"/{main}\" ContentType=\"{content_type}\"/></Types>");
    let root = format!("<Relationships>{}</Relationships>", relationship("rId1", "officeDocument", main));
    let mut all = vec![("[Content_Types].xml", &*types), ("_rels/.rels", &*root)];
    all.extend(files);
    zip(&all)
}

/// A relationship as Office writes it.
pub fn relationship(id: &str, kind: &str, target: &str) -> String {
    let types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    format!("<Relationship Id=\"{id}\" Type=\"{types}/{kind}\" Target=\"{target}\"/>")
}

/// An OpenDocument file with this content.
pub fn open_document(kind: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let kind = format!("application/vnd.oasis.opendocument.{kind}");
    let mut all = vec![("mimetype", &*kind)];
    all.extend(files);
    zip(&all)
}
