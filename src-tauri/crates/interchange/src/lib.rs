//! Import and export of conversations: our own JSON, Markdown, and the exports of ChatGPT and
//! Claude, in zips too. Reads and writes bytes; knows neither the database nor the application.
#![forbid(unsafe_code)]

mod chatgpt;
mod claude;
mod files;
mod json;
mod markdown;
mod zip;

use contract::{Error, Result};
use prompt::title_text;
use serde_json::Value;
use session::{ConversationArchive, TitledBy};

pub use json::write as write_json;
pub use markdown::write as write_markdown;

/// What was found in a file: each conversation, or why it can't be used.
pub type ImportedConversations = Vec<std::result::Result<ConversationArchive, String>>;

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

/// Every conversation of a file: our JSON, an export of ChatGPT or Claude, or the zip that holds one.
pub fn read(bytes: &[u8]) -> Result<ImportedConversations> {
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

fn read_zip(bytes: &[u8]) -> Result<ImportedConversations> {
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

fn read_json(bytes: &[u8]) -> Result<ImportedConversations> {
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
