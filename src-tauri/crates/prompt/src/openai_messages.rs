//! Parses messages and tools in OpenAI's format, for every interface. An interface prefixes an
//! error's text with its own location.

use serde_json::{Map, Value, json};

use contract::protocol::PromptMessage;
use documents::blocks;
use documents::parts;

/// The longest lists that are taken: far beyond any conversation.
const MAX_CALLS: usize = 1024;

/// One message. Error: a sentence.
pub fn message(value: &Value) -> Result<PromptMessage, String> {
    let role = match value.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => "system",
        Some("user") => "user",
        Some("assistant") => "assistant",
        Some("tool") => "tool",
        Some("function") => return Err("`role` function is deprecated. Use tool.".into()),
        Some(_) | None => return Err("`role` must be system, developer, user, assistant or tool.".into()),
    };
    let tool_calls = calls(value.get("tool_calls").unwrap_or(&Value::Null))?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let reasoning = ["reasoning_content", "reasoning", "thinking"].iter().find_map(|key| text(key));
    Ok(PromptMessage {
        role: role.into(),
        content: content(value.get("content").unwrap_or(&Value::Null), role)?,
        reasoning: reasoning.unwrap_or_default(),
        tool_calls,
        tool_call_id: text("tool_call_id"),
        name: text("name"),
        logs: Vec::new(),
        ids: Vec::new(),
    })
}

fn content(value: &Value, role: &str) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let (mut files, mut text) = (Vec::new(), String::new());
            for part in parts {
                let word = |key: &str| part.get(key).and_then(Value::as_str);
                match (word("type"), word("text")) {
                    (Some("text" | "input_text" | "output_text"), Some(words)) => text.push_str(words),
                    (Some("file" | "input_file"), _) if role == "user" => files.push(parts::file(part)?),
                    _ => {
                        return Err(
                            "`content` may contain text parts, and files in user messages. Images and audio are not supported."
                                .into(),
                        );
                    }
                }
            }
            Ok(blocks::message(&files, &text))
        }
        Value::Null if role == "assistant" => Ok(String::new()),
        _ => Err("`content` must be a string or a list of text parts.".into()),
    }
}

/// `[{"id", "type": "function", "function": {"name", "arguments"}}]`, or null. A call without an id keeps none.
fn calls(value: &Value) -> Result<Vec<Value>, String> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) if list.len() <= MAX_CALLS => list,
        _ => return Err(format!("`tool_calls` must be a list of at most {MAX_CALLS} calls.")),
    };
    let call = |call: &Value| {
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => json!({}),
            Some(arguments @ (Value::String(_) | Value::Object(_))) => arguments.clone(),
            Some(_) => return None,
        };
        let mut read = json!({ "type": "function", "function": { "name": name, "arguments": arguments } });
        if let Some(id) = call.get("id").and_then(Value::as_str) {
            read["id"] = json!(id);
        }
        Some(read)
    };
    let all: Option<Vec<Value>> = list.iter().map(call).collect();
    all.ok_or_else(|| "each of `tool_calls` needs a function with a name and arguments.".into())
}

/// A list of tools, or null where there are none. Error: a sentence.
pub fn tools(value: &Value) -> Result<Value, String> {
    let list = match value {
        Value::Null => return Ok(Value::Null),
        Value::Array(list) if list.len() <= MAX_CALLS => list,
        _ => return Err(format!("`tools` must be a list of at most {MAX_CALLS} tools.")),
    };
    for tool in list {
        let is_function = tool.get("type").is_none_or(|kind| kind == "function");
        let name = tool.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
        if !is_function || name.is_none_or(str::is_empty) {
            return Err("each of `tools` must be a function with a name.".into());
        }
    }
    Ok(if list.is_empty() { Value::Null } else { value.clone() })
}

/// What a word for the effort means to templates: OpenAI's clients also say `none` and `minimal`.
pub fn effort(word: &str, kwargs: &mut Map<String, Value>) -> Result<(), String> {
    match word {
        "none" => kwargs.insert("enable_thinking".into(), json!(false)),
        "minimal" => kwargs.insert("reasoning_effort".into(), json!("low")),
        "low" | "medium" | "high" => kwargs.insert("reasoning_effort".into(), json!(word)),
        _ => return Err("`reasoning_effort` must be none, minimal, low, medium or high.".into()),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let read =
            message(&json!({"role": "assistant", "content": null, "tool_calls": [call], "reasoning": "r"}))
                .unwrap();
        assert_eq!(
            (read.content.as_str(), read.reasoning.as_str(), &read.tool_calls[..]),
            ("", "r", &[call][..])
        );
        let read =
            message(&json!({"role": "tool", "content": "x", "tool_call_id": "a", "name": "f"})).unwrap();
        assert_eq!(
            (read.role.as_str(), read.tool_call_id.as_deref(), read.name.as_deref()),
            ("tool", Some("a"), Some("f"))
        );
        for wrong in [
            json!("Hi"),
            json!({"role": "king", "content": "x"}),
            json!({"role": "user"}),
            json!({"role": "tool"}),
            json!({"role": "assistant", "tool_calls": [{}]}),
            json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]}),
            json!({"role": "user", "content": [{"type": "image_url"}]}),
        ] {
            assert!(message(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_stand_before_the_words() {
        let text = json!({"type": "text", "text": "Why?"});
        let file = json!({"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}});
        let input = json!({"type": "input_file", "filename": "b.txt", "file_data": "eW8="});
        let read = |parts: Value| message(&json!({"role": "user", "content": parts})).map(|it| it.content);
        let expected = "File: a.txt\n```\nhi\n```\n\nFile: b.txt\n```\nyo\n```\n\nWhy?";
        assert_eq!(read(json!([text, file, input])).as_deref(), Ok(expected));
        for (part, says) in [
            (json!({"type": "file", "file": {"file_id": "file-1"}}), "file_data"),
            (json!({"type": "input_file", "file_url": "https://example.org/a.pdf"}), "file_data"),
            (json!({"type": "file", "file": {"filename": "a.png", "file_data": "iVBORw0KGgo="}}), "an image"),
            (json!({"type": "file", "file": {"filename": "a.txt", "file_data": "?"}}), "base64"),
        ] {
            let error = read(json!([text, part])).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn tools_are_read() {
        assert_eq!(tools(&json!([])), Ok(Value::Null));
        let one = json!([{"type": "function", "function": {"name": "f"}}]);
        assert_eq!(tools(&one), Ok(one));
        for wrong in [
            json!({}),
            json!([{}]),
            json!([{"type": "function"}]),
            json!([{"type": "web", "function": {"name": "f"}}]),
        ] {
            assert!(tools(&wrong).is_err(), "{wrong}");
        }
    }
}
