//! Import and export of conversations, and the backup of everything. Of a file that is imported,
//! one conversation is in memory at a time. One that can't be used is reported and skipped; the
//! others are imported. An import never changes existing data.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use contract::types::{
    AppEvent, ExportFormat, ExportedFile, FileName, ImportSummary, RestoreSummary, SavedFile,
};
use contract::{Error, ErrorKind, Result};
use documents::base64;
use interchange::{ImportFailures, ImportSource, ImportTarget};
use io::SequentialReader;
use platform::portable_name;
use session::ConversationArchive;
use session::images::ImageStore;

use crate::App;
use crate::context::summary;

/// Longest file that is read for an import: many times any export there is.
const MAX_BYTES: u64 = 1 << 31;

impl App {
    /// As text: Markdown of the branch that is looked at, or JSON with every version. Without an id every conversation
    /// that isn't in the trash.
    pub fn export(&self, id: Option<&str>, format: ExportFormat) -> Result<ExportedFile> {
        let (archives, mut text) = (self.archives(id)?, Vec::new());
        let written =
            interchange::write(&mut text, &archives, format, Some(&|hash| self.original(hash)), self.now());
        written.map_err(|error| Error::bug(error.to_string()))?;
        let text = String::from_utf8(text).map_err(|error| Error::bug(error.to_string()))?;
        Ok(ExportedFile { name: self.export_name(id, format)?.name, text })
    }

    /// The branch that is looked at, as Markdown that only names images: for a reader that takes text alone.
    pub fn conversation_markdown(&self, id: &str) -> Result<String> {
        let (archives, mut text) = (self.archives(Some(id))?, Vec::new());
        let written = interchange::write(&mut text, &archives, ExportFormat::Md, None, self.now());
        written.map_err(|error| Error::bug(error.to_string()))?;
        String::from_utf8(text).map_err(|error| Error::bug(error.to_string()))
    }

    fn archives(&self, id: Option<&str>) -> Result<Vec<ConversationArchive>> {
        let store = self.store();
        let ids = match id {
            Some(id) => vec![id.to_owned()],
            None => store.conversations()?.into_iter().map(|row| row.id).collect(),
        };
        Ok(ids.iter().map(|id| store.archive(id)).collect::<session::Result<_>>()?)
    }

    /// The original of an image. An export goes on without one that can't be read; importing it names the image.
    fn original(&self, sha256: &str) -> Option<Vec<u8>> {
        let read = ImageStore::new(&self.dirs().data, &*self.ctx().io).read(sha256);
        read.inspect_err(|error| tracing::warn!("{sha256}: an image is left out of an export: {error}"))
            .ok()?
    }

    /// What an export is best called.
    pub fn export_name(&self, id: Option<&str>, format: ExportFormat) -> Result<FileName> {
        let name = match id {
            Some(id) => portable_name(&self.store().conversation(id)?.title, "conversation"),
            None => "inglenook-conversations".into(),
        };
        let extension = match format {
            ExportFormat::Md => "md",
            ExportFormat::Json => "json",
        };
        Ok(FileName { name: format!("{name}.{extension}") })
    }

    /// As `export`, into a file: whole or not at all.
    pub fn export_to(&self, id: Option<&str>, format: ExportFormat, path: &str) -> Result<SavedFile> {
        let path = absolute(path)?;
        let (archives, io) = (self.archives(id)?, &self.ctx().io);
        io.write_stream(&path, &mut |out| {
            interchange::write(out, &archives, format, Some(&|hash| self.original(hash)), self.now())
        })?;
        Ok(SavedFile { path: path.display().to_string(), bytes: io.len(&path)? })
    }

    /// Takes in a file: our JSON, ChatGPT's or Claude's export, or the zip that holds one.
    pub fn import_file(&self, path: &str) -> Result<ImportSummary> {
        let path = Path::new(path);
        let file = self.ctx().io.open_to_read(path)?;
        let n_bytes = file.len()?;
        if n_bytes > MAX_BYTES {
            let message = format!("{} has {n_bytes} bytes; the most is {MAX_BYTES}.", path.display());
            return Err(Error::new(
                ErrorKind::Limit,
                "import.too_large",
                message,
                "Export fewer chats at a time.",
            ));
        }
        self.import(&mut SequentialReader::new(file))
    }

    /// As `import_file`, of what a page has read.
    pub fn import_bytes(&self, base64: &str) -> Result<ImportSummary> {
        let bytes = base64::decode(base64)
            .ok_or_else(|| Error::input("import.broken", "The file arrived damaged.", "Choose it again."))?;
        self.import(&mut Cursor::new(bytes))
    }

    fn import(&self, source: &mut dyn ImportSource) -> Result<ImportSummary> {
        let (model, mut conversations) = (self.default_model()?, Vec::new());
        let target = ImportTarget {
            model: &model,
            now_ms: self.now(),
            images: ImageStore::new(&self.dirs().data, &*self.ctx().io),
            adopt: &mut |archive| {
                let mut store = self.store();
                let row = store.import_archive(archive)?;
                let adopted = summary(&store, row)?;
                drop(store);
                conversations.push(self.told(adopted));
                Ok(())
            },
        };
        let outcome = interchange::import(source, target);
        for folder in self.folders_list()? {
            self.ctx().events.publish(AppEvent::FolderChanged { folder });
        }
        let ImportFailures { n_failed, listed } = outcome?;
        Ok(ImportSummary { conversations, failed: n_failed, failures: listed })
    }

    /// Everything as one file, which must be new: conversations with their images, the trash, settings, the library's entries.
    pub fn data_backup(&self, path: &str) -> Result<SavedFile> {
        let path = absolute(path)?;
        self.store().back_up_to(&path, &*self.ctx().io)?;
        let bytes = self.ctx().io.len(&path)?;
        Ok(SavedFile { path: path.display().to_string(), bytes })
    }

    /// Adds what a backup has and this folder lacks.
    pub fn data_restore(&self, path: &str) -> Result<RestoreSummary> {
        let path = absolute(path)?;
        let restored = self.store().restore_from(&path, &*self.ctx().io)?;
        for folder in self.folders_list()? {
            self.ctx().events.publish(AppEvent::FolderChanged { folder });
        }
        for conversation in self.conversations_list()?.into_iter().rev() {
            self.told(conversation);
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let session::RestoreCounts { added, duplicated, unchanged, n_damaged_images } = restored;
        if n_damaged_images > 0 {
            let message = format!("{n_damaged_images} images of the backup are damaged and were left out.");
            let remedy = "Restore an older backup as well: it adds what is missing.";
            self.ctx().events.notice(Error::input("restore.images", message, remedy).info);
        }
        self.sweep_images()?;
        Ok(RestoreSummary { added: count(added), beside: count(duplicated), same: count(unchanged) })
    }

    fn now(&self) -> i64 {
        self.ctx().clock.now_utc_ms()
    }
}

/// Relative to where the program was started.
fn absolute(path: &str) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        Error::input("io.path", format!("{path}: {error}."), "Give the whole path of the file.")
    })
}
