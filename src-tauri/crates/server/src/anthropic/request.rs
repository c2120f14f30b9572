//! Parses requests to Anthropic's Messages API. Fields that only say how Anthropic runs or bills a request are ignored.

use app::{GenerateArgs, SamplingArgs};
use contract::Result;
use contract::protocol::{ChatOptions, Constraint, Prompt};
use prompt::{answer_prefix, openai_messages};
use serde_json::{Map, Value, json};

use super::messages;
use crate::request_fields::{RequestFields, invalid, object};

/// Largest number of stop sequences.
const MAX_STOPS: usize = 64;

/// Anthropic's API stops at 1; other servers of this interface do not.
const MAX_TEMPERATURE: f64 = 2.0;

/// A request for a message, or for the count of its prompt.
#[derive(Debug)]
pub struct MessagesRequest {
    /// Name of the model as the client gives it.
    pub model: Option<String>,
    pub args: GenerateArgs,
    pub stream: bool,
    pub show: ShownBlocks,
}

/// Which parts of an answer its client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownBlocks {
    /// The text of thinking blocks.
    pub thinking: bool,
    /// More than one tool call.
    pub parallel_calls: bool,
}

impl MessagesRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = RequestFields(&object);
        if fields.list("mcp_servers")?.is_some_and(|list| !list.is_empty()) {
            return Err(invalid(
                "`mcp_servers` is not supported. Connect tool servers on the client's side.",
            ));
        }
        let Some(list) = fields.list("messages")? else {
            return Err(invalid("messages: Field required."));
        };
        if list.is_empty() {
            return Err(invalid("messages: At least one message is required."));
        }
        let choice = ToolChoice::parse(fields)?;
        let mut kwargs = Map::new();
        let (budget, thinking) = thinking(fields, &mut kwargs)?;
        let output = fields.object("output_config")?;
        if let Some(word) = output.map(|output| output.text("effort")).transpose()?.flatten() {
            effort(word, &mut kwargs)?;
        }
        let tools = match choice.kind {
            ChoiceKind::Forbidden => Value::Null,
            ChoiceKind::Free | ChoiceKind::Required { .. } => tools(fields)?,
        };
        let constraint = constraint(&choice, &tools, output)?;
        let messages = messages::prompt(fields.get("system"), list)?;
        // The beginning of an answer, which the model continues.
        let is_continued = answer_prefix::is_continued(&messages, None, None).map_err(invalid)?;
        answer_prefix::set(&mut kwargs, None, is_continued);
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            args: GenerateArgs {
                model: None,
                prompt: Prompt::Chat(messages),
                sampling: sampling(fields)?,
                max_tokens: max_tokens(fields)?,
                stop: fields.texts("stop_sequences", MAX_STOPS)?,
                ignore_eos: false,
                chat: ChatOptions { tools, kwargs, reasoning_budget: budget, ..ChatOptions::default() },
                constraint,
                logprobs: None,
            },
            stream: fields.boolean("stream")?.unwrap_or(false),
            show: ShownBlocks { thinking, parallel_calls: choice.parallel },
        })
    }
}

/// Whether the answer must, may or must not call tools.
#[derive(Debug, PartialEq, Eq)]
enum ChoiceKind {
    Free,
    Forbidden,
    /// `name`: that tool.
    Required {
        name: Option<String>,
    },
}

struct ToolChoice {
    kind: ChoiceKind,
    parallel: bool,
}

impl ToolChoice {
    fn parse(fields: RequestFields) -> Result<Self> {
        let Some(choice) = fields.object("tool_choice")? else {
            return Ok(Self { kind: ChoiceKind::Free, parallel: true });
        };
        let kind = match choice.text("type")? {
            Some("auto") => ChoiceKind::Free,
            Some("none") => ChoiceKind::Forbidden,
            Some("any") => ChoiceKind::Required { name: None },
            Some("tool") => match choice.text("name")? {
                Some(name) => ChoiceKind::Required { name: Some(name.into()) },
                None => return Err(invalid("tool_choice.name: Field required.")),
            },
            Some(_) | None => return Err(invalid("`tool_choice.type` must be auto, any, tool or none.")),
        };
        Ok(Self { kind, parallel: !choice.boolean("disable_parallel_tool_use")?.unwrap_or(false) })
    }
}

