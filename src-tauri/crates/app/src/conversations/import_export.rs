//! Import and export of conversations, and the backup of everything. A file is read completely
//! before anything of it is imported. A conversation that can't be used is reported and skipped;
//! the others are imported. An import never changes existing data.

use std::path::{Path, PathBuf};

use contract::types::{
    AppEvent, ErrorInfo, ExportFormat, ExportedFile, FileName, ImportSummary, RestoreSummary, SavedFile,
};
use contract::{Error, ErrorKind, Result};
use documents::base64;

use crate::App;
use crate::context::summary;

/// Longest file that is read for an import: many times any export there is.
const MAX_BYTES: u64 = 1 << 31;

/// Failures that are reported individually.
const MAX_LISTED_FAILURES: usize = 20;

impl App {
    /// As text: Markdown of the branch that is looked at, or JSON with every version. Without an id every conversation
    /// that isn't in the trash.
    pub fn export(&self, id: Option<&str>, format: ExportFormat) -> Result<ExportedFile> {
        let store = self.store();
        let ids = match id {
            Some(id) => vec![id.to_owned()],
            None => store.conversations()?.into_iter().map(|row| row.id).collect(),
        };
        let archives: session::Result<Vec<_>> = ids.iter().map(|id| store.archive(id)).collect();
        drop(store);
        let archives = archives?;
        let name = self.export_name(id, format)?.name;
        let text = match format {
            ExportFormat::Md => {
                archives.iter().map(interchange::write_markdown).collect::<Vec<_>>().join("\n---\n\n")
            }
            ExportFormat::Json => interchange::write_json(&archives, self.now())?,
        };
        Ok(ExportedFile { name, text })
    }

    /// What an export is best called.
    pub fn export_name(&self, id: Option<&str>, format: ExportFormat) -> Result<FileName> {
        let name = match id {
            Some(id) => file_name(&self.store().conversation(id)?.title),
            None => "inglenook-conversations".into(),
        };
        let extension = match format {
            ExportFormat::Md => "md",
            ExportFormat::Json => "json",
        };
        Ok(FileName { name: format!("{name}.{extension}") })
    }

    /// As `export`, into a file: archive or not at all.
    pub fn export_to(&self, id: Option<&str>, format: ExportFormat, path: &str) -> Result<SavedFile> {
        let path = absolute(path)?;
        let text = self.export(id, format)?.text;
        self.ctx().io.write_atomic(&path, text.as_bytes())?;
        Ok(SavedFile { path: path.display().to_string(), bytes: text.len() as u64 })
    }

    /// Takes in a file: our JSON, ChatGPT's or Claude's export, or the zip that holds one.
    pub fn import_file(&self, path: &str) -> Result<ImportSummary> {
        let path = Path::new(path);
        let io = &self.ctx().io;
        let n_bytes = io.len(path)?;
        if n_bytes > MAX_BYTES {
            let message = format!("{} has {n_bytes} bytes; the most is {MAX_BYTES}.", path.display());
            return Err(Error::new(
                ErrorKind::Limit,
                "import.too_large",
                message,
                "Export fewer chats at a time.",
            ));
        }
        self.import(&io.read(path)?)
    }

    /// As `import_file`, of what a page has read.
    pub fn import_bytes(&self, base64: &str) -> Result<ImportSummary> {
        let bytes = base64::decode(base64)
            .ok_or_else(|| Error::input("import.broken", "The file arrived damaged.", "Choose it again."))?;
        self.import(&bytes)
    }

    fn import(&self, bytes: &[u8]) -> Result<ImportSummary> {
        let found = interchange::read(bytes)?;
        if found.is_empty() {
            return Err(Error::input(
                "import.empty",
                "This file contains no chats.",
                "Choose the export's conversations.json, or the archive zip.",
            ));
        }
        let (model, now_ms) = (self.default_model()?, self.now());
        let (mut conversations, mut failures) = (Vec::new(), Vec::new());
        for (n, found) in found.into_iter().enumerate() {
            let adopted = found.map_err(|why| (format!("Number {}", n + 1), why)).and_then(|mut archive| {
                interchange::complete(&mut archive, &model, now_ms);
                let title = archive.conversation.title.clone();
                let mut store = self.store();
                let row =
                    store.import_archive(archive).map_err(|error| (title.clone(), error.to_string()))?;
                summary(&store, row).map_err(|error| (title, error.to_string()))
            });
            match adopted {
                Ok(summary) => conversations.push(self.told(summary)),
                Err((which, why)) => failures.push(failure(&which, &why)),
            }
        }
        for folder in self.folders_list()? {
            self.ctx().events.publish(AppEvent::FolderChanged { folder });
        }
        if let Some(first) = failures.first().filter(|_| conversations.is_empty()) {
            return Err(Error::from(first.clone()));
        }
        let failed = u32::try_from(failures.len()).unwrap_or(u32::MAX);
        failures.truncate(MAX_LISTED_FAILURES);
        Ok(ImportSummary { conversations, failed, failures })
    }

    /// Everything as one file, which must be new: conversations, the trash, settings, the library's entries.
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
        let session::RestoreCounts { added, duplicated, unchanged } = restored;
        Ok(RestoreSummary { added: count(added), beside: count(duplicated), same: count(unchanged) })
    }

    fn now(&self) -> i64 {
        self.ctx().clock.now_utc_ms()
    }
}

fn failure(which: &str, why: &str) -> ErrorInfo {
    ErrorInfo {
        code: "import.conversation".into(),
        message: format!("{which}: {why}"),
        remedy: "The other chats in the file are imported.".into(),
        action: None,
    }
}

/// A name for a file without what some systems don't take.
fn file_name(title: &str) -> String {
    let clean: String =
        title.chars().map(|c| if c.is_control() || "/\\:*?\"<>|".contains(c) { '-' } else { c }).collect();
    let clean = clean.trim_matches([' ', '.', '-']);
    if clean.is_empty() { "conversation".into() } else { clean.into() }
}

/// Relative to where the program was started.
fn absolute(path: &str) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        Error::input("io.path", format!("{path}: {error}."), "Give the file's archive path.")
    })
}
