//! Conversations on their way out and in: Markdown to read, JSON that loses nothing, the exports of other
//! applications, and a backup of everything.
//!
//! A file is read wholly before anything of it is taken in; a conversation in it that can't be used is named and
//! left out, the others come. Nothing that is there is ever changed by an import.

pub(crate) mod base64;
mod chatgpt;
mod claude;
mod files;
mod json;
mod markdown;
mod zip;

use std::path::{Path, PathBuf};

use serde_json::Value;
use session::{ConversationArchive, TitledBy};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{AppEvent, ErrorInfo, ExportFormat, Exported, FileName, Imported, Restored, Saved};
use crate::{App, title};

/// Longest file that is read for an import: many times any export there is.
const MOST_BYTES: u64 = 1 << 31;

/// Failures that are told one by one.
const MOST_TOLD: usize = 20;

/// What was found in a file: each conversation, or why it can't be used.
type Found = Vec<std::result::Result<ConversationArchive, String>>;

impl App {
    /// As text: Markdown of the branch that is looked at, or JSON with every version. Without an id every conversation
    /// that isn't in the trash.
    pub fn export(&self, id: Option<&str>, format: ExportFormat) -> Result<Exported> {
        let state = self.shared().state();
        let ids = match id {
            Some(id) => vec![id.to_owned()],
            None => state.session.conversations()?.into_iter().map(|row| row.id).collect(),
        };
        let archives: session::Result<Vec<_>> = ids.iter().map(|id| state.session.archive(id)).collect();
        drop(state);
        let archives = archives?;
        let name = self.export_name(id, format)?.name;
        let text = match format {
            ExportFormat::Md => archives.iter().map(markdown::write).collect::<Vec<_>>().join("\n---\n\n"),
            ExportFormat::Json => json::write(&archives, self.now())?,
        };
        Ok(Exported { name, text })
    }

    /// What an export is best called.
    pub fn export_name(&self, id: Option<&str>, format: ExportFormat) -> Result<FileName> {
        let name = match id {
            Some(id) => file_name(&self.shared().state().session.conversation(id)?.title),
            None => "inglenook-conversations".into(),
        };
        let extension = match format {
            ExportFormat::Md => "md",
            ExportFormat::Json => "json",
        };
        Ok(FileName { name: format!("{name}.{extension}") })
    }

    /// As `export`, into a file: whole or not at all.
    pub fn export_to(&self, id: Option<&str>, format: ExportFormat, path: &str) -> Result<Saved> {
        let path = absolute(path)?;
        let text = self.export(id, format)?.text;
        self.shared().io.write_atomic(&path, text.as_bytes())?;
        Ok(Saved { path: path.display().to_string(), bytes: text.len() as u64 })
    }