/// Tools in the form that chat templates take.
fn tools(fields: RequestFields) -> Result<Value> {
    let Some(list) = fields.list("tools")? else { return Ok(Value::Null) };
    let tool = |(index, tool): (usize, &Value)| {
        let object = tool.as_object().ok_or_else(|| invalid(format!("tools.{index}: must be an object.")))?;
        let tool = RequestFields(object);
        if let Some(kind) = tool.text("type")?.filter(|kind| *kind != "custom") {
            return Err(invalid(format!("tools.{index}: tools of type \"{kind}\" are not supported.")));
        }
        let Some(name) = tool.text("name")?.filter(|name| !name.is_empty()) else {
            return Err(invalid(format!("tools.{index}.name: Field required.")));
        };
        let schema =
            tool.object("input_schema")?.map_or_else(|| json!({ "type": "object" }), |it| json!(it.0));
        let mut function = json!({ "name": name, "parameters": schema });
        if let Some(description) = tool.text("description")? {
            function["description"] = description.into();
        }
        Ok(json!({ "type": "function", "function": function }))
    };
    let list: Vec<Value> = list.iter().enumerate().map(tool).collect::<Result<_>>()?;
    openai_messages::tools(&Value::Array(list)).map_err(|what| invalid(format!("tools: {what}")))
}

/// What the answer must be: a call of a tool, or JSON of a schema.
fn constraint(
    choice: &ToolChoice,
    tools: &Value,
    output: Option<RequestFields>,
) -> Result<Option<Constraint>> {
    if let ChoiceKind::Required { name } = &choice.kind {
        let mut names =
            tools.as_array().into_iter().flatten().filter_map(|it| it["function"]["name"].as_str());
        let is_known = match name {
            Some(name) => names.any(|other| other == name),
            None => names.next().is_some(),
        };
        if !is_known {
            return Err(invalid("tool_choice: the tool that must be called is not in `tools`."));
        }
        return Ok(Some(Constraint::ToolCall { name: name.clone() }));
    }
    let Some(format) = output.map(|output| output.object("format")).transpose()?.flatten() else {
        return Ok(None);
    };
    match (format.text("type")?, format.object("schema")?) {
        (Some("json_schema"), Some(schema)) => Ok(Some(Constraint::JsonSchema(json!(schema.0)))),
        _ => Err(invalid("`output_config.format` must have the type json_schema and a `schema`.")),
    }
}

/// The budget of thinking, and whether its text is shown.
fn thinking(fields: RequestFields, kwargs: &mut Map<String, Value>) -> Result<(Option<usize>, bool)> {
    let Some(thinking) = fields.object("thinking")? else { return Ok((None, true)) };
    let is_shown = thinking.text("display")? != Some("omitted");
    match thinking.text("type")? {
        Some("enabled") => {
            kwargs.insert("enable_thinking".into(), json!(true));
            Ok((thinking.count("budget_tokens")?, is_shown))
        }
        Some("disabled") => {
            kwargs.insert("enable_thinking".into(), json!(false));
            Ok((Some(0), is_shown))
        }
        // The model decides.
        Some("adaptive" | "between_tools") => Ok((None, is_shown)),
        Some(_) | None => {
            Err(invalid("`thinking.type` must be enabled, disabled, adaptive or between_tools."))
        }
    }
}

fn effort(word: &str, kwargs: &mut Map<String, Value>) -> Result<()> {
    let word = match word {
        "xhigh" | "max" => "high",
        word => word,
    };
    openai_messages::effort(word, kwargs)
        .map_err(|_| invalid("`output_config.effort` must be low, medium, high, xhigh or max."))
}

fn sampling(fields: RequestFields) -> Result<SamplingArgs> {
    Ok(SamplingArgs {
        temperature: fields.number_within("temperature", 0.0, MAX_TEMPERATURE)?,
        top_k: fields.count("top_k")?.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
        top_p: fields.number_within("top_p", 0.0, 1.0)?,
        ..SamplingArgs::default()
    })
}

