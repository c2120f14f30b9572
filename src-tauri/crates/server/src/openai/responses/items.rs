//! Items of responses and conversations: read from requests, and turned into messages of a prompt.
//!
//! Guarantees that every stored item has an id, a type and lists for content.

use contract::protocol::PromptMessage;
use prompt::openai_messages;
use serde_json::{Map, Value, json};

use super::summary_item::summary_of;
use crate::fault::OpenAiFault;
use crate::openai::fields::{Result, sentence, unsupported};
use crate::openai::new_id;

/// Largest number of items of one request; far beyond any conversation.
const MAX_ITEMS: usize = 10_000;

fn invalid(name: &'static str, index: usize, what: &str) -> OpenAiFault {
    OpenAiFault::invalid(name, format!("Item {index} of `{name}`: {what}"))
}

/// Reads a text or a list of items. `name` is the field that holds them.
pub fn read(value: Option<&Value>, name: &'static str) -> Result<Vec<Value>> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![message("user", text)]),
        Some(Value::Array(list)) if list.len() <= MAX_ITEMS => {
            list.iter().enumerate().map(|(index, item)| read_one(item, index, name)).collect()
        }
        Some(_) => Err(OpenAiFault::invalid(
            name,
            format!("`{name}` must be a text or a list of at most {MAX_ITEMS} items."),
        )),
    }
}

/// A message with one text.
pub fn message(role: &str, text: &str) -> Value {
    json!({
        "id": new_id("msg"), "type": "message", "role": role, "status": "completed",
        "content": [{ "type": text_type(role), "text": text }],
    })
}

fn text_type(role: &str) -> &'static str {
    if role == "assistant" { "output_text" } else { "input_text" }
}

/// Gives an item what stored ones have.
fn read_one(item: &Value, index: usize, name: &'static str) -> Result<Value> {
    let Value::Object(fields) = item else { return Err(invalid(name, index, "it must be an object.")) };
    let mut item = fields.clone();
    let kind = match item.get("type").and_then(Value::as_str) {
        Some(kind) => kind.to_owned(),
        None if item.contains_key("role") => "message".to_owned(),
        None if item.contains_key("id") => "item_reference".to_owned(),
        None => return Err(invalid(name, index, "it needs a `type` or a `role`.")),
    };
    let prefix = match kind.as_str() {
        "message" => {
            normalize_message(&mut item).map_err(|what| invalid(name, index, &what))?;
            "msg"
        }
        "function_call" => "fc",
        "function_call_output" => "fco",
        "reasoning" => "rs",
        "compaction" => "cmp",
        "item_reference" => "",
        _ => {
            let what = format!("Item {index} of `{name}`: items of type {kind} are not supported.");
            return Err(unsupported(name, what));
        }
    };
    item.insert("type".into(), json!(kind));
    if !item.get("id").is_some_and(Value::is_string) {
        item.insert("id".into(), json!(new_id(prefix)));
    }
    if prefix == "fc" || prefix == "fco" {
        item.entry("status").or_insert_with(|| json!("completed"));
    }
    let item = Value::Object(item);
    // What can't become a message is refused now, not when it is used.
    let mut messages = Messages::default();
    messages.add(&item).map_err(|what| invalid(name, index, &what))?;
    Ok(item)
}

fn normalize_message(item: &mut Map<String, Value>) -> std::result::Result<(), String> {
    let role = item.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    match item.get("content") {
        Some(Value::String(text)) => {
            let mut part = json!({ "type": text_type(&role), "text": text });
            if role == "assistant" {
                part["annotations"] = json!([]);
            }
            item.insert("content".into(), json!([part]));
        }
        Some(Value::Array(_)) => {}
        Some(_) | None => return Err("`content` must be a string or a list of parts.".into()),
    }
    item.entry("status").or_insert_with(|| json!("completed"));
    Ok(())
}

/// Replaces references by the items of `known` that they name.
pub fn resolve(items: Vec<Value>, known: &[Value]) -> Result<Vec<Value>> {
    let resolved = |item: Value| {
        if item["type"] != "item_reference" {
            return Ok(item);
        }
        let id = &item["id"];
        known.iter().find(|known| known["id"] == *id).cloned().ok_or_else(|| {
            OpenAiFault::invalid(
                "input",
                format!("`input` refers to the item {id}, which doesn't exist here."),
            )
        })
    };
    items.into_iter().map(resolved).collect()
}

/// Messages that items become.
#[derive(Debug, Default)]
pub struct Messages {
    all: Vec<PromptMessage>,
    /// Reasoning that belongs to the assistant's next message.
    reasoning: String,
}

impl Messages {
    /// The messages of a response: instructions, then items.
    pub fn of(instructions: Option<&str>, items: &[Value]) -> Result<Vec<PromptMessage>> {
        let mut messages = Self::default();
        if let Some(text) = instructions.filter(|text| !text.is_empty()) {
            let (role, content) = ("system".into(), text.into());
            messages.all.push(PromptMessage { role, content, ..PromptMessage::default() });
        }
        for item in items {
            messages.add(item).map_err(|what| OpenAiFault::invalid("input", sentence(&what)))?;
        }
        // A response to nothing answers an empty message.
        if messages.all.iter().all(|message| message.role == "system") {
            messages.all.push(PromptMessage { role: "user".into(), ..PromptMessage::default() });
        }
        Ok(messages.all)
    }

