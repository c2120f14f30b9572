//! Tools of a request and the choice between them, in OpenAI's present and earlier forms.

use contract::protocol::Constraint;
use prompt::openai_messages;
use serde_json::{Value, json};

use super::fields::{Fields, Result, sentence, unsupported};
use crate::fault::OpenAiFault;

/// The tools that the model may call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSet {
    /// As chat templates take them; null: none.
    pub tools: Value,
    /// The call that the answer must be.
    pub constraint: Option<Constraint>,
    /// The client knows `functions` and `function_call` alone.
    pub is_legacy: bool,
    /// Whether an answer may have several calls.
    pub is_parallel: bool,
}

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`, or `functions` and `function_call`.
pub fn tool_set(fields: Fields<'_>) -> Result<ToolSet> {
    let is_legacy = fields.get("tools").is_none() && fields.get("functions").is_some();
    let (name, choice) = if is_legacy { ("functions", "function_call") } else { ("tools", "tool_choice") };
    let list = match (is_legacy, fields.list("functions")?) {
        (true, Some(functions)) => {
            Value::Array(functions.iter().map(|it| json!({ "type": "function", "function": it })).collect())
        }
        (true | false, _) => fields.get("tools").cloned().unwrap_or(Value::Null),
    };
    let list = functions_only(&list)?;
    let tools = openai_messages::tools(&list).map_err(|what| OpenAiFault::invalid(name, sentence(&what)))?;
    let (tools, constraint) = chosen(tools, fields, choice)?;
    let is_parallel = fields.boolean("parallel_tool_calls")?.unwrap_or(true);
    Ok(ToolSet { tools, constraint, is_legacy, is_parallel: is_parallel && !is_legacy })
}

/// Rejects tools that OpenAI's servers run themselves; takes functions in the form of chat completions or of responses.
fn functions_only(list: &Value) -> Result<Value> {
    let Some(tools) = list.as_array() else { return Ok(list.clone()) };
    let function = |tool: &Value| match tool.get("type").map(Value::as_str) {
        None | Some(Some("function")) if tool.get("function").is_none() && tool.get("name").is_some() => {
            let mut function = json!({ "name": tool["name"] });
            for key in ["description", "parameters", "strict"] {
                if let Some(value) = tool.get(key).filter(|value| !value.is_null()) {
                    function[key] = value.clone();
                }
            }
            Ok(json!({ "type": "function", "function": function }))
        }
        None | Some(Some("function")) => Ok(tool.clone()),
        Some(None) => {
            Err(OpenAiFault::invalid("tools", "`tools` contains a tool whose `type` is not a string."))
        }
        Some(Some(kind)) => Err(unsupported(
            "tools",
            format!("`tools` contains a tool of type {kind}. Only functions are supported."),
        )),
    };
    tools.iter().map(function).collect::<Result<Vec<Value>>>().map(Value::Array)
}

/// Applies the choice: the tools that remain, and the call that is required.
fn chosen(tools: Value, fields: Fields<'_>, name: &'static str) -> Result<(Value, Option<Constraint>)> {
    let Some(choice) = fields.get(name) else { return Ok((tools, None)) };
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let function = match choice {
        Value::String(word) => return by_word(tools, word, name),
        Value::Object(_) => match text(choice, "type").as_deref() {
            Some("allowed_tools") => return allowed(&tools, choice, name),
            Some("function") | None => choice.get("function").unwrap_or(choice),
            Some(kind) => {
                return Err(unsupported(name, format!("`{name}` can't choose a tool of type {kind}.")));
            }
        },
        _ => return Err(OpenAiFault::invalid(name, format!("`{name}` must be a word or an object."))),
    };
    let Some(function) = text(function, "name") else {
        return Err(OpenAiFault::invalid(name, format!("`{name}` must name a function.")));
    };
    if !names(&tools).any(|tool| tool == function) {
        let message = format!("`{name}` names the function {function}, which the request doesn't define.");
        return Err(OpenAiFault::invalid(name, message));
    }
    Ok((tools, Some(Constraint::ToolCall { name: Some(function) })))
}

fn by_word(tools: Value, word: &str, name: &'static str) -> Result<(Value, Option<Constraint>)> {
    match word {
        "auto" => Ok((tools, None)),
        "none" => Ok((Value::Null, None)),
        "required" | "any" if tools.is_null() => {
            Err(OpenAiFault::invalid(name, format!("`{name}` is \"{word}\", but the request has no tools.")))
        }
        "required" | "any" => Ok((tools, Some(Constraint::ToolCall { name: None }))),
        _ => Err(OpenAiFault::invalid(name, format!("`{name}` must be auto, none, required or a function."))),
    }
}

/// `{"type": "allowed_tools", "mode", "tools"}`, which chat completions nest in another object.
fn allowed(tools: &Value, choice: &Value, name: &'static str) -> Result<(Value, Option<Constraint>)> {
    let allowed = choice.get("allowed_tools").unwrap_or(choice);
    let wanted: Vec<&str> = allowed
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|tool| tool.get("function").unwrap_or(tool).get("name")?.as_str())
        .collect();
    let kept: Vec<Value> = tools
        .as_array()
        .into_iter()
        .flatten()
        .filter(|tool| tool["function"]["name"].as_str().is_some_and(|name| wanted.contains(&name)))
        .cloned()
        .collect();
    if kept.is_empty() {
        return Err(OpenAiFault::invalid(name, format!("`{name}` allows none of the request's tools.")));
    }
    by_word(Value::Array(kept), allowed.get("mode").and_then(Value::as_str).unwrap_or("auto"), name)
}

fn names(tools: &Value) -> impl Iterator<Item = &str> {
    tools.as_array().into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<ToolSet> {
        tool_set(Fields(value.as_object().unwrap()))
    }

    #[test]
    fn choices_become_constraints() {
        let tools = json!([{ "type": "function", "function": { "name": "look" } },
            { "type": "function", "function": { "name": "go" } }]);
        let any = Some(Constraint::ToolCall { name: None });
        let look = Some(Constraint::ToolCall { name: Some("look".into()) });
        let only_go = json!([tools[1]]);
        for (choice, expected_tools, constraint) in [
            (Value::Null, tools.clone(), None),
            (json!("auto"), tools.clone(), None),
            (json!("none"), Value::Null, None),
            (json!("required"), tools.clone(), any.clone()),
            (json!({ "type": "function", "function": { "name": "look" } }), tools.clone(), look.clone()),
            (json!({ "type": "function", "name": "look" }), tools.clone(), look.clone()),
            (
                json!({ "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": "go" }] }),
                only_go.clone(),
                any.clone(),
            ),
            (
                json!({ "type": "allowed_tools", "allowed_tools": { "tools": [{ "type": "function", "function": { "name": "go" } }] } }),
                only_go,
                None,
            ),
        ] {
            let set = read(json!({ "tools": tools, "tool_choice": choice })).unwrap();
            assert_eq!((set.tools, set.constraint), (expected_tools, constraint), "{choice}");
        }
        for (fields, param) in [
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (json!({ "tools": tools, "tool_choice": "perhaps" }), "tool_choice"),
            (json!({ "tools": tools, "tool_choice": 7 }), "tool_choice"),
            (json!({ "tools": tools, "tool_choice": { "type": "function" } }), "tool_choice"),
            (json!({ "tools": tools, "tool_choice": { "type": "function", "name": "fly" } }), "tool_choice"),
            (json!({ "tools": [{ "type": "web_search" }] }), "tools"),
            (json!({ "tools": [{ "type": "function" }] }), "tools"),
            (json!({ "tools": [{ "type": {}, "name": "look" }] }), "tools"),
            (json!({ "tools": [{ "type": null, "function": { "name": "look" } }] }), "tools"),
            (json!({ "functions": 7 }), "functions"),
        ] {
            assert_eq!(read(fields.clone()).unwrap_err().param.as_deref(), Some(param), "{fields}");
        }
    }

    #[test]
    fn earlier_and_flat_forms() {
        let set = read(json!({ "functions": [{ "name": "f" }], "function_call": { "name": "f" } })).unwrap();
        assert_eq!(set.tools, json!([{ "type": "function", "function": { "name": "f" } }]));
        assert_eq!(set.constraint, Some(Constraint::ToolCall { name: Some("f".into()) }));
        assert!(set.is_legacy && !set.is_parallel);
        let flat = json!({ "type": "function", "name": "f", "parameters": {}, "strict": null });
        let set = read(json!({ "tools": [flat], "parallel_tool_calls": false })).unwrap();
        assert_eq!(set.tools, json!([{ "type": "function", "function": { "name": "f", "parameters": {} } }]));
        assert!(!set.is_parallel && !set.is_legacy);
    }
}