    /// Takes in a file: our JSON, ChatGPT's or Claude's export, or the zip that holds one.
    pub fn import_file(&self, path: &str) -> Result<Imported> {
        let path = Path::new(path);
        let io = &self.shared().io;
        let n_bytes = io.len(path)?;
        if n_bytes > MOST_BYTES {
            let message = format!("{} has {n_bytes} bytes; the maximum is {MOST_BYTES}.", path.display());
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
    pub fn import_bytes(&self, base64: &str) -> Result<Imported> {
        let bytes = base64::decode(base64)
            .ok_or_else(|| Error::input("import.broken", "The file arrived damaged.", "Choose it again."))?;
        self.import(&bytes)
    }

    fn import(&self, bytes: &[u8]) -> Result<Imported> {
        let found = read(bytes)?;
        if found.is_empty() {
            return Err(Error::input(
                "import.empty",
                "This file contains no chats.",
                "Choose conversations.json from the export, or the whole ZIP file.",
            ));
        }
        let (model, now_ms) = (self.default_model()?, self.now());
        let (mut conversations, mut failures) = (Vec::new(), Vec::new());
        for (n, found) in found.into_iter().enumerate() {
            let adopted = found.map_err(|why| (format!("Number {}", n + 1), why)).and_then(|mut whole| {
                complete(&mut whole, &model, now_ms);
                let title = whole.conversation.title.clone();
                let mut state = self.shared().state();
                let row = state
                    .session
                    .import_archive(whole)
                    .map_err(|error| (title.clone(), error.to_string()))?;
                state.summary(row).map_err(|error| (title, error.to_string()))
            });
            match adopted {
                Ok(summary) => conversations.push(self.told(summary)),
                Err((which, why)) => failures.push(failure(&which, &why)),
            }
        }
        for folder in self.folders_list()? {
            self.shared().tell(AppEvent::FolderChanged { folder });
        }
        if let Some(first) = failures.first().filter(|_| conversations.is_empty()) {
            return Err(Error::from(first.clone()));
        }
        let failed = u32::try_from(failures.len()).unwrap_or(u32::MAX);
        failures.truncate(MOST_TOLD);
        Ok(Imported { conversations, failed, failures })
    }

    /// Everything as one file, which must be new: conversations, the trash, settings, the library's entries.
    pub fn data_backup(&self, path: &str) -> Result<Saved> {
        let path = absolute(path)?;
        self.shared().state().session.back_up_to(&path, &*self.shared().io)?;
        let bytes = self.shared().io.len(&path)?;
        Ok(Saved { path: path.display().to_string(), bytes })
    }

    /// Adds what a backup has and this folder lacks.
    pub fn data_restore(&self, path: &str) -> Result<Restored> {
        let path = absolute(path)?;
        let restored = self.shared().state().session.restore_from(&path, &*self.shared().io)?;
        for folder in self.folders_list()? {
            self.shared().tell(AppEvent::FolderChanged { folder });
        }
        for conversation in self.conversations_list()?.into_iter().rev() {
            self.told(conversation);
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let session::RestoreCounts { added, duplicated, unchanged } = restored;
        Ok(Restored { added: count(added), beside: count(duplicated), same: count(unchanged) })
    }

    fn now(&self) -> i64 {
        self.shared().clock.now_utc_ms()
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

/// What an export of elsewhere doesn't say.
fn complete(archive: &mut ConversationArchive, model: &str, now_ms: i64) {
    let row = &mut archive.conversation;
    row.title = match title::clean(&row.title) {
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

fn read(bytes: &[u8]) -> Result<Found> {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return read_zip(bytes);
    }
    if bytes.starts_with(b"SQLite format 3\0") {
        return Err(Error::input(
            "import.backup",
            "This is a full backup, not an export of chats.",
            "Restore it instead (`nook restore FILE`, or Settings > Data).",
        ));
    }
    read_json(bytes)
}

fn read_zip(bytes: &[u8]) -> Result<Found> {
    let mut found = Vec::new();
    let mut n_files = 0;
    for entry in zip::entries(bytes)? {
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        let is_wanted = name.starts_with("conversations") && name.ends_with(".json");
        if is_wanted && !entry.name.starts_with("__MACOSX") {
            n_files += 1;
            found.extend(read_json(&zip::read(bytes, &entry)?)?);
        }
    }
    if n_files == 0 {
        return Err(Error::input(
            "import.unknown",
            "This ZIP file contains no conversations.json.",
            "Choose the ZIP file exactly as you got it from ChatGPT or Claude.",
        ));
    }
    Ok(found)
}

fn read_json(bytes: &[u8]) -> Result<Found> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let (what, remedy) = if error.is_eof() {
            ("is cut off", "The download may be incomplete. Download it again.")
        } else {
            ("is not valid JSON", "Choose a JSON export, or the ZIP file that contains it.")
        };
        let message = format!("This file {what} (line {}, column {}).", error.line(), error.column());
        Error::input("import.broken", message, remedy)
    })?;
    if value.get("format").is_some() {
        return json::read(&value);
    }
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("conversations") {
            Some(Value::Array(list)) => list,
            _ => vec![Value::Object(object)],
        },
        _ => Vec::new(),
    };
    list.iter().map(|value| read_foreign(value).ok_or_else(unknown)).collect()
}

/// None: of no kind that is known.
fn read_foreign(value: &Value) -> Option<std::result::Result<ConversationArchive, String>> {
    match value {
        _ if value.get("mapping").is_some() => Some(chatgpt::read(value)),
        _ if value.get("chat_messages").is_some() => Some(claude::read(value)),
        _ => None,
    }
}

fn unknown() -> Error {
    Error::input(
        "import.unknown",
        "Unknown export format.",
        "Inglenook imports its own JSON and the exports of ChatGPT and Claude, also as ZIP files.",
    )
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
        Error::input("io.path", format!("{path}: {error}."), "Give the full path of the file.")
    })
}
