//! Prompts of a server as the user sees them: an entry of its list, and the messages as one text. Content other than text
//! is refused by name.

use std::collections::BTreeMap;

use serde_json::Value;

use contract::types::{ToolPrompt, ToolPromptArgument};
use contract::{Error, Result};
use documents::prompt_injection;

/// Longest name and longest description that are shown, in characters. What has a longer name is left out.
const MAX_NAME_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 1000;
/// A form with more fields is none.
const MAX_ARGUMENTS: usize = 32;

/// What the messages of a prompt say. Where not all of them are the user's, each says whose it is: a message box holds one text.
pub fn text(server: &str, name: &str, messages: &[Value]) -> Result<String> {
    let mut parts = Vec::with_capacity(messages.len());
    let is_dialogue = messages.iter().any(|message| message["role"] != "user");
    for message in messages {
        // One content by the protocol; some servers send a list of them.
        let contents = match &message["content"] {
            Value::Array(contents) => contents.as_slice(),
            one => std::slice::from_ref(one),
        };
        let said = contents.iter().map(|content| said(server, name, content)).collect::<Result<Vec<_>>>()?;
        let said = said.join("\n\n");
        parts.push(match message["role"].as_str() {
            Some("assistant") => format!("Assistant: {said}"),
            _ if is_dialogue => format!("User: {said}"),
            _ => said,
        });
    }
    let text = parts.join("\n\n");
    if text.trim().is_empty() {
        let message = format!("{server} returned no text for the prompt \"{name}\".");
        return Err(Error::input("tools.prompt", message, "Choose another one from its list."));
    }
    Ok(text)
}

fn said(server: &str, name: &str, content: &Value) -> Result<String> {
    let text = match content["type"].as_str() {
        None if content.is_string() => content,
        Some("text") | None => &content["text"],
        Some("resource") => &content["resource"]["text"],
        Some("resource_link") => &content["uri"],
        _ => &Value::Null,
    };
    text.as_str().map(str::to_owned).ok_or_else(|| {
        let kind = content["type"].as_str().unwrap_or("unknown").to_owned();
        let message =
            format!("The prompt \"{name}\" from {server} contains something other than text ({kind}).");
        Error::input(
            "tools.binary",
            message,
            "Only text can be inserted into a message. Choose another prompt.",
        )
    })
}

/// A prompt of a server's list. None: nothing that can be asked for.
pub fn prompt(value: &Value) -> Option<ToolPrompt> {
    let name = named(value)?;
    let arguments = value["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let arguments = arguments.iter().take(MAX_ARGUMENTS).filter_map(argument).collect();
    Some(ToolPrompt { title: title(value, &name), description: described(value), name, arguments })
}

fn argument(value: &Value) -> Option<ToolPromptArgument> {
    let name = named(value)?;
    let required = value["required"] == true;
    Some(ToolPromptArgument { title: title(value, &name), description: described(value), name, required })
}

fn named(value: &Value) -> Option<String> {
    let name = value["name"].as_str().filter(|name| !name.trim().is_empty())?;
    (name.chars().count() <= MAX_NAME_CHARS).then(|| name.to_owned())
}

fn title(value: &Value, name: &str) -> String {
    let title = shown(&value["title"], MAX_NAME_CHARS);
    if title.is_empty() { prompt_injection::reveal_hidden(name) } else { title }
}

fn described(value: &Value) -> String {
    shown(&value["description"], MAX_DESCRIPTION_CHARS)
}

fn shown(value: &Value, most: usize) -> String {
    let text: String = value.as_str().unwrap_or_default().trim().chars().take(most).collect();
    prompt_injection::reveal_hidden(&text)
}

/// Arguments as a terminal gives them: `name=value`.
pub fn arguments(given: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Error::input(
            "tools.argument",
            format!("{text} is not a valid argument."),
            "Write it as NAME=VALUE.",
        )),
    };
    given.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_become_one_text() {
        let of = |messages: Value| text("lab", "review", messages.as_array().unwrap());
        let says =
            |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
        assert_eq!(of(json!([says("user", "a"), says("user", "b")])).unwrap(), "a\n\nb");
        assert_eq!(
            of(json!([says("user", "a"), says("assistant", "b")])).unwrap(),
            "User: a\n\nAssistant: b"
        );
        let file = json!({ "type": "resource", "resource": { "uri": "note://a", "text": "note" } });
        let link = json!({ "type": "resource_link", "uri": "note://b", "name": "b" });
        assert_eq!(of(json!([{ "role": "user", "content": [file, link] }])).unwrap(), "note\n\nnote://b");
        assert_eq!(
            of(json!([{ "role": "user", "content": "a" }, { "role": "user", "content": { "text": "b" } }]))
                .unwrap(),
            "a\n\nb"
        );
        let picture = json!([{ "role": "user", "content": { "type": "image", "data": "AAAA" } }]);
        let error = of(picture).unwrap_err();
        assert_eq!(error.code(), "tools.binary");
        assert!(error.message().contains("something other than text (image)"), "{error}");
        for empty in [json!([]), json!([says("user", " ")])] {
            assert_eq!(of(empty).unwrap_err().code(), "tools.prompt");
        }
        assert_eq!(of(json!([3])).unwrap_err().code(), "tools.binary");
    }

    #[test]
    fn lists_are_read_with_care() {
        let one = json!({ "name": "review", "title": "Review", "description": "Looks at code.",
            "arguments": [{ "name": "code", "required": true }, { "name": "" }, 3, { "name": "tone" }] });
        let read = prompt(&one).unwrap();
        assert_eq!((read.name.as_str(), read.title.as_str()), ("review", "Review"));
        let arguments: Vec<_> = read.arguments.iter().map(|it| (it.name.as_str(), it.required)).collect();
        assert_eq!(arguments, [("code", true), ("tone", false)]);
        for wrong in [json!({}), json!({ "name": " " }), json!({ "name": 3 }), json!("review")] {
            assert!(prompt(&wrong).is_none(), "{wrong}");
        }
        assert!(prompt(&json!({ "name": "x".repeat(300) })).is_none());
    }

    #[test]
    fn arguments_are_pairs() {
        let given = arguments(&["a=1".into(), "b=x=y".into()]).unwrap();
        assert_eq!(given, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x=y".to_owned())].into());
        assert_eq!(arguments(&["a".into()]).unwrap_err().code(), "tools.argument");
    }
}
