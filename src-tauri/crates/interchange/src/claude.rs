//! Claude's export: per conversation a list of messages, each with blocks of content; newer exports
//! name each message's parent.

use std::collections::HashMap;

use serde_json::Value;
use session::{ConversationArchive, ConversationRow, MessageRow, Role};

use crate::ImportedConversation;

/// A message in the order of the file.
struct SourceMessage<'a> {
    /// Unique in the conversation.
    id: String,
    role: Role,
    value: &'a Value,
    /// By its place. None: a first message.
    parent: Option<usize>,
}

/// Error: why this conversation can't be used.
pub fn read(value: &Value) -> Result<ImportedConversation, String> {
    let from = value["chat_messages"].as_array().ok_or("its messages are missing.")?;
    let (sources, mut omissions) = sources(from);
    let order = order(&sources);
    if order.len() < sources.len() {
        let n_lost = sources.len() - order.len();
        omissions.push(format!("{n_lost} messages that refer to each other in a cycle are left out."));
    }
    if order.is_empty() {
        return Err(omissions.into_iter().next().unwrap_or_else(|| "it has no messages.".into()));
    }
    let row = |at: usize| {
        let SourceMessage { id, role, value: message, parent } = &sources[at];
        let (text, reasoning) = words(message);
        let model = || value["model"].as_str().unwrap_or("claude").into();
        let row = MessageRow {
            parent: parent.map(|at| sources[at].id.clone()),
            role: *role,
            text,
            reasoning,
            model: (*role == Role::Assistant).then(model),
            created_ms: ms(&message["created_at"]),
            ..MessageRow::new(id.clone())
        };
        (row, Vec::new())
    };
    let messages: Vec<(MessageRow, Vec<session::TokenLog>)> = order.into_iter().map(row).collect();
    let leaf = value["current_leaf_message_uuid"].as_str();
    let conversation = ConversationRow {
        title: value["name"].as_str().unwrap_or_default().into(),
        created_ms: ms(&value["created_at"]),
        updated_ms: ms(&value["updated_at"]),
        pinned: value["is_starred"].as_bool().unwrap_or(false),
        leaf: leaf.filter(|leaf| messages.iter().any(|(row, _)| row.id == **leaf)).map(str::to_owned),
        ..ConversationRow::new(String::new())
    };
    let files = session::ArchivedFiles::default();
    let archive = ConversationArchive { conversation, folder: None, messages, files };
    Ok(ImportedConversation { archive, omissions })
}

/// Messages that can be used, and why others can't. A message that is there twice stays once; another one with the
/// same id becomes another version, and the messages behind it follow it.
fn sources(from: &[Value]) -> (Vec<SourceMessage<'_>>, Vec<String>) {
    let (mut sources, mut omissions) = (Vec::<SourceMessage>::with_capacity(from.len()), Vec::new());
    // Places of the messages by their ids, in the order of the file; a message that is left out leads to its parent.
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut detours: HashMap<&str, &str> = HashMap::new();
    let mut wanted: Vec<Option<&str>> = Vec::new();
    let is_tree = from.iter().any(|message| message["parent_message_uuid"].is_string());
    for (n, message) in from.iter().enumerate() {
        let (uuid, parent) = (message["uuid"].as_str(), message["parent_message_uuid"].as_str());
        let role = match message["sender"].as_str() {
            Some("human" | "user") => Role::User,
            Some("assistant") => Role::Assistant,
            other => {
                let who =
                    other.map_or("no sender".to_owned(), |other| format!("the unknown sender \"{other}\""));
                omissions.push(format!("message {} has {who} and is left out.", n + 1));
                detours.extend(uuid.zip(parent));
                continue;
            }
        };
        let same_id = uuid.and_then(|uuid| places.get(uuid)).map_or(&[][..], Vec::as_slice);
        if same_id.iter().any(|at| sources[*at].value == message) {
            continue;
        }
        let id = match uuid {
            Some(uuid) if same_id.is_empty() => uuid.to_owned(),
            Some(uuid) => format!("{uuid}-{n}"),
            None => format!("message-{n}"),
        };
        if let Some(uuid) = uuid {
            places.entry(uuid).or_default().push(sources.len());
        }
        wanted.push(parent);
        sources.push(SourceMessage { id, role, value: message, parent: None });
    }
    for at in 0..sources.len() {
        sources[at].parent = match (is_tree, wanted[at]) {
            // The first ones have a parent id that matches no message.
            (true, parent) => parent.and_then(|id| place_of(id, at, &places, &detours)),
            (false, _) => at.checked_sub(1),
        };
    }
    (sources, omissions)
}

/// The place of the message with this id that stands nearest before `at`, else of the first one.
fn place_of(
    id: &str,
    at: usize,
    places: &HashMap<&str, Vec<usize>>,
    detours: &HashMap<&str, &str>,
) -> Option<usize> {
    let mut id = id;
    // No longer than there are messages to pass by.
    for _ in 0..=detours.len() {
        if let Some(places) = places.get(id) {
            return places.iter().rev().find(|place| **place < at).or(places.first()).copied();
        }
        id = detours.get(id)?;
    }
    None
}

/// Parents before children, else as in the file. Without messages that hang on each other.
fn order(sources: &[SourceMessage<'_>]) -> Vec<usize> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); sources.len()];
    let mut waiting = Vec::new();
    for (at, source) in sources.iter().enumerate().rev() {
        match source.parent {
            Some(parent) => children[parent].push(at),
            None => waiting.push(at),
        }
    }
    let mut order = Vec::with_capacity(sources.len());
    while let Some(at) = waiting.pop() {
        order.push(at);
        waiting.append(&mut children[at]);
    }
    order
}

/// Text and reasoning. The blocks where there are some; `text` says the same more coarsely.
fn words(message: &Value) -> (String, String) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    for block in message["content"].as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => add(&mut text, block["text"].as_str().unwrap_or_default()),
            "thinking" => add(&mut reasoning, block["thinking"].as_str().unwrap_or_default()),
            "tool_use" => {
                let name = block["name"].as_str().unwrap_or("tool");
                add(&mut reasoning, &format!("To {name}:\n```\n{}\n```", block["input"]));
            }
            "tool_result" => {
                let name = block["name"].as_str().unwrap_or("tool");
                add(&mut reasoning, &format!("From {name}:\n```\n{}\n```", said(&block["content"])));
            }
            _ => {}
        }
    }
    if text.trim().is_empty() && reasoning.trim().is_empty() {
        text = message["text"].as_str().unwrap_or_default().into();
    }
    for file in message["attachments"].as_array().into_iter().flatten() {
        let name = file["file_name"].as_str().filter(|name| !name.is_empty()).unwrap_or("attachment");
        let inside = file["extracted_content"].as_str().unwrap_or_default();
        add(&mut text, &format!("[{name}]\n{inside}"));
    }
    for file in message["files"].as_array().into_iter().flatten() {
        add(&mut text, &format!("[{}]", file["file_name"].as_str().unwrap_or("file")));
    }
    (text, reasoning)
}

/// What a tool said: text, or blocks of it.
fn said(content: &Value) -> String {
    let mut text = String::new();
    match content {
        Value::String(said) => text.push_str(said),
        Value::Array(blocks) => {
            for block in blocks {
                add(&mut text, block["text"].as_str().unwrap_or_default());
            }
        }
        _ => {}
    }
    text
}

/// With a blank line between.
fn add(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// `2026-03-29T07:06:35.552627Z` as milliseconds; what is no date is as if it weren't there.
fn ms(date: &Value) -> i64 {
    date.as_str().and_then(platform::calendar::parse).unwrap_or(0)
}
