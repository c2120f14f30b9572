//! Anthropic's messages as prompt messages: blocks of text, images, thinking, tool calls, their results and documents.

use contract::Result;
use contract::protocol::{PromptImage, PromptMessage};
use contract::types::AttachmentKind;
use documents::{blocks, parts};
use prompt::images;
use serde_json::{Value, json};

use crate::request_fields::invalid;

/// Largest number of messages, as in Anthropic's API.
const MAX_MESSAGES: usize = 100_000;

/// Largest number of images of one message; their rows alone fill the contexts of most models.
const MAX_IMAGES: usize = 64;

/// Parses `system` and `messages`.
pub fn prompt(system: Option<&Value>, messages: &[Value]) -> Result<Vec<PromptMessage>> {
    if messages.len() > MAX_MESSAGES {
        return Err(invalid(format!("There are more than {MAX_MESSAGES} messages.")));
    }
    let mut prompt = Vec::new();
    if let Some(system) = system {
        let content = text_blocks(system).map_err(|what| invalid(format!("system: {what}")))?;
        if !content.is_empty() {
            prompt.push(PromptMessage { role: "system".into(), content, ..PromptMessage::default() });
        }
    }
    for (index, message) in messages.iter().enumerate() {
        append(&mut prompt, message).map_err(|what| invalid(format!("messages.{index}: {what}")))?;
    }
    Ok(prompt)
}

type BlockResult<T> = std::result::Result<T, String>;

/// Appends what one message says. A user's message with tool results becomes several.
fn append(prompt: &mut Vec<PromptMessage>, message: &Value) -> BlockResult<()> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let one = [json!({ "type": "text", "text": content.as_str() })];
    let list = match content {
        Value::String(_) => &one[..],
        Value::Array(list) => list,
        _ => return Err("`content` must be a string or a list of blocks.".into()),
    };
    match message.get("role").and_then(Value::as_str) {
        Some("user") => user(prompt, list),
        Some("assistant") => {
            add_assistant(prompt, assistant(list)?);
            Ok(())
        }
        Some("system") => {
            let content = text_blocks(content)?;
            prompt.push(PromptMessage { role: "system".into(), content, ..PromptMessage::default() });
            Ok(())
        }
        Some(_) | None => Err("`role` must be user, assistant or system.".into()),
    }
}

/// Results of tools come first: templates expect them directly after the calls.
fn user(prompt: &mut Vec<PromptMessage>, list: &[Value]) -> BlockResult<()> {
    let (mut files, mut text, mut images) = (Vec::new(), String::new(), Vec::new());
    let n_before = prompt.len();
    for block in list {
        match kind(block)? {
            "text" => text.push_str(word(block, "text")?),
            "tool_result" => {
                let result = tool_result(block, prompt)?;
                prompt.push(result);
            }
            "document" => files.push(document(block)?),
            "search_result" => files.push(search_result(block)?),
            "image" => add_image(&mut images, block, text.len())?,
            other => return Err(unsupported(other)),
        }
    }
    if !text.is_empty() || !files.is_empty() || !images.is_empty() || prompt.len() == n_before {
        let content = blocks::message(&files, &text);
        let start = content.len() - text.len();
        images.iter_mut().for_each(|image| image.at += start);
        prompt.push(PromptMessage { role: "user".into(), content, images, ..PromptMessage::default() });
    }
    Ok(())
}

/// Messages of the assistant that follow each other are one, as in Anthropic's API.
fn add_assistant(prompt: &mut Vec<PromptMessage>, message: PromptMessage) {
    match prompt.last_mut().filter(|last| last.role == "assistant") {
        Some(last) => {
            last.content.push_str(&message.content);
            last.reasoning.push_str(&message.reasoning);
            last.tool_calls.extend(message.tool_calls);
        }
        None => prompt.push(message),
    }
}

fn assistant(list: &[Value]) -> BlockResult<PromptMessage> {
    let mut message = PromptMessage { role: "assistant".into(), ..PromptMessage::default() };
    for block in list {
        match kind(block)? {
            "text" => message.content.push_str(word(block, "text")?),
            "thinking" => message.reasoning.push_str(word(block, "thinking")?),
            // Encrypted for Anthropic's own models.
            "redacted_thinking" => {}
            "tool_use" => {
                let input = block.get("input").filter(|input| input.is_object());
                let arguments = input.cloned().unwrap_or_else(|| json!({}));
                let function = json!({ "name": word(block, "name")?, "arguments": arguments });
                let call = json!({ "id": word(block, "id")?, "type": "function", "function": function });
                message.tool_calls.push(call);
            }
            other => return Err(unsupported(other)),
        }
    }
    Ok(message)
}

