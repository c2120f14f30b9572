//! Parses requests for responses, field by field.

use app::GenerateArgs;
use contract::protocol::{ChatOptions, Constraint, ProbabilityReport, Prompt};
use serde_json::{Map, Value, json};

use super::items;
use crate::fault::OpenAiFault;
use crate::openai::chat::{chat_options, effort, metadata};
use crate::openai::fields::{Fields, Result, object, unsupported};
use crate::openai::tools::{ToolSet, tool_set};
use crate::openai::{format, sampling_fields};

/// A parsed request.
#[derive(Debug)]
pub struct ResponseRequest {
    /// Library id.
    pub model: Option<String>,
    /// New items.
    pub input: Vec<Value>,
    pub instructions: Option<String>,
    /// What came before.
    pub state: ResponseState,
    /// All but the prompt.
    pub args: GenerateArgs,
    pub stream: bool,
    pub is_stored: bool,
    pub is_background: bool,
    pub shape: ResponseShape,
    /// Fields that the response repeats.
    pub echo: Map<String, Value>,
}

/// The items before a request's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseState {
    None,
    /// Those of a stored response.
    Previous(String),
    /// Those of a conversation, which gets the new ones too.
    Conversation(String),
}

/// What the response contains besides its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseShape {
    pub has_logprobs: bool,
    /// A response may have several calls.
    pub is_parallel: bool,
    /// Reports how much of the prompt was read, as llama.cpp does.
    pub has_progress: bool,
    /// Times with every piece of text, as llama.cpp has them.
    pub has_delta_timings: bool,
}

impl ResponseRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = Fields(&object);
        let ToolSet { tools, constraint, is_parallel, .. } = tool_set(fields)?;
        if fields.get("prompt").is_some() {
            let message = "`prompt` names a template on OpenAI's servers. Send `input` and `instructions`.";
            return Err(unsupported("prompt", message));
        }
        let constraint = match constraint {
            Some(constraint) => Some(constraint),
            None => text_format(fields)?,
        };
        let logprobs = logprobs(fields)?;
        let is_background = fields.is_set("background")?;
        let is_stored = fields.boolean("store")?.unwrap_or(true);
        if is_background && !is_stored {
            return Err(OpenAiFault::invalid("background", "`background` needs `store` to be true."));
        }
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            input: items::read(fields.get("input"), "input")?,
            instructions: fields.text("instructions")?.map(str::to_owned),
            state: state(fields)?,
            args: GenerateArgs {
                model: None,
                prompt: Prompt::Chat(Vec::new()),
                sampling: sampling_fields::sampling(fields)?,
                max_tokens: sampling_fields::max_tokens(fields, &["max_output_tokens"])?,
                stop: sampling_fields::stop(fields)?,
                ignore_eos: fields.is_set("ignore_eos")?,
                chat: chat(fields, tools)?,
                constraint,
                logprobs: logprobs.map(ProbabilityReport::before_sampling),
            },
            stream: fields.is_set("stream")?,
            is_stored,
            is_background,
            shape: ResponseShape {
                has_logprobs: logprobs.is_some(),
                is_parallel,
                has_progress: fields.is_set("return_progress")?,
                has_delta_timings: fields.is_set("timings_per_token")?,
            },
            echo: echo(fields)?,
        })
    }
}

/// `previous_response_id` or `conversation`, as an id or an object with one.
fn state(fields: Fields<'_>) -> Result<ResponseState> {
    let conversation = match fields.get("conversation") {
        None => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(value) => match value.get("id").and_then(Value::as_str) {
            Some(id) => Some(id.to_owned()),
            None => {
                let message = "`conversation` must be an id or an object with one.";
                return Err(OpenAiFault::invalid("conversation", message));
            }
        },
    };
    match (fields.text("previous_response_id")?, conversation) {
        (None, None) => Ok(ResponseState::None),
        (Some(id), None) => Ok(ResponseState::Previous(id.into())),
        (None, Some(id)) => Ok(ResponseState::Conversation(id)),
        (Some(_), Some(_)) => Err(OpenAiFault::invalid(
            "previous_response_id",
            "`previous_response_id` can't be combined with `conversation`.",
        )),
    }
}

/// Alternatives per token, where probabilities are included.
fn logprobs(fields: Fields<'_>) -> Result<Option<u32>> {
    let top = fields.count_within("top_logprobs", 0, sampling_fields::MAX_TOP_LOGPROBS)?;
    let include = fields.list("include")?.map(Vec::as_slice).unwrap_or_default();
    let is_included = include.iter().any(|it| *it == "message.output_text.logprobs");
    let top = top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0);
    Ok((is_included || top > 0).then_some(top))
}

fn text_format(fields: Fields<'_>) -> Result<Option<Constraint>> {
    match fields.object("text")?.and_then(|text| text.get("format")) {
        Some(value) => format::constraint(value, "text")
            .map_err(|fault| OpenAiFault { param: Some("text.format".into()), ..fault }),
        None => Ok(None),
    }
}

