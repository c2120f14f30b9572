//! Import and export of conversations, and the backup of everything. Of a file that is imported,
//! one conversation is in memory at a time. One that can't be used is reported and skipped; the
//! others are imported. An import never changes existing data.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use contract::types::{
    AppEvent, ConversationSummary, ErrorInfo, ExportFormat, ExportedFile, FileName, ImportSummary,
    RestoreSummary, SavedFile,
};
use contract::{Error, ErrorKind, Result};
use documents::base64;
use interchange::{ImportFault, ImportSource, ImportedConversation};
use io::SequentialReader;
use session::ConversationArchive;

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
        let (model, now_ms) = (self.default_model()?, self.now());
        let (mut conversations, mut failures) = (Vec::new(), ImportFailures::default());
        let outcome = interchange::read(source, &mut |found| match found {
            Ok(ImportedConversation { mut archive, omissions }) => {
                interchange::complete(&mut archive, &model, now_ms);
                let title = archive.conversation.title.clone();
                match self.adopt(archive) {
                    Ok(summary) => {
                        conversations.push(self.told(summary));
                        failures.note(&title, omissions);
                    }
                    Err(error) => failures.add("import.conversation", &title, &error.to_string()),
                }
            }
            Err(ImportFault { code, name, reason }) => failures.add(code, &name, &reason),
        });
        for folder in self.folders_list()? {
            self.ctx().events.publish(AppEvent::FolderChanged { folder });
        }
        if conversations.is_empty() {
            outcome?;
            return Err(failures.into_error());
        }
        // What came before the fault is imported.
        if let Err(error) = outcome {
            failures.push(error.info);
        }
        Ok(ImportSummary { conversations, failed: failures.n_failed, failures: failures.listed })
    }

    fn adopt(&self, archive: ConversationArchive) -> Result<ConversationSummary> {
        let mut store = self.store();
        let row = store.import_archive(archive)?;
        summary(&store, row)
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

/// What of a file could not be imported.
#[derive(Default)]
struct ImportFailures {
    n_failed: u32,
    /// The first ones.
    listed: Vec<ErrorInfo>,
}

impl ImportFailures {
    fn add(&mut self, code: &str, name: &str, reason: &str) {
        self.push(ErrorInfo {
            code: code.into(),
            message: format!("{name}: {reason}"),
            remedy: "The other chats in the file are imported.".into(),
            action: None,
        });
    }

    fn push(&mut self, failure: ErrorInfo) {
        self.n_failed = self.n_failed.saturating_add(1);
        self.list(failure);
    }

    /// Messages that are missing in a conversation that was imported.
    fn note(&mut self, title: &str, omissions: Vec<String>) {
        for omission in omissions {
            self.list(ErrorInfo {
                code: "import.conversation".into(),
                message: format!("{title}: {omission}"),
                remedy: "The other messages of the chat are imported.".into(),
                action: None,
            });
        }
    }

    fn list(&mut self, failure: ErrorInfo) {
        if self.listed.len() < MAX_LISTED_FAILURES {
            self.listed.push(failure);
        }
    }

    /// Nothing was imported: the first reason.
    fn into_error(self) -> Error {
        let Some(mut first) = self.listed.into_iter().next() else {
            return Error::input(
                "import.empty",
                "This file contains no chats.",
                "Choose the export's conversations.json, or the archive zip.",
            );
        };
        first.remedy =
            "Export the chats again from the app they come from, or download the file again.".into();
        Error::from(first)
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
