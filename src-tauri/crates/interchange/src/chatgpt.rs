//! ChatGPT's export: per conversation a map of nodes, each with its parent, and the current node.
//! Nodes without text (roots, hidden context, settings) are skipped. Reasoning, tool calls and tool
//! results are separate nodes; they become the reasoning of the answer that follows them.

use std::collections::HashMap;

use serde_json::{Map, Value};
use session::{ConversationArchive, ConversationRow, MessageRow, Role};

use crate::{ImportedConversation, citations};

/// A node's own words, before it is known whose they are.
#[derive(Debug, Default)]
struct Words {
    role: Option<Role>,
    text: String,
    reasoning: String,
}

/// Error: why this conversation can't be used.
pub fn read(value: &Value) -> Result<ImportedConversation, String> {
    let nodes = value["mapping"].as_object().ok_or("its messages are missing.")?;
    let order = order(nodes);
    let n_lost = nodes.len() - order.len();
    if order.is_empty() && n_lost > 0 {
        return Err("its messages refer to each other in a cycle.".into());
    }
    let n_children = count_children(nodes);
    let mut messages: Vec<(MessageRow, Vec<session::TokenLog>)> = Vec::new();
    // The message that a node's words went into, or that of the nearest one above it.
    let mut place: HashMap<&str, Option<usize>> = HashMap::new();
    for id in order {
        let node = &nodes[id];
        let parent = node["parent"].as_str();
        let above = parent.and_then(|parent| place.get(parent).copied().flatten());
        let words = words(&node["message"]);
        let Some(role) = words.role else {
            place.insert(id, above);
            continue;
        };
        let only_child = parent.is_some_and(|parent| n_children.get(parent) == Some(&1));
        if let Some(at) =
            above.filter(|&at| only_child && role == Role::Assistant && messages[at].0.role == role)
        {
            join(&mut messages[at].0, &words, &node["message"]);
            place.insert(id, Some(at));
            continue;
        }
        let mut row = MessageRow {
            parent: above.map(|at| messages[at].0.id.clone()),
            role,
            created_ms: ms(&node["message"]["create_time"]),
            ..MessageRow::new(id.to_owned())
        };
        join(&mut row, &words, &node["message"]);
        place.insert(id, Some(messages.len()));
        messages.push((row, Vec::new()));
    }
    if messages.is_empty() {
        return Err("it has no messages.".into());
    }
    let leaf = value["current_node"].as_str().and_then(|id| place.get(id).copied().flatten());
    let conversation = ConversationRow {
        title: value["title"].as_str().unwrap_or_default().into(),
        created_ms: ms(&value["create_time"]),
        updated_ms: ms(&value["update_time"]),
        pinned: value["is_starred"].as_bool().unwrap_or(false),
        leaf: leaf.map(|at| messages[at].0.id.clone()),
        ..ConversationRow::new(String::new())
    };
    let files = session::ArchivedFiles::default();
    let archive = ConversationArchive { conversation, folder: None, messages, files };
    let cycle = || format!("{n_lost} messages that refer to each other in a cycle are left out.");
    Ok(ImportedConversation { archive, omissions: (n_lost > 0).then(cycle).into_iter().collect() })
}

/// Parents before children; children in their order. Without those that hang on each other.
fn order(nodes: &Map<String, Value>) -> Vec<&str> {
    let has_parent = |node: &Value| node["parent"].as_str().is_some_and(|parent| nodes.contains_key(parent));
    let mut waiting: Vec<&str> =
        nodes.iter().filter(|(_, node)| !has_parent(node)).map(|(id, _)| id.as_str()).rev().collect();
    let mut by_parent: HashMap<&str, Vec<&str>> = HashMap::new();
    for (id, node) in nodes {
        if let Some(parent) = node["parent"].as_str() {
            by_parent.entry(parent).or_default().push(id);
        }
    }
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(id) = waiting.pop() {
        order.push(id);
        let mut children = by_parent.remove(id).unwrap_or_default();
        let listed: Vec<&str> =
            nodes[id]["children"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let places: HashMap<&str, usize> =
            listed.iter().rev().copied().zip((0..listed.len()).rev()).collect();
        children.sort_by_key(|child| places.get(child).copied().unwrap_or(usize::MAX));
        waiting.extend(children.into_iter().rev());
    }
    order
}

fn count_children(nodes: &Map<String, Value>) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for parent in nodes.values().filter_map(|node| node["parent"].as_str()) {
        *counts.entry(parent).or_default() += 1;
    }
    counts
}