/// The message of a tool. Its name is that of the call that it answers.
fn tool_result(block: &Value, before: &[PromptMessage]) -> BlockResult<PromptMessage> {
    let id = word(block, "tool_use_id")?;
    let (content, mut images) = match block.get("content") {
        None | Some(Value::Null) => (String::new(), Vec::new()),
        Some(content) => result_blocks(content)?,
    };
    let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    let calls = before.iter().rev().flat_map(|message| &message.tool_calls);
    let name = calls.filter(|call| call["id"] == id).find_map(|call| call["function"]["name"].as_str());
    let mark = if is_error { "Error: " } else { "" };
    images.iter_mut().for_each(|image| image.at += mark.len());
    Ok(PromptMessage {
        role: "tool".into(),
        content: format!("{mark}{content}"),
        images,
        tool_call_id: Some(id.into()),
        name: name.map(str::to_owned),
        ..PromptMessage::default()
    })
}

/// A text, or blocks that contain only text, one paragraph each.
fn text_blocks(content: &Value) -> BlockResult<String> {
    let list = match content {
        Value::String(text) => return Ok(text.clone()),
        Value::Array(list) => list,
        _ => return Err("`content` must be a string or a list of blocks.".into()),
    };
    let text = |block: &Value| match kind(block)? {
        "text" => Ok(word(block, "text")?.to_owned()),
        "document" => document(block),
        "search_result" => search_result(block),
        "image" => Err("images may stand in messages of the user and in results of tools.".into()),
        other => Err(unsupported(other)),
    };
    let texts: Vec<String> = list.iter().map(text).collect::<BlockResult<_>>()?;
    Ok(texts.join("\n\n"))
}

/// As `text_blocks`, with the images among them.
fn result_blocks(content: &Value) -> BlockResult<(String, Vec<PromptImage>)> {
    let Value::Array(list) = content else { return Ok((text_blocks(content)?, Vec::new())) };
    let (mut text, mut images, mut is_first) = (String::new(), Vec::new(), true);
    for block in list {
        if kind(block)? == "image" {
            add_image(&mut images, block, text.len())?;
            continue;
        }
        let paragraph = text_blocks(&json!([block]))?;
        text.push_str(if is_first { "" } else { "\n\n" });
        text.push_str(&paragraph);
        is_first = false;
    }
    Ok((text, images))
}

/// Adds an image that stands at a place of the text.
fn add_image(images: &mut Vec<PromptImage>, block: &Value, at: usize) -> BlockResult<()> {
    if images.len() == MAX_IMAGES {
        return Err(format!("a message may have at most {MAX_IMAGES} images."));
    }
    let source = block.get("source").unwrap_or(&Value::Null);
    let data = match source.get("type").and_then(Value::as_str) {
        Some("base64") => word(source, "data")?,
        Some("url") => word(source, "url")?,
        Some(_) | None => return Err("an image needs a `source` of type base64.".into()),
    };
    let image = images::from_base64(data).map_err(|error| format!("{error} {}", error.remedy()))?;
    images.push(PromptImage { at, ..image });
    Ok(())
}

/// A document as a file of the prompt.
fn document(block: &Value) -> BlockResult<String> {
    let source = block.get("source").unwrap_or(&Value::Null);
    let title = block.get("title").and_then(Value::as_str);
    match kind(source)? {
        "text" => {
            let title = title.unwrap_or("document.txt");
            Ok(blocks::whole(title, AttachmentKind::Text, word(source, "data")?))
        }
        "base64" => {
            let name = title.unwrap_or("document.pdf");
            let name = if name.contains('.') { name.to_owned() } else { format!("{name}.pdf") };
            parts::file(&json!({ "filename": name, "file_data": word(source, "data")? }))
        }
        "content" => {
            let text = text_blocks(source.get("content").unwrap_or(&Value::Null))?;
            Ok(blocks::whole(title.unwrap_or("document.txt"), AttachmentKind::Text, &text))
        }
        _ => {
            Err("a document needs a `source` of type text, base64 or content: this server downloads nothing."
                .into())
        }
    }
}

fn search_result(block: &Value) -> BlockResult<String> {
    let text = text_blocks(block.get("content").unwrap_or(&Value::Null))?;
    let (title, source) = (word(block, "title")?, word(block, "source")?);
    Ok(blocks::whole(&format!("{title} ({source})"), AttachmentKind::Text, &text))
}