fn chat(fields: Fields<'_>, tools: Value) -> Result<ChatOptions> {
    let mut options = chat_options(fields, tools)?;
    if let Some(word) = fields.object("reasoning")?.map(|it| it.text("effort")).transpose()?.flatten() {
        effort(word, "reasoning", &mut options.kwargs)?;
    }
    Ok(options)
}

/// What the response repeats of the request.
fn echo(fields: Fields<'_>) -> Result<Map<String, Value>> {
    let or = |name: &str, default: Value| fields.get(name).cloned().unwrap_or(default);
    let reasoning = fields.get("reasoning");
    let part = |key: &str| reasoning.and_then(|it| it.get(key)).cloned().unwrap_or(Value::Null);
    let text = fields.get("text");
    let format = text.and_then(|it| it.get("format")).cloned().unwrap_or_else(|| json!({ "type": "text" }));
    let verbosity = text.and_then(|it| it.get("verbosity")).cloned().unwrap_or_else(|| json!("medium"));
    let conversation = match fields.get("conversation") {
        Some(Value::String(id)) => json!({ "id": id }),
        Some(value) => json!({ "id": value["id"] }),
        None => Value::Null,
    };
    let tools = fields.list("tools")?.cloned().unwrap_or_default();
    let echo = json!({
        "background": or("background", json!(false)),
        "conversation": conversation,
        "instructions": or("instructions", Value::Null),
        "max_output_tokens": or("max_output_tokens", Value::Null),
        "max_tool_calls": or("max_tool_calls", Value::Null),
        "metadata": metadata(fields)?,
        "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
        "previous_response_id": or("previous_response_id", Value::Null),
        "prompt_cache_key": or("prompt_cache_key", Value::Null),
        "reasoning": { "effort": part("effort"), "summary": part("summary") },
        "safety_identifier": or("safety_identifier", Value::Null),
        "service_tier": "default",
        "store": or("store", json!(true)),
        "temperature": or("temperature", Value::Null),
        "text": { "format": format, "verbosity": verbosity },
        "tool_choice": or("tool_choice", json!("auto")),
        "tools": tools.iter().map(tool).collect::<Vec<_>>(),
        "top_logprobs": or("top_logprobs", json!(0)),
        "top_p": or("top_p", Value::Null),
        "truncation": or("truncation", json!("disabled")),
        "user": or("user", Value::Null),
    });
    match echo {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// A tool with the fields that clients expect of every one.
fn tool(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(fields) = tool.as_object_mut() {
        fields.entry("parameters").or_insert(Value::Null);
        fields.entry("strict").or_insert(Value::Null);
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &Value) -> Result<ResponseRequest> {
        ResponseRequest::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_request_may_be_empty() {
        let request = ResponseRequest::parse(b"").unwrap();
        assert_eq!((request.input.len(), request.state, request.is_stored), (0, ResponseState::None, true));
        assert_eq!(request.echo["text"]["format"]["type"], "text");
    }

    #[test]
    fn what_is_taken() {
        let request = parse(&json!({
            "input": "Hi", "instructions": "Be brief.", "max_output_tokens": 9, "store": false, "top_logprobs": 2,
            "conversation": { "id": "conv_1" }, "reasoning": { "effort": "high" }, "parallel_tool_calls": false,
            "tools": [{ "type": "function", "name": "f" }], "tool_choice": "required",
            "text": { "format": { "type": "json_object" } },
        }))
        .unwrap();
        assert_eq!(request.state, ResponseState::Conversation("conv_1".into()));
        let report = ProbabilityReport::before_sampling(2);
        assert_eq!((request.args.max_tokens, request.args.logprobs), (Some(9), Some(report)));
        assert_eq!(request.args.constraint, Some(Constraint::ToolCall { name: None }));
        assert_eq!(request.args.chat.kwargs["reasoning_effort"], "high");
        assert_eq!(request.args.chat.tools[0]["function"]["name"], "f");
        assert!(!request.is_stored && !request.shape.is_parallel && request.shape.has_logprobs);
        assert_eq!(
            request.echo["tools"],
            json!([{ "type": "function", "name": "f", "parameters": null, "strict": null }])
        );
        assert_eq!(request.echo["conversation"], json!({ "id": "conv_1" }));
    }

    #[test]
    fn what_is_refused_names_its_field() {
        for (fields, param) in [
            (json!({ "input": 7 }), "input"),
            (json!({ "conversation": 7 }), "conversation"),
            (json!({ "conversation": "a", "previous_response_id": "b" }), "previous_response_id"),
            (json!({ "background": true, "store": false }), "background"),
            (json!({ "prompt": { "id": "x" } }), "prompt"),
            (json!({ "text": { "format": { "type": "sound" } } }), "text.format"),
            (json!({ "reasoning": { "effort": "utmost" } }), "reasoning"),
            (json!({ "tools": [{ "type": "web_search" }] }), "tools"),
            (json!({ "metadata": [] }), "metadata"),
        ] {
            assert_eq!(parse(&fields).unwrap_err().param.as_deref(), Some(param), "{fields}");
        }
    }
}