fn join(row: &mut MessageRow, words: &Words, message: &Value) {
    add(&mut row.text, &words.text);
    add(&mut row.reasoning, &words.reasoning);
    if row.role == Role::Assistant
        && let Some(model) = message["metadata"]["model_slug"].as_str()
    {
        row.model = Some(model.into());
    }
}

/// With a blank line between.
fn add(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

fn words(message: &Value) -> Words {
    let is_hidden = message["metadata"]["is_visually_hidden_from_conversation"].as_bool() == Some(true);
    let role = message["author"]["role"].as_str().unwrap_or_default();
    let (text, thinking) = (content(&message["content"]), thoughts(&message["content"]));
    // What a user wrote is left as it is.
    let (text, thinking) = match role {
        "user" => (text, thinking),
        _ => {
            let resolve = |text: String| citations::resolve(&text, &message["metadata"]);
            (resolve(text), resolve(thinking))
        }
    };
    if is_hidden || (text.trim().is_empty() && thinking.trim().is_empty()) {
        return Words::default();
    }
    // What is said to a tool, and what a tool says, is not said to the user.
    let aside = message["recipient"].as_str().filter(|recipient| *recipient != "all");
    match (role, aside) {
        ("user", _) => Words { role: Some(Role::User), text, reasoning: String::new() },
        ("assistant", None) => Words { role: Some(Role::Assistant), text, reasoning: thinking },
        ("assistant", Some(tool)) => {
            let reasoning = format!("To {tool}:\n```\n{text}\n```");
            Words { role: Some(Role::Assistant), text: String::new(), reasoning }
        }
        ("tool", _) => {
            let tool = message["author"]["name"].as_str().unwrap_or("tool");
            let reasoning = format!("From {tool}:\n```\n{text}\n```");
            Words { role: Some(Role::Assistant), text: String::new(), reasoning }
        }
        _ => Words::default(),
    }
}

fn thoughts(content: &Value) -> String {
    let mut text = String::new();
    for thought in content["thoughts"].as_array().into_iter().flatten() {
        let part = thought["content"].as_str().filter(|it| !it.is_empty()).or(thought["summary"].as_str());
        add(&mut text, part.unwrap_or_default());
    }
    text
}

fn content(content: &Value) -> String {
    let mut text = String::new();
    match content["content_type"].as_str().unwrap_or("text") {
        // Said by the application, or told in `thoughts`.
        "user_editable_context" | "model_editable_context" | "reasoning_recap" | "thoughts" => return text,
        "code" | "execution_output" | "tether_quote" | "tether_browsing_display" | "system_error" => {
            let part = ["text", "result"].iter().find_map(|key| content[*key].as_str());
            add(&mut text, part.unwrap_or_default());
        }
        _ => {}
    }
    for part in content["parts"].as_array().into_iter().flatten() {
        match part {
            Value::String(part) => add(&mut text, part),
            Value::Object(part) => add(&mut text, &attachment(part)),
            _ => {}
        }
    }
    text
}

/// A part that is no text: its words, where it has some, else its kind.
fn attachment(part: &Map<String, Value>) -> String {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return text.into();
    }
    let kind = part.get("content_type").and_then(Value::as_str).unwrap_or("attachment");
    format!("[{}]", kind.trim_end_matches("_asset_pointer").replace('_', " "))
}

/// Seconds, with a fraction, as milliseconds.
fn ms(seconds: &Value) -> i64 {
    // What is out of range is as if it weren't there.
    seconds.as_f64().filter(|it| it.is_finite()).map_or(0, |it| (it * 1000.0) as i64)
}