    fn add(&mut self, item: &Value) -> std::result::Result<(), String> {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        match text("type").unwrap_or_default() {
            "message" => {
                let mut message = openai_messages::message(item)?;
                if message.role == "assistant" {
                    message.reasoning.push_str(&std::mem::take(&mut self.reasoning));
                }
                self.all.push(message);
            }
            "function_call" => {
                let (Some(id), Some(name)) = (text("call_id"), text("name")) else {
                    return Err("a function_call needs `call_id` and `name`.".into());
                };
                let arguments = text("arguments").unwrap_or("{}");
                let function = json!({ "name": name, "arguments": arguments });
                let call = json!({ "id": id, "type": "function", "function": function });
                self.assistant().tool_calls.push(call);
            }
            "function_call_output" => self.add_output(item)?,
            "reasoning" => self.reasoning.push_str(&reasoning_text(item)),
            "compaction" => {
                let summary = summary_of(item)?;
                let role = "user".into();
                self.all.push(PromptMessage { role, content: summary, ..PromptMessage::default() });
            }
            // Checked where it is resolved.
            "item_reference" => {}
            kind => return Err(format!("items of type {kind} are not supported.")),
        }
        Ok(())
    }

    fn add_output(&mut self, item: &Value) -> std::result::Result<(), String> {
        let Some(id) = item.get("call_id").and_then(Value::as_str) else {
            return Err("a function_call_output needs `call_id`.".into());
        };
        let calls = self.all.iter().flat_map(|message| &message.tool_calls);
        let call = calls.rev().find(|call| call["id"] == id);
        let name = call.and_then(|call| call["function"]["name"].as_str()).map(str::to_owned);
        let content = item.get("output").unwrap_or(&Value::Null);
        let message = json!({ "role": "tool", "content": content, "tool_call_id": id });
        self.all.push(PromptMessage { name, ..openai_messages::message(&message)? });
        Ok(())
    }

    /// The assistant's message that calls belong to.
    fn assistant(&mut self) -> &mut PromptMessage {
        if self.all.last().is_none_or(|last| last.role != "assistant") {
            let reasoning = std::mem::take(&mut self.reasoning);
            let role = "assistant".into();
            self.all.push(PromptMessage { role, reasoning, ..PromptMessage::default() });
        }
        let last = self.all.len() - 1;
        &mut self.all[last]
    }
}

fn reasoning_text(item: &Value) -> String {
    let texts = |key: &str| -> String {
        let parts = item.get(key).and_then(Value::as_array).into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect()
    };
    let whole = texts("content");
    if whole.is_empty() { texts("summary") } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_messages() {
        let items = read(
            Some(&json!([
                { "role": "user", "content": "Weather?" },
                { "type": "reasoning", "id": "rs_1", "summary": [], "content": [{ "type": "reasoning_text", "text": "Hm." }] },
                { "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"a\":1}" },
                { "type": "function_call", "call_id": "c2", "name": "go" },
                { "type": "function_call_output", "call_id": "c1", "output": "Sun" },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Sunny." }] },
            ])),
            "input",
        )
        .unwrap();
        assert_eq!(items[0]["content"], json!([{ "type": "input_text", "text": "Weather?" }]));
        assert_eq!((&items[0]["type"], &items[2]["status"]), (&json!("message"), &json!("completed")));
        assert!(items.iter().all(|item| item["id"].is_string()));
        let messages = Messages::of(Some("Be brief."), &items).unwrap();
        let shown: Vec<_> = messages
            .iter()
            .map(|it| (it.role.as_str(), it.content.as_str(), it.reasoning.as_str(), it.tool_calls.len()))
            .collect();
        assert_eq!(
            shown,
            [
                ("system", "Be brief.", "", 0),
                ("user", "Weather?", "", 0),
                ("assistant", "", "Hm.", 2),
                ("tool", "Sun", "", 0),
                ("assistant", "Sunny.", "", 0),
            ]
        );
        assert_eq!(
            (messages[3].tool_call_id.as_deref(), messages[3].name.as_deref()),
            (Some("c1"), Some("look"))
        );
        assert_eq!(Messages::of(None, &[]).unwrap().len(), 1);
    }

    #[test]
    fn what_is_refused_names_its_item() {
        for (input, says) in [
            (json!(7), "must be a text"),
            (json!([7]), "Item 0"),
            (json!([{}]), "`type`"),
            (json!([{ "role": "user" }]), "`content`"),
            (json!([{ "role": "king", "content": "x" }]), "`role`"),
            (json!([{ "type": "function_call", "name": "x" }]), "`call_id`"),
            (json!([{ "type": "function_call_output", "output": "x" }]), "`call_id`"),
            (json!([{ "type": "web_search_call" }]), "web_search_call"),
            (json!([{ "role": "user", "content": [{ "type": "input_image" }] }]), "Images"),
        ] {
            let fault = read(Some(&input), "input").unwrap_err();
            assert_eq!(fault.param.as_deref(), Some("input"), "{input}");
            assert!(fault.message.contains(says), "{}", fault.message);
        }
    }

    #[test]
    fn references_are_replaced_by_what_they_name() {
        let items = read(Some(&json!([{ "type": "item_reference", "id": "msg_1" }])), "input").unwrap();
        let known = [json!({ "id": "msg_1", "type": "message", "role": "user", "content": [] })];
        assert_eq!(resolve(items.clone(), &known).unwrap(), known);
        assert!(resolve(items, &[]).unwrap_err().message.contains("msg_1"));
    }
}
