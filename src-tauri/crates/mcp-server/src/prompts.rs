//! The user's own prompts as prompts of the protocol, and completions of arguments.

use app::{App, OwnPrompt};
use contract::types::ConversationSummary;
use serde_json::{Map, Value, json};

use crate::resources::{self, internal};
use crate::rpc::{INVALID_PARAMS, RpcError};

/// Characters of a prompt that describe it.
const DESCRIPTION_CHARS: usize = 100;

/// Most values that a completion has, as the protocol says.
const MAX_COMPLETIONS: usize = 100;

fn own_prompts(app: &App) -> Result<Vec<OwnPrompt>, RpcError> {
    app.own_prompts().map_err(|error| internal(&error))
}

/// All prompts.
pub fn list(app: &App) -> Result<Value, RpcError> {
    let prompts: Vec<Value> = own_prompts(app)?.iter().map(description).collect();
    Ok(json!({ "prompts": prompts }))
}

fn description(OwnPrompt { name, text }: &OwnPrompt) -> Value {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut short: String = line.chars().take(DESCRIPTION_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    json!({ "name": name, "title": name, "description": short })
}

/// One prompt as the message that it stands for.
pub fn get(app: &App, name: &str) -> Result<Value, RpcError> {
    let found = own_prompts(app)?.into_iter().find(|prompt| prompt.name == name);
    let Some(prompt) = found else {
        let message = format!("There is no prompt {name}. `prompts/list` gives their names.");
        return Err(RpcError::new(INVALID_PARAMS, message));
    };
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt.text } });
    Ok(json!({ "description": description(&prompt)["description"], "messages": [message] }))
}

/// Values for an argument that begin with what the user has written: ids of chats for the template of resources, by
/// their titles too. Prompts have no arguments.
pub fn complete(app: &App, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let reference = params.get("ref").and_then(Value::as_object);
    let kind = reference.and_then(|it| it.get("type")).and_then(Value::as_str);
    let argument = |name: &str| params.get("argument")?.get(name)?.as_str();
    let (Some(kind), Some(name), Some(written)) = (kind, argument("name"), argument("value")) else {
        let message = "`ref` with a `type`, and `argument` with `name` and `value` are required.";
        return Err(RpcError::new(INVALID_PARAMS, message));
    };
    let chats;
    let values = match kind {
        "ref/prompt" => Vec::new(),
        "ref/resource" if name == resources::TEMPLATE_ARGUMENT => {
            chats = app.conversations_list().map_err(|error| internal(&error))?;
            matching(&chats, written)
        }
        "ref/resource" => Vec::new(),
        other => {
            let message = format!("`ref.type` {other} is neither ref/prompt nor ref/resource.");
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
    };
    let total = values.len();
    let values = &values[..total.min(MAX_COMPLETIONS)];
    Ok(json!({ "completion": { "values": values, "total": total, "hasMore": total > MAX_COMPLETIONS } }))
}

fn matching<'a>(chats: &'a [ConversationSummary], written: &str) -> Vec<&'a str> {
    let wanted = written.to_lowercase();
    let fits = |chat: &&ConversationSummary| {
        chat.id.starts_with(written) || chat.title.to_lowercase().starts_with(&wanted)
    };
    chats.iter().filter(fits).map(|chat| chat.id.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::test_chat;

    #[test]
    fn a_description_is_the_beginning_of_the_first_line() {
        let of = |text: &str| {
            let prompt = OwnPrompt { name: "mail".into(), text: text.into() };
            description(&prompt)["description"].as_str().unwrap().to_owned()
        };
        assert_eq!(of("\n  Write a mail.\nBe brief."), "Write a mail.");
        assert_eq!(of(&"ä".repeat(101)), format!("{}…", "ä".repeat(100)));
    }

    #[test]
    fn chats_are_completed_by_id_and_title() {
        let chats = [test_chat(11), test_chat(12), test_chat(2)];
        assert_eq!(matching(&chats, "1"), ["11", "12"]);
        assert_eq!(matching(&chats, "chat 2"), ["2"]);
        assert_eq!(matching(&chats, "x"), Vec::<&str>::new());
    }
}
