//! Our own JSON: everything of a conversation, every version, its tokens included. Reading it
//! restores the same tree.

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{
    ArchivedFiles, ConversationArchive, ConversationRow, MessageRow, MessageState, Role, TitledBy, TokenLog,
};

use super::ImportedConversation;
use super::files::{self, Documents, PassageSpan};
use super::images::{ImageMap, ReadImageFn};
use contract::{Error, Result};
use documents::sha256;
use platform::calendar;

const FORMAT: &str = "inglenook.conversations";
const VERSION: u32 = 1;

#[derive(Serialize)]
struct ExportFile<'a> {
    format: &'static str,
    version: u32,
    exported: String,
    conversations: Vec<Value>,
    /// Originals of images as base64, by their SHA-256.
    #[serde(skip_serializing_if = "ImageMap::is_empty")]
    images: ImageMap<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
struct Conversation {
    id: String,
    title: String,
    titled_by: String,
    model: String,
    created_ms: i64,
    updated_ms: i64,
    folder: Option<String>,
    pinned: bool,
    /// The conversation's own system prompt and sampling.
    options: Option<Value>,
    /// The message that the branch that is looked at ends with.
    leaf: Option<String>,
    messages: Vec<Message>,
    /// Texts of files, each once.
    #[serde(skip_serializing_if = "Documents::is_empty")]
    documents: Documents,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            id: String::new(),
            title: String::new(),
            titled_by: "user".into(),
            model: String::new(),
            created_ms: 0,
            updated_ms: 0,
            folder: None,
            pinned: false,
            options: None,
            leaf: None,
            messages: Vec::new(),
            documents: Documents::new(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Message {
    id: String,
    parent: Option<String>,
    role: String,
    text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reasoning: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Value>,
    state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stats: Option<Value>,
    #[serde(default)]
    created_ms: i64,
    /// The child that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chosen: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<Tokens>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<files::AttachedFile>,
    /// What of files was given to the model with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passages: Vec<PassageSpan>,
}

/// Ids that a model generated for a message.
#[derive(Serialize, Deserialize)]
struct Tokens {
    fingerprint: String,
    ids: Vec<u32>,
    #[serde(default)]
    whole: Vec<u32>,
}

macro_rules! words {
    ($write:ident, $read:ident, $type:ty { $($variant:path = $word:literal),* $(,)? }) => {
        fn $write(value: $type) -> &'static str {
            match value { $($variant => $word),* }
        }

        fn $read(word: &str) -> Option<$type> {
            match word { $($word => Some($variant),)* _ => None }
        }
    };
}

words!(role_word, role_of, Role { Role::System = "system", Role::User = "user", Role::Assistant = "assistant" });
words!(state_word, state_of, MessageState {
    MessageState::Streaming = "streaming",
    MessageState::Complete = "complete",
    MessageState::Stopped = "stopped",
    MessageState::Interrupted = "interrupted",
    MessageState::Failed = "failed",
});
words!(titled_word, titled_of, TitledBy {
    TitledBy::Start = "start",
    TitledBy::Model = "model",
    TitledBy::User = "user",
});

pub fn write(
    out: &mut dyn Write,
    archives: &[ConversationArchive],
    images: Option<&ReadImageFn<'_>>,
    now_ms: i64,
) -> std::io::Result<()> {
    let conversations: serde_json::Result<Vec<_>> =
        archives.iter().map(|archive| serde_json::to_value(conversation(archive))).collect();
    let file = ExportFile {
        format: FORMAT,
        version: VERSION,
        exported: format!("{}Z", calendar::date_time(now_ms)),
        conversations: conversations?,
        images: ImageMap::new(archives, images.unwrap_or(&|_| None)),
    };
    serde_json::to_writer_pretty(&mut *out, &file)?;
    out.write_all(b"\n")
}

/// Kept JSON that is none any more is left out.
fn parsed(json: &Option<String>) -> Option<Value> {
    serde_json::from_str(json.as_ref()?).ok()
}

fn conversation(archive: &ConversationArchive) -> Conversation {
    let row = &archive.conversation;
    let attached = |id: &String| archive.files.by_message.get(id).map(files::write).unwrap_or_default();
    let messages = archive.messages.iter().map(|(row, logs)| (row, logs, attached(&row.id)));
    let messages = messages.map(|(row, logs, (files, passages))| Message {
        id: row.id.clone(),
        parent: row.parent.clone(),
        role: role_word(row.role).into(),
        text: row.text.clone(),
        reasoning: row.reasoning.clone(),
        tool_calls: parsed(&row.tool_calls),
        state: state_word(row.state).into(),
        error: parsed(&row.error),
        model: row.model.clone(),
        stats: parsed(&row.stats),
        created_ms: row.created_ms,
        chosen: row.chosen.clone(),
        tokens: logs.iter().map(tokens).collect(),
        files,
        passages,
    });
    Conversation {
        id: row.id.clone(),
        title: row.title.clone(),
        titled_by: titled_word(row.titled_by).into(),
        model: row.model.clone(),
        created_ms: row.created_ms,
        updated_ms: row.updated_ms,
        folder: archive.folder.clone(),
        pinned: row.pinned,
        options: parsed(&row.options),
        leaf: row.leaf.clone(),
        messages: messages.collect(),
        documents: archive
            .files
            .documents
            .iter()
            .map(|(key, text)| (key.clone(), text.to_string()))
            .collect(),
    }
}

fn tokens(log: &TokenLog) -> Tokens {
    Tokens { fingerprint: log.fingerprint.clone(), ids: log.text_ids.clone(), whole: log.all_ids.clone() }
}

/// Errors: another format, a newer version, or no list of conversations.
pub fn check_header(format: &Value, version: Option<&Value>, has_list: bool) -> Result<()> {
    let refused = |message: String| {
        Err(Error::input("import.broken", message, "Export the chats again from the app they come from."))
    };
    if format != FORMAT {
        return refused(format!("Unknown format {format}."));
    }
    match version.and_then(Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => {
            let message = format!(
                "This export has version {version}, but this Inglenook reads versions up to {VERSION}."
            );
            Err(Error::input("import.newer", message, "Update Inglenook."))
        }
        Some(_) if has_list => Ok(()),
        Some(_) => refused("This Inglenook export is incomplete: it has no conversations.".into()),
        None => refused("This Inglenook export is incomplete: it has no version.".into()),
    }
}

/// A conversation of our format. Error: why it can't be used.
pub fn read(value: Value) -> std::result::Result<ImportedConversation, String> {
    let conversation =
        serde_json::from_value(value).map_err(|error| format!("it is incomplete: {error}."))?;
    Ok(ImportedConversation { archive: read_one(conversation)?, omissions: Vec::new() })
}

fn read_one(from: Conversation) -> std::result::Result<ConversationArchive, String> {
    let json = |value: Option<Value>| value.filter(|value| !value.is_null()).map(|value| value.to_string());
    let mut messages = Vec::with_capacity(from.messages.len());
    let mut files = ArchivedFiles::default();
    for message in from.messages {
        if !message.files.is_empty() || !message.passages.is_empty() {
            let attached = files::read(message.files, message.passages, &from.documents)?;
            files.by_message.insert(message.id.clone(), attached);
        }
        let role = role_of(&message.role).ok_or_else(|| format!("unknown role \"{}\".", message.role))?;
        let state =
            state_of(&message.state).ok_or_else(|| format!("unknown state \"{}\".", message.state))?;
        let row = MessageRow {
            parent: message.parent,
            role,
            text: message.text,
            reasoning: message.reasoning,
            tool_calls: json(message.tool_calls),
            // No turn is writing it here.
            state: if state == MessageState::Streaming { MessageState::Interrupted } else { state },
            error: json(message.error),
            model: message.model,
            stats: json(message.stats),
            created_ms: message.created_ms,
            chosen: message.chosen,
            ..MessageRow::new(message.id)
        };
        let log =
            |Tokens { fingerprint, ids, whole }| TokenLog { fingerprint, text_ids: ids, all_ids: whole };
        messages.push((row, message.tokens.into_iter().map(log).collect()));
    }
    files.documents = from.documents.into_values().map(|text| (sha256(&text), text.into())).collect();
    let conversation = ConversationRow {
        title: from.title,
        titled_by: titled_of(&from.titled_by).unwrap_or(TitledBy::User),
        model: from.model,
        created_ms: from.created_ms,
        updated_ms: from.updated_ms,
        pinned: from.pinned,
        options: json(from.options),
        leaf: from.leaf,
        ..ConversationRow::new(from.id)
    };
    Ok(ConversationArchive { conversation, folder: from.folder, messages, files })
}