fn max_tokens(fields: RequestFields) -> Result<Option<usize>> {
    match fields.count("max_tokens")? {
        Some(0) => Err(invalid("`max_tokens` must be at least 1.")),
        max_tokens => Ok(max_tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(extra: Value) -> Result<MessagesRequest> {
        let mut body =
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        MessagesRequest::parse(body.to_string().as_bytes())
    }

    fn tool() -> Value {
        json!([{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}, "strict": true}])
    }

    #[test]
    fn fields_reach_the_model() {
        let request = parse(json!({
            "stream": true, "stop_sequences": ["END"], "temperature": 0.5, "top_k": 3, "top_p": 0.9,
            "tools": tool(), "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
            "thinking": {"type": "enabled", "budget_tokens": 50, "display": "omitted"},
            "output_config": {"effort": "max"}, "metadata": {"user_id": "x"}, "service_tier": "auto",
        }))
        .unwrap();
        let args = &request.args;
        assert_eq!((request.model.as_deref(), args.max_tokens, request.stream), (Some("m"), Some(9), true));
        assert_eq!((args.stop.as_slice(), args.sampling.top_k), (&["END".to_owned()][..], Some(3)));
        let function = json!({"name": "look", "description": "Looks.", "parameters": {"type": "object"}});
        assert_eq!(args.chat.tools, json!([{"type": "function", "function": function}]));
        assert_eq!(args.chat.kwargs["enable_thinking"], true);
        assert_eq!(args.chat.kwargs["reasoning_effort"], "high");
        assert_eq!(args.chat.reasoning_budget, Some(50));
        assert_eq!(request.show, ShownBlocks { thinking: false, parallel_calls: false });
        assert_eq!(args.constraint, None);
    }

    #[test]
    fn choices_and_formats_bind_the_answer() {
        let of = |extra: Value| parse(extra).unwrap().args;
        let any = of(json!({"tools": tool(), "tool_choice": {"type": "any"}}));
        assert_eq!(any.constraint, Some(Constraint::ToolCall { name: None }));
        let one = of(json!({"tools": tool(), "tool_choice": {"type": "tool", "name": "look"}}));
        assert_eq!(one.constraint, Some(Constraint::ToolCall { name: Some("look".into()) }));
        let none = of(json!({"tools": tool(), "tool_choice": {"type": "none"}}));
        assert_eq!((none.constraint, none.chat.tools), (None, Value::Null));
        let schema = json!({"type": "object"});
        let format = json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
        assert_eq!(of(format).constraint, Some(Constraint::JsonSchema(schema)));
        assert_eq!(of(json!({"thinking": {"type": "disabled"}})).chat.reasoning_budget, Some(0));
    }

    #[test]
    fn what_is_refused_names_its_field() {
        for (extra, field) in [
            (json!({"messages": null}), "messages"),
            (json!({"messages": "Hi"}), "messages"),
            (json!({"messages": []}), "messages"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"max_tokens": "many"}), "max_tokens"),
            (json!({"temperature": 3}), "temperature"),
            (json!({"stop_sequences": [1]}), "stop_sequences"),
            (json!({"tool_choice": {"type": "any"}}), "tool_choice"),
            (json!({"tools": tool(), "tool_choice": {"type": "tool"}}), "tool_choice.name"),
            (json!({"tools": tool(), "tool_choice": {"type": "tool", "name": "x"}}), "tool_choice"),
            (json!({"tool_choice": {"type": "maybe"}}), "tool_choice"),
            (json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}), "tools.0"),
            (json!({"tools": [{"input_schema": {}}]}), "tools.0.name"),
            (json!({"thinking": {"type": "some"}}), "thinking"),
            (json!({"output_config": {"effort": "utmost"}}), "effort"),
            (json!({"output_config": {"format": {"type": "text"}}}), "format"),
            (json!({"mcp_servers": [{"url": "x"}]}), "mcp_servers"),
            (json!({"system": 7}), "system"),
        ] {
            let error = parse(extra.clone()).err().unwrap_or_else(|| panic!("{extra} was taken"));
            assert!(error.message().contains(field), "{extra}: {error}");
            assert_eq!(error.kind.http_status(), 400);
        }
    }
}
