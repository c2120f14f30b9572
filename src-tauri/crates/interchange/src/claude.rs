//! Claude's export: per conversation a list of messages, each with blocks of content; newer exports
//! name each message's parent.

use std::collections::HashMap;

use serde_json::Value;
use session::{ConversationArchive, ConversationRow, MessageRow, Role};

/// Error: why this conversation can't be used.
pub fn read(value: &Value) -> Result<ConversationArchive, String> {
    let from = value["chat_messages"].as_array().ok_or("its messages are missing.")?;
    let mut messages = Vec::with_capacity(from.len());
    // The place of each message that came, by its id.
    let mut places: HashMap<&str, usize> = HashMap::new();
    let is_tree = from.iter().any(|message| message["parent_message_uuid"].is_string());
    for (n, message) in from.iter().enumerate() {
        let role = match message["sender"].as_str() {
            Some("human" | "user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(other) => return Err(format!("Unknown sender \"{other}\".")),
            None => return Err("a message has no sender.".into()),
        };
        let (text, reasoning) = words(message);
        let id = message["uuid"].as_str().map_or_else(|| format!("message-{n}"), str::to_owned);
        let parent = if is_tree {
            // The first ones have a parent id that matches no message.
            message["parent_message_uuid"].as_str().and_then(|id| places.get(id).copied())
        } else {
            n.checked_sub(1)
        };
        let row = MessageRow {
            parent: parent.map(|at| {
                let (row, _): &(MessageRow, Vec<session::TokenLog>) = &messages[at];
                row.id.clone()
            }),
            role,
            text,
            reasoning,
            model: (role == Role::Assistant).then(|| value["model"].as_str().unwrap_or("claude").into()),
            created_ms: ms(&message["created_at"]),
            ..MessageRow::new(id)
        };
        if let Some(id) = message["uuid"].as_str() {
            places.insert(id, n);
        }
        messages.push((row, Vec::new()));
    }
    if messages.is_empty() {
        return Err("it has no messages.".into());
    }
    let leaf = value["current_leaf_message_uuid"].as_str().and_then(|id| places.get(id));
    let conversation = ConversationRow {
        title: value["name"].as_str().unwrap_or_default().into(),
        created_ms: ms(&value["created_at"]),
        updated_ms: ms(&value["updated_at"]),
        pinned: value["is_starred"].as_bool().unwrap_or(false),
        leaf: leaf.map(|&at| messages[at].0.id.clone()),
        ..ConversationRow::new(String::new())
    };
    Ok(ConversationArchive { conversation, folder: None, messages, files: session::ArchivedFiles::default() })
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
