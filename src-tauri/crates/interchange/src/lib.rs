//! Import and export of conversations: our own JSON, Markdown, and the exports of ChatGPT and
//! Claude, in zips too. Reads and writes bytes; knows neither the database nor the application.
#![forbid(unsafe_code)]

mod chatgpt;
mod citations;
mod claude;
mod export_file;
mod files;
mod images;
mod import;
mod json;
mod json_items;
mod markdown;
mod zip;

use std::io::{Read, Seek, SeekFrom, Write};

use contract::types::ExportFormat;
use contract::{Error, Result};
use documents::zip_directory::ZipEntry;
use prompt::title_text;
use session::{ConversationArchive, TitledBy};

pub use images::ReadImageFn;
pub use import::{ImportFailures, ImportTarget, import};

/// A file to import from: open, or in memory.
pub trait ImportSource: Read + Seek {}

impl<T: Read + Seek> ImportSource for T {}

/// A conversation of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedConversation {
    /// The conversation with its messages.
    pub archive: ConversationArchive,
    /// Messages that are left out, and why: sentences.
    pub omissions: Vec<String>,
}

/// Why a part of a file can't be used; the others can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportFault {
    /// Error code.
    pub code: &'static str,
    /// The part: a title, a number or a file of an archive.
    pub name: String,
    /// The reason, as a sentence that begins in small letters.
    pub reason: String,
}

/// Takes what is found, one after another.
pub type FoundFn<'a> = dyn FnMut(std::result::Result<ImportedConversation, ImportFault>) + 'a;

/// Takes the originals of images that are found, with their SHA-256, after the conversations.
pub type ImageFn<'a> = dyn FnMut(std::result::Result<(String, Vec<u8>), ImportFault>) + 'a;

/// Writes conversations: Markdown of the branch that is looked at, or JSON with every version. `images` has the originals
/// of images, which become part of the file; without it they are only named in Markdown.
pub fn write(
    out: &mut dyn Write,
    archives: &[ConversationArchive],
    format: ExportFormat,
    images: Option<&ReadImageFn<'_>>,
    now_ms: i64,
) -> std::io::Result<()> {
    match format {
        ExportFormat::Md => markdown::write(out, archives, images),
        ExportFormat::Json => json::write(out, archives, images, now_ms),
    }
}

/// Fills in what other applications' exports leave out.
pub fn complete(whole: &mut ConversationArchive, model: &str, now_ms: i64) {
    let row = &mut whole.conversation;
    row.title = match title_text::clean(&row.title) {
        title if title.is_empty() => "Imported chat".into(),
        title => title,
    };
    if row.model.is_empty() {
        row.model = model.into();
    }
    if row.created_ms == 0 {
        row.created_ms = now_ms;
    }
    row.updated_ms = row.updated_ms.max(row.created_ms);
    if row.titled_by == TitledBy::Start {
        row.titled_by = TitledBy::User;
    }
}

/// Finds every conversation of a file, and the originals of their images: our JSON, an export of ChatGPT or Claude, or the
/// ZIP file that holds one. One of them is in memory at a time. Error: nothing can be found in this file.
pub fn read(source: &mut dyn ImportSource, found: &mut FoundFn<'_>, image: &mut ImageFn<'_>) -> Result<()> {
    let mut magic = Vec::new();
    source.take(16).read_to_end(&mut magic).map_err(unreadable)?;
    if magic.starts_with(b"PK\x03\x04") || magic.starts_with(b"PK\x05\x06") {
        return read_zip(source, found, image);
    }
    if magic.starts_with(b"SQLite format 3\0") {
        return Err(Error::input(
            "import.backup",
            "This is a full backup, not an export of chats.",
            "Restore it instead (`nook restore FILE`, or Settings > Data).",
        ));
    }
    export_file::read(&mut WholeFile(source), found, image)
}

/// A text that is read from its beginning, more than once.
trait Reopen {
    fn reopen(&mut self) -> Result<Box<dyn Read + '_>>;
}

struct WholeFile<'a>(&'a mut dyn ImportSource);

impl Reopen for WholeFile<'_> {
    fn reopen(&mut self) -> Result<Box<dyn Read + '_>> {
        self.0.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        Ok(Box::new(&mut self.0))
    }
}

struct ZippedFile<'a> {
    archive: &'a mut dyn ImportSource,
    entry: &'a ZipEntry,
}

impl Reopen for ZippedFile<'_> {
    fn reopen(&mut self) -> Result<Box<dyn Read + '_>> {
        Ok(Box::new(zip::open(self.archive, self.entry)?))
    }
}

fn read_zip(archive: &mut dyn ImportSource, found: &mut FoundFn<'_>, image: &mut ImageFn<'_>) -> Result<()> {
    let mut n_files = 0;
    for entry in zip::entries(archive)? {
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        let is_wanted = name.starts_with("conversations") && name.ends_with(".json");
        if !is_wanted || entry.name.starts_with("__MACOSX") {
            continue;
        }
        n_files += 1;
        let outcome = zip::check(archive, &entry).and_then(|()| {
            let mut within = |item: std::result::Result<ImportedConversation, ImportFault>| {
                found(item.map_err(|fault| ImportFault { name: format!("{name}, {}", fault.name), ..fault }));
            };
            export_file::read(&mut ZippedFile { archive, entry: &entry }, &mut within, image)
        });
        // A damaged file says nothing of the others.
        if let Err(error) = outcome {
            found(Err(ImportFault {
                code: "import.broken",
                name: name.to_owned(),
                reason: error.message().to_owned(),
            }));
        }
    }
    if n_files == 0 {
        return Err(Error::input(
            "import.unknown",
            "This ZIP file contains no conversations.json.",
            "Choose the ZIP file exactly as you got it from ChatGPT or Claude.",
        ));
    }
    Ok(())
}

fn unreadable(error: std::io::Error) -> Error {
    Error::input(
        "import.broken",
        format!("This file can't be read: {error}."),
        "Check the drive that holds it, then try again.",
    )
}

#[cfg(test)]
mod tests;
