//! A conversation's branch as the messages of a prompt.

use contract::protocol::{Ids, Prompt, PromptImage, PromptMessage};
use contract::types::{Role, ToolCall};
use serde_json::{Value, json};

use crate::images::append;

/// The result of a call that was never run.
const NOT_RUN: &str = "This call was not run.";

/// A stored message, as far as prompts need it.
#[derive(Debug, Clone)]
pub struct HistoryMessage {
    /// Id of the stored message.
    pub id: String,
    /// Who wrote it.
    pub role: Role,
    /// Its text, with attached files already inserted.
    pub text: String,
    /// The images in it.
    pub images: Vec<PromptImage>,
    /// The reasoning before the text; empty without one.
    pub reasoning: String,
    /// The answer is still being written.
    pub is_streaming: bool,
    /// Tool calls of an answer, with their results.
    pub tool_calls: Vec<ToolCall>,
    /// Token ids that models generated for `text`.
    pub logs: Vec<Ids>,
}

/// The prompt's messages: the branch without the answer that is about to be written, and without answers that stayed
/// empty. Questions that follow each other become one, since templates want turns to alternate.
pub fn history(branch: impl IntoIterator<Item = HistoryMessage>) -> Vec<PromptMessage> {
    let mut messages: Vec<PromptMessage> = Vec::new();
    for stored in branch {
        let HistoryMessage { id, role, text, images, reasoning, is_streaming, tool_calls: calls, logs } =
            stored;
        let has_calls = role == Role::Assistant && calls.iter().any(|call| call.run.is_some());
        if is_streaming || (text.is_empty() && images.is_empty() && !has_calls) {
            continue;
        }
        let role = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match messages.last_mut() {
            Some(last) if last.role == role && !has_calls => {
                append(last, "\n\n", &text, images);
                last.logs.clear();
                last.ids.push(id.clone());
            }
            Some(_) | None => messages.push(PromptMessage {
                role: role.into(),
                content: text,
                images,
                reasoning,
                ids: vec![id.clone()],
                tool_calls: if has_calls { calls.iter().map(call_value).collect() } else { Vec::new() },
                logs,
                ..PromptMessage::default()
            }),
        }
        if has_calls {
            messages.extend(calls.into_iter().map(|call| result_message(Some(&id), call)));
        }
    }
    messages
}

/// A call as in OpenAI's messages.
pub fn call_value(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// The result of a call as the message that tells the model. `answer`: id of the answer that made the call.
pub fn result_message(answer: Option<&str>, call: ToolCall) -> PromptMessage {
    let result = call.run.map(|run| run.result).filter(|result| !result.is_empty());
    PromptMessage {
        role: "tool".into(),
        content: result.unwrap_or_else(|| NOT_RUN.into()),
        tool_call_id: Some(call.id),
        name: Some(call.name),
        ids: answer.into_iter().map(Into::into).collect(),
        ..PromptMessage::default()
    }
}

/// The prompt of a branch. `partial`: the answer so far, where it is sent as a message.
pub fn chat_prompt(
    branch: impl IntoIterator<Item = HistoryMessage>,
    system: Option<String>,
    partial: Option<PromptMessage>,
) -> Prompt {
    let mut messages = with_system(history(branch), system);
    messages.extend(partial);
    Prompt::Chat(messages)
}

/// The messages with a system prompt before them; a blank one is left out.
pub fn with_system(mut messages: Vec<PromptMessage>, prompt: Option<String>) -> Vec<PromptMessage> {
    if let Some(content) = prompt.filter(|prompt| !prompt.trim().is_empty()) {
        messages.insert(0, PromptMessage { role: "system".into(), content, ..PromptMessage::default() });
    }
    messages
}

/// The messages with one more question and its images at the end, joined to a question that is there already.
pub fn with_question(
    mut messages: Vec<PromptMessage>,
    text: &str,
    images: Vec<PromptImage>,
) -> Vec<PromptMessage> {
    match messages.last_mut() {
        Some(last) if last.role == "user" => {
            append(last, "\n\n", text, images);
            last.logs.clear();
        }
        Some(_) | None => {
            let (role, content) = ("user".into(), text.into());
            messages.push(PromptMessage { role, content, images, ..PromptMessage::default() });
        }
    }
    messages
}
