//! Parses messages and tools in OpenAI's format, for every interface. An interface prefixes an
//! error's text with its own location.

use serde_json::{Map, Value, json};

use contract::protocol::{ImageDetail, PromptImage, PromptMessage};
use documents::blocks;
use documents::parts;

use crate::images;

/// The longest lists that are taken: far beyond any conversation.
const MAX_CALLS: usize = 1024;

/// The most images of a message: their rows alone fill the contexts of most models.
const MAX_IMAGES: usize = 64;

/// Reads an image of a message's content. Error: a sentence.
pub type ReadImage<'a> = &'a mut dyn FnMut(&Value) -> Result<PromptImage, String>;

/// One message. Error: a sentence.
pub fn message(value: &Value) -> Result<PromptMessage, String> {
    message_with(value, &mut image_part)
}

/// One message, whose images `read` reads. Error: a sentence.
pub fn message_with(value: &Value, read: ReadImage) -> Result<PromptMessage, String> {
    let role = match value.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => "system",
        Some("user") => "user",
        Some("assistant") => "assistant",
        // The earlier name, of messages that answer a `function_call`.
        Some("tool" | "function") => "tool",
        Some(_) | None => return Err("`role` must be system, developer, user, assistant or tool.".into()),
    };
    let mut tool_calls = calls(value.get("tool_calls").unwrap_or(&Value::Null))?;
    if let Some(call) = value.get("function_call").filter(|call| !call.is_null()) {
        tool_calls.extend(calls(&json!([call]))?);
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let reasoning = ["reasoning_content", "reasoning", "thinking"].iter().find_map(|key| text(key));
    let (content, images) = content(value.get("content").unwrap_or(&Value::Null), role, read)?;
    Ok(PromptMessage {
        role: role.into(),
        content,
        images,
        reasoning: reasoning.unwrap_or_default(),
        tool_calls,
        tool_call_id: text("tool_call_id"),
        name: text("name"),
        logs: Vec::new(),
        ids: Vec::new(),
    })
}

/// A part `{"type": "image_url", "image_url": {"url", "detail"}}`, or `{"type": "input_image", "image_url"}`, with a data URL.
/// Error: a sentence.
pub fn image_part(part: &Value) -> Result<PromptImage, String> {
    let address = part.get("image_url");
    let url = address
        .and_then(|it| it.get("url").unwrap_or(it).as_str())
        .ok_or_else(|| "Images need `image_url` with a data URL (data:image/png;base64,…).".to_owned())?;
    let detail = match address.and_then(|it| it.get("detail")).or_else(|| part.get("detail")) {
        None | Some(Value::Null) => ImageDetail::default(),
        Some(word) => match word.as_str() {
            Some("low") => ImageDetail::Low,
            Some("balanced") => ImageDetail::Balanced,
            Some("auto" | "high" | "original" | "full") => ImageDetail::Full,
            _ => return Err("`detail` must be low, balanced, high or auto.".into()),
        },
    };
    let image = images::from_base64(url).map_err(|error| format!("{error} {}", error.remedy()))?;
    Ok(PromptImage { detail, ..image })
}

/// Text, with files before it, and the images in it.
fn content(value: &Value, role: &str, read: ReadImage) -> Result<(String, Vec<PromptImage>), String> {
    match value {
        Value::String(text) => Ok((text.clone(), Vec::new())),
        Value::Array(parts) => {
            let (mut files, mut text, mut images) = (Vec::new(), String::new(), Vec::new());
            let is_shown = role == "user" || role == "tool";
            for part in parts {
                let word = |key: &str| part.get(key).and_then(Value::as_str);
                match (word("type"), word("text")) {
                    (Some("text" | "input_text" | "output_text"), Some(words)) => text.push_str(words),
                    (Some("file" | "input_file"), _) if role == "user" => files.push(parts::file(part)?),
                    (Some("image_url" | "input_image" | "image"), _) if is_shown => {
                        if images.len() == MAX_IMAGES {
                            return Err(format!("A message may have at most {MAX_IMAGES} images."));
                        }
                        images.push(PromptImage { at: text.len(), ..read(part)? });
                    }
                    _ => {
                        return Err(
                            "`content` may contain text parts, and images and files in user messages. Audio is not supported."
                                .into(),
                        );
                    }
                }
            }
            let content = blocks::message(&files, &text);
            let start = content.len() - text.len();
            images.iter_mut().for_each(|image| image.at += start);
            Ok((content, images))
        }
        Value::Null if role == "assistant" => Ok((String::new(), Vec::new())),
        _ => Err("`content` must be a string or a list of parts.".into()),
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
    fn earlier_messages_are_read() {
        let call = json!({"name": "f", "arguments": "{}"});
        let read = message(&json!({"role": "assistant", "content": null, "function_call": call})).unwrap();
        assert_eq!(read.tool_calls, [json!({"type": "function", "function": call})]);
        let read = message(&json!({"role": "function", "name": "f", "content": "x"})).unwrap();
        assert_eq!(
            (read.role.as_str(), read.name.as_deref(), read.content.as_str()),
            ("tool", Some("f"), "x")
        );
        assert!(message(&json!({"role": "assistant", "function_call": {}})).is_err());
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
    fn images_stand_where_their_parts_are() {
        const PNG: &str =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
        let text = |text: &str| json!({"type": "text", "text": text});
        let url = format!("data:image/png;base64,{PNG}");
        let image = json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
        let input = json!({"type": "input_image", "image_url": url});
        let file = json!({"type": "file", "file": {"filename": "a.txt", "file_data": "aGk="}});
        let parts = json!([text("a"), image, text("b"), input, file]);
        let read = message(&json!({"role": "user", "content": parts})).unwrap();
        assert_eq!(images::texts_between(&read), ["File: a.txt\n```\nhi\n```\n\na", "b", ""]);
        assert_eq!((read.images[0].width, read.images[1].height), (1, 1));
        assert_eq!((read.images[0].detail, read.images[1].detail), (ImageDetail::Low, ImageDetail::Full));
        for (role, part, says) in [
            ("assistant", image.clone(), "user messages"),
            ("user", json!({"type": "input_image", "file_id": "file-1"}), "image_url"),
            (
                "user",
                json!({"type": "image_url", "image_url": {"url": "http://localhost/a.png"}}),
                "http address",
            ),
            (
                "user",
                json!({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}),
                "file address",
            ),
            (
                "user",
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}),
                "format",
            ),
            ("user", json!({"type": "image"}), "image_url"),
            ("user", json!({"type": "image_url", "image_url": {"url": url, "detail": "tiny"}}), "detail"),
            ("user", json!({"type": "input_image", "image_url": url, "detail": 1}), "detail"),
        ] {
            let error = message(&json!({"role": role, "content": [part]})).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let many = vec![image; MAX_IMAGES + 1];
        assert!(message(&json!({"role": "user", "content": many})).is_err());
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