fn kind(block: &Value) -> BlockResult<&str> {
    word(block, "type")
}

fn word<'a>(block: &'a Value, key: &str) -> BlockResult<&'a str> {
    block.get(key).and_then(Value::as_str).ok_or_else(|| format!("a block needs a text `{key}`."))
}

fn unsupported(kind: &str) -> String {
    format!("blocks of type \"{kind}\" are not supported here.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_messages() {
        let messages = json!([
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Look.", "signature": ""},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"city": "Bern"}},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "Here "},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "Sun"}]},
                {"type": "text", "text": "it is."},
            ]},
        ]);
        let system =
            json!([{"type": "text", "text": "A", "cache_control": {}}, {"type": "text", "text": "B"}]);
        let read = prompt(Some(&system), messages.as_array().unwrap()).unwrap();
        let said: Vec<_> = read.iter().map(|it| (it.role.as_str(), it.content.as_str())).collect();
        let expected = [
            ("system", "A\n\nB"),
            ("user", "Weather?"),
            ("assistant", "One moment."),
            ("tool", "Sun"),
            ("user", "Here it is."),
        ];
        assert_eq!(said, expected);
        assert_eq!(read[2].reasoning, "Look.");
        let function = json!({"name": "look", "arguments": {"city": "Bern"}});
        assert_eq!(read[2].tool_calls, [json!({"id": "a", "type": "function", "function": function})]);
        assert_eq!((read[3].tool_call_id.as_deref(), read[3].name.as_deref()), (Some("a"), Some("look")));
    }

    #[test]
    fn messages_of_the_assistant_that_follow_each_other_are_one() {
        let call = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let messages = json!([
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}]},
            {"role": "assistant", "content": "One, "},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}, call]},
        ]);
        let read = prompt(None, messages.as_array().unwrap()).unwrap();
        assert_eq!(
            (read.len(), read[1].role.as_str(), read[1].content.as_str()),
            (2, "assistant", "One, two")
        );
        assert_eq!((read[1].reasoning.as_str(), read[1].tool_calls.len()), ("Hm.", 1));
    }

    #[test]
    fn images_stand_where_their_blocks_are() {
        const PNG: &str =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
        let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
        let image = json!({"type": "image", "source": source});
        let text = |text: &str| json!({"type": "text", "text": text});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "is_error": true,
            "content": [text("x"), image, text("y")]});
        let content = json!([text("a"), image, text("b"), result]);
        let read = prompt(None, &[json!({"role": "user", "content": content})]).unwrap();
        assert_eq!(
            (read[0].role.as_str(), images::texts_between(&read[0])),
            ("tool", vec!["Error: x", "\n\ny"])
        );
        assert_eq!((read[1].role.as_str(), images::texts_between(&read[1])), ("user", vec!["a", "b"]));
        assert!(prompt(Some(&json!([image])), &[]).is_err());
    }

    #[test]
    fn documents_and_errors_are_told() {
        let says = |content: Value| {
            let message = json!({"role": "user", "content": content});
            prompt(None, &[message]).map(|read| read[0].content.clone())
        };
        let text = json!({"type": "text", "data": "hi"});
        let document = json!({"type": "document", "title": "a.txt", "source": text});
        let read = says(json!([document, {"type": "text", "text": "Why?"}])).unwrap();
        assert_eq!(read, "File: a.txt\n```\nhi\n```\n\nWhy?");
        let failed = json!({"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": true});
        assert_eq!(says(json!([failed])).unwrap(), "Error: no");
        for (content, part) in [
            (json!(7), "content"),
            (json!([{"type": "image", "source": {}}]), "needs a `source`"),
            (
                json!([{"type": "image", "source": {"type": "url", "url": "https://a/b.png"}}]),
                "https address",
            ),
            (json!([{"type": "image", "source": {"type": "base64", "data": "aGVsbG8h"}}]), "format"),
            (
                json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}]),
                "needs a `source`",
            ),
            (json!([{"type": "tool_result"}]), "tool_use_id"),
            (json!([{"type": "container_upload"}]), "container_upload"),
            (json!([{"type": "document", "source": {"type": "url", "url": "x"}}]), "downloads nothing"),
            (json!([{"text": "x"}]), "type"),
        ] {
            let error = says(content).unwrap_err();
            assert!(error.message().contains(part) && error.message().contains("messages.0"), "{error}");
        }
        assert!(prompt(None, &[json!({"role": "king", "content": "x"})]).is_err());
    }
}
