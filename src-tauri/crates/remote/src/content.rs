//! The words of one piece of an answer, wherever a server puts them. That is a delta, a message or a
//! text, as a string or a list of parts. Reasoning has many names.

use serde_json::Value;

/// Lists in lists: a part of a thought is as deep as any server goes.
const MAX_DEPTH: usize = 4;

/// Fields of reasoning, as text. The first that says something counts: the others repeat it.
const REASONING_FIELDS: [&str; 8] = [
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
    "thought",
    "thoughts",
    "reasoning_details",
    "thinking_blocks",
];

/// What a piece says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PieceContent {
    pub text: String,
    pub reasoning: String,
}

/// The piece of a choice, and whether it is a whole message, which may repeat what has come before.
pub struct ChoicePiece<'a> {
    pub words: &'a Value,
    pub is_message: bool,
}

/// Finds the piece of a choice: its delta if that says anything, else its message, else its text.
pub fn piece_of(choice: &Value) -> ChoicePiece<'_> {
    let delta = choice.get("delta").filter(|delta| is_said(delta));
    let message = choice.get("message").filter(|message| is_said(message));
    match (delta, message) {
        (Some(words), _) => ChoicePiece { words, is_message: false },
        (None, Some(words)) => ChoicePiece { words, is_message: true },
        (None, None) => ChoicePiece { words: choice.get("text").unwrap_or(&Value::Null), is_message: false },
    }
}

/// The words of a delta or message.
pub fn content_of(words: &Value) -> PieceContent {
    let mut content = PieceContent::default();
    let body = words.get("content").unwrap_or(if words.is_object() { &Value::Null } else { words });
    add(body, &mut content, false, 0);
    if content.text.is_empty()
        && let Some(text) = ["refusal", "text"].iter().find_map(|key| words.get(*key)?.as_str())
    {
        content.text.push_str(text);
    }
    if content.reasoning.is_empty() {
        content.reasoning = REASONING_FIELDS
            .iter()
            .filter_map(|key| words.get(*key))
            .map(|value| {
                let mut thought = PieceContent::default();
                add(value, &mut thought, true, 0);
                thought.reasoning
            })
            .find(|text| !text.is_empty())
            .unwrap_or_default();
    }
    content
}

/// Adds a string, a part, or a list of either.
fn add(value: &Value, content: &mut PieceContent, is_thought: bool, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) if is_thought => content.reasoning.push_str(text),
        Value::String(text) => content.text.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| add(part, content, is_thought, depth + 1)),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_marked = part.get("thought") == Some(&Value::Bool(true));
            let names_it = ["think", "reason", "thought", "summary"].iter().any(|word| kind.contains(word));
            let is_thought = is_thought || is_marked || names_it;
            let own = part.get("thinking").filter(|value| is_said(value));
            let keys = ["text", "content", "reasoning", "summary", "refusal"];
            let inner = keys.iter().find_map(|key| part.get(*key).filter(|value| is_said(value)));
            match (own, inner) {
                (Some(own), _) => add(own, content, true, depth + 1),
                (None, Some(inner)) => add(inner, content, is_thought, depth + 1),
                (None, None) => {}
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether anything is in it.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        Value::Object(fields) => fields.iter().any(|(key, value)| key != "role" && is_said(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(choice: Value, text: &str, reasoning: &str) {
        let got = content_of(piece_of(&choice).words);
        assert_eq!((got.text.as_str(), got.reasoning.as_str()), (text, reasoning), "{choice}");
    }

    #[test]
    fn words_are_found_wherever_they_are() {
        check(json!({ "delta": { "content": "a" } }), "a", "");
        check(json!({ "delta": {}, "message": { "content": "a" } }), "a", "");
        check(
            json!({ "delta": { "role": "assistant", "content": "" }, "message": { "content": "a" } }),
            "a",
            "",
        );
        check(json!({ "delta": { "content": "a" }, "message": { "content": "ba" } }), "a", "");
        check(json!({ "delta": null, "text": "a" }), "a", "");
        check(json!({ "delta": "a" }), "a", "");
        check(json!({ "delta": { "content": null, "refusal": "I can't." } }), "I can't.", "");
        check(json!({}), "", "");
        check(json!({ "delta": { "content": 7 } }), "", "");
        for key in ["reasoning_content", "reasoning", "thinking", "reasoning_text", "thought"] {
            check(json!({ "delta": { "content": null, key: "b" } }), "", "b");
        }
        check(json!({ "delta": { "reasoning": "b", "reasoning_content": "b", "content": "a" } }), "a", "b");
        check(json!({ "delta": { "reasoning": { "text": "b" } } }), "", "b");
        let details = json!([{ "type": "reasoning.text", "text": "b" }, { "type": "reasoning.encrypted", "data": "x" }]);
        check(json!({ "delta": { "reasoning_details": details } }), "", "b");
        check(json!({ "delta": { "reasoning": "b", "reasoning_details": details } }), "", "b");
        check(
            json!({ "delta": { "reasoning_details": [{ "type": "reasoning.summary", "summary": "b" }] } }),
            "",
            "b",
        );
        check(json!({ "delta": { "thinking_blocks": [{ "type": "thinking", "thinking": "b" }] } }), "", "b");
    }

    #[test]
    fn parts_are_read_in_order() {
        let check = |content: Value, text: &str, reasoning: &str| {
            check(json!({ "delta": { "content": content } }), text, reasoning)
        };
        check(
            json!([{ "type": "text", "text": "a" }, "b", { "type": "output_text", "text": "c" }]),
            "abc",
            "",
        );
        check(json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "a" }] }]), "", "a");
        check(json!([{ "type": "thinking", "thinking": "a" }, { "type": "text", "text": "b" }]), "b", "a");
        check(json!([{ "type": "reasoning", "text": "a" }]), "", "a");
        check(json!([{ "text": "a", "thought": true }, { "text": "b" }]), "b", "a");
        check(json!({ "type": "text", "text": "a" }), "a", "");
        check(json!([{ "type": "image_url", "image_url": { "url": "x" } }, null, 7]), "", "");
        let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
        check(deep, "", "");
    }
}
