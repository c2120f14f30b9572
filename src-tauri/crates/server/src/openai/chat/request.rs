//! Parses chat completion requests field by field, so that every error names its field.

use app::GenerateArgs;
use contract::protocol::{ChatOptions, ProbabilityReport, Prompt, PromptMessage};
use prompt::{answer_prefix, openai_messages};
use serde_json::{Map, Value};

use crate::fault::OpenAiFault;
use crate::openai::fields::{Fields, Result, object, sentence, unsupported};
use crate::openai::tools::{ToolSet, tool_set};
use crate::openai::{format, sampling_fields};

/// Largest number of messages; far beyond any conversation.
const MAX_MESSAGES: usize = 10_000;

/// A parsed request.
#[derive(Debug)]
pub struct ChatRequest {
    /// Library id.
    pub model: Option<String>,
    pub args: GenerateArgs,
    pub n_choices: usize,
    pub stream: bool,
    pub shape: AnswerShape,
    /// What to store of it; `None`: nothing.
    pub stored: Option<StoredFields>,
}

/// What the answer contains besides its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerShape {
    pub include_usage: bool,
    /// Reports how much of the prompt was read, as llama.cpp does.
    pub has_progress: bool,
    /// Times with every chunk, as llama.cpp has them.
    pub has_chunk_timings: bool,
    /// The rendered prompt with a whole answer, as llama.cpp has it.
    pub is_verbose: bool,
    pub has_logprobs: bool,
    /// Calls in the form of `function_call`.
    pub is_legacy: bool,
    /// An answer may have several calls.
    pub is_parallel: bool,
}

/// Fields of a request that are stored with its answer.
#[derive(Debug, Clone, Default)]
pub struct StoredFields {
    pub messages: Vec<Value>,
    pub metadata: Value,
}

impl ChatRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = Fields(&object);
        sampling_fields::refuse_modalities(fields)?;
        let ToolSet { tools, constraint, is_legacy, is_parallel } = tool_set(fields)?;
        // A call is required before a form: the form applies to the answer after the call.
        let constraint = match constraint {
            Some(constraint) => Some(constraint),
            None => format::of_chat(fields)?,
        };
        let logprobs = logprobs(fields)?;
        let shape = AnswerShape {
            include_usage: sampling_fields::include_usage(fields)?,
            has_progress: fields.is_set("return_progress")?,
            has_chunk_timings: fields.is_set("timings_per_token")?,
            is_verbose: fields.is_set("verbose")?,
            has_logprobs: logprobs.is_some(),
            is_legacy,
            is_parallel,
        };
        let messages = messages(fields)?;
        let mut chat = chat_options(fields, tools)?;
        continue_answer(fields, &messages, &mut chat)?;
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            args: GenerateArgs {
                model: None,
                prompt: Prompt::Chat(messages),
                sampling: sampling_fields::sampling(fields)?,
                max_tokens: sampling_fields::max_tokens(fields, &["max_completion_tokens", "max_tokens"])?,
                stop: sampling_fields::stop(fields)?,
                ignore_eos: fields.is_set("ignore_eos")?,
                chat,
                constraint,
                logprobs: logprobs.map(ProbabilityReport::before_sampling),
            },
            n_choices: sampling_fields::choices(fields)?,
            stream: fields.is_set("stream")?,
            shape,
            stored: stored(fields)?,
        })
    }
}

/// Alternatives per token. None: no probabilities.
fn logprobs(fields: Fields<'_>) -> Result<Option<u32>> {
    let top = fields.count_within("top_logprobs", 0, sampling_fields::MAX_TOP_LOGPROBS)?;
    match (fields.is_set("logprobs")?, top) {
        (true, top) => Ok(Some(top.and_then(|top| u32::try_from(top).ok()).unwrap_or(0))),
        (false, None | Some(0)) => Ok(None),
        (false, Some(_)) => {
            Err(OpenAiFault::invalid("top_logprobs", "`top_logprobs` needs `logprobs` to be true."))
        }
    }
}

/// Whether the answer continues the last message, in the words of transformers, vLLM and llama.cpp.
fn continue_answer(fields: Fields<'_>, messages: &[PromptMessage], chat: &mut ChatOptions) -> Result<()> {
    let begins = fields.boolean("add_generation_prompt")?;
    let continues = fields.boolean("continue_final_message")?;
    let is_continued = answer_prefix::is_continued(messages, begins, continues)
        .map_err(|what| OpenAiFault::invalid("messages", what))?;
    answer_prefix::set(&mut chat.kwargs, begins, is_continued);
    Ok(())
}

fn stored(fields: Fields<'_>) -> Result<Option<StoredFields>> {
    let metadata = metadata(fields)?;
    if !fields.is_set("store")? {
        return Ok(None);
    }
    let messages = fields.list("messages")?.cloned().unwrap_or_default();
    Ok(Some(StoredFields { messages, metadata }))
}

/// At most 16 texts with names, as in OpenAI's API.
pub fn metadata(fields: Fields<'_>) -> Result<Value> {
    const MAX_ENTRIES: usize = 16;
    let map = fields.typed("metadata", "an object", Value::as_object)?.cloned().unwrap_or_default();
    if map.len() > MAX_ENTRIES || !map.values().all(Value::is_string) {
        let message = format!("`metadata` must be an object of at most {MAX_ENTRIES} texts.");
        return Err(OpenAiFault::invalid("metadata", message));
    }
    Ok(Value::Object(map))
}

fn messages(fields: Fields<'_>) -> Result<Vec<PromptMessage>> {
    let list = fields.typed("messages", "a list of messages", Value::as_array)?;
    let list = list.filter(|list| !list.is_empty());
    let list =
        list.ok_or_else(|| OpenAiFault::invalid("messages", "`messages` needs at least one message."))?;
    if list.len() > MAX_MESSAGES {
        let message = format!("There are more than {MAX_MESSAGES} messages.");
        return Err(OpenAiFault::invalid("messages", message));
    }
    let message = |(index, message): (usize, &Value)| {
        openai_messages::message(message)
            .map_err(|what| OpenAiFault::invalid("messages", format!("Message {index}: {what}")))
    };
    list.iter().enumerate().map(message).collect()
}

/// Tools, variables of the template, and how long the model may reason.
pub fn chat_options(fields: Fields<'_>, tools: Value) -> Result<ChatOptions> {
    let mut kwargs = fields.object("chat_template_kwargs")?.map(|it| it.0.clone()).unwrap_or_default();
    if let Some(word) = fields.text("reasoning_effort")? {
        effort(word, "reasoning_effort", &mut kwargs)?;
    }
    let budget = fields.count("reasoning_budget")?;
    Ok(ChatOptions {
        tools,
        kwargs,
        reasoning_budget: budget.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        ..ChatOptions::default()
    })
}

/// Sets the variables of the template that a word for the effort means.
pub fn effort(word: &str, name: &'static str, kwargs: &mut Map<String, Value>) -> Result<()> {
    // Beyond the highest level that models know.
    let word = if matches!(word, "xhigh" | "max") { "high" } else { word };
    openai_messages::effort(word, kwargs).map_err(|what| unsupported(name, sentence(&what)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(extra: Value) -> Result<ChatRequest> {
        let mut body = json!({ "model": "starter", "messages": [{ "role": "user", "content": "Hi" }] });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        ChatRequest::parse(body.to_string().as_bytes())
    }

    #[test]
    fn what_is_taken() {
        let request = parse(json!({
            "messages": [
                { "role": "developer", "content": "Be brief." },
                { "role": "user", "content": [{ "type": "text", "text": "Hi " }, { "type": "text", "text": "there" }] },
                { "role": "assistant", "content": null },
            ],
            "max_tokens": 5, "max_completion_tokens": 7, "stop": ["a", "b"], "temperature": 0, "seed": -1, "n": 1,
            "stream": true, "stream_options": { "include_usage": true }, "user": "x", "store": false, "tools": [],
            "response_format": { "type": "text" }, "frequency_penalty": 0, "logprobs": false, "top_p": null,
            "parallel_tool_calls": true, "unknown_field": { "deep": [1] }, "tool_choice": "none",
        }))
        .unwrap();
        let Prompt::Chat(messages) = &request.args.prompt else { panic!() };
        let roles: Vec<_> = messages.iter().map(|m| (m.role.as_str(), m.content.as_str())).collect();
        assert_eq!(roles, [("system", "Be brief."), ("user", "Hi there"), ("assistant", "")]);
        assert_eq!(request.args.max_tokens, Some(7));
        assert_eq!(request.args.stop, ["a", "b"]);
        assert_eq!(request.args.sampling.temperature, Some(0.0));
        assert_eq!(request.args.sampling.seed, Some(u64::MAX));
        assert!(request.stream && request.shape.include_usage && request.stored.is_none());
        assert_eq!((request.n_choices, request.args.logprobs), (1, None));
        assert_eq!(parse(json!({ "stop": "x" })).unwrap().args.stop, ["x"]);
    }

    #[test]
    fn the_beginning_of_an_answer_is_continued() {
        let variables = |extra: Value| {
            let mut body = json!({
                "messages": [{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": "Hel" }],
            });
            for (name, value) in extra.as_object().unwrap() {
                body[name] = value.clone();
            }
            Value::Object(parse(body).unwrap().args.chat.kwargs)
        };
        let continued = json!({ "continue_final_message": true });
        assert_eq!(variables(json!({})), continued);
        assert_eq!(
            variables(json!({ "add_generation_prompt": false, "continue_final_message": true })),
            continued
        );
        assert_eq!(variables(json!({ "continue_final_message": false })), json!({}));
        assert_eq!(
            variables(json!({ "add_generation_prompt": true })),
            json!({ "add_generation_prompt": true })
        );
    }

    #[test]
    fn probabilities_forms_and_choices_are_taken() {
        let request = parse(json!({
            "logprobs": true, "top_logprobs": 4, "n": 3, "store": true, "metadata": { "a": "b" },
            "response_format": { "type": "json_object" }, "presence_penalty": 0.5, "logit_bias": { "7": -100 },
        }))
        .unwrap();
        let report = ProbabilityReport::before_sampling;
        assert_eq!((request.args.logprobs, request.n_choices), (Some(report(4)), 3));
        assert_eq!(request.args.constraint, Some(contract::protocol::Constraint::JsonObject));
        assert_eq!(request.args.sampling.presence_penalty, Some(0.5));
        let stored = request.stored.unwrap();
        assert_eq!((stored.messages.len(), stored.metadata), (1, json!({ "a": "b" })));
        assert_eq!(parse(json!({ "logprobs": true })).unwrap().args.logprobs, Some(report(0)));
    }

    #[test]
    fn halves_of_characters_are_taken() {
        let body = r#"{"messages": [{"role": "user", "content": "a\ud83d \ud83d\ude00 \\ud83d"}]}"#;
        let Prompt::Chat(messages) = ChatRequest::parse(body.as_bytes()).unwrap().args.prompt else {
            panic!()
        };
        assert_eq!(messages[0].content, "a\u{fffd} 😀 \\ud83d");
    }

    #[test]
    fn what_is_refused_names_its_field() {
        let cases = [
            (json!({ "n": 0 }), "n"),
            (json!({ "n": 129 }), "n"),
            (json!({ "n": "two" }), "n"),
            (json!({ "tools": [{ "type": "function" }] }), "tools"),
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (json!({ "response_format": { "type": "sound" } }), "response_format"),
            (json!({ "response_format": "json" }), "response_format"),
            (json!({ "logprobs": "all" }), "logprobs"),
            (json!({ "top_logprobs": 3 }), "top_logprobs"),
            (json!({ "logprobs": true, "top_logprobs": 21 }), "top_logprobs"),
            (json!({ "logit_bias": { "one": 5 } }), "logit_bias"),
            (json!({ "presence_penalty": 2.5 }), "presence_penalty"),
            (json!({ "frequency_penalty": -3 }), "frequency_penalty"),
            (json!({ "metadata": { "a": 1 } }), "metadata"),
            (json!({ "grammar": "root ::= x" }), "grammar"),
            (json!({ "modalities": ["text", "audio"] }), "modalities"),
            (json!({ "temperature": 3 }), "temperature"),
            (json!({ "temperature": "hot" }), "temperature"),
            (json!({ "top_p": -1 }), "top_p"),
            (json!({ "max_tokens": -2 }), "max_tokens"),
            (json!({ "max_tokens": 1.5 }), "max_tokens"),
            (json!({ "stop": [1] }), "stop"),
            (json!({ "stop": { "a": 1 } }), "stop"),
            (json!({ "stream": "yes" }), "stream"),
            (json!({ "stream_options": [] }), "stream_options"),
            (json!({ "seed": 1.5 }), "seed"),
            (json!({ "model": 7 }), "model"),
            (json!({ "messages": [] }), "messages"),
            (json!({ "continue_final_message": true }), "messages"),
            (json!({ "continue_final_message": "yes" }), "continue_final_message"),
            (json!({ "messages": "Hi" }), "messages"),
            (json!({ "messages": ["Hi"] }), "messages"),
            (json!({ "messages": [{ "role": "king", "content": "x" }] }), "messages"),
            (json!({ "messages": [{ "role": "user" }] }), "messages"),
            (json!({ "messages": [{ "role": "tool" }] }), "messages"),
            (json!({ "tools": [{ "type": "web", "function": { "name": "f" } }] }), "tools"),
            (json!({ "reasoning_effort": "utmost" }), "reasoning_effort"),
            (json!({ "chat_template_kwargs": [] }), "chat_template_kwargs"),
            (json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }), "messages"),
        ];
        for (extra, field) in cases {
            let fault = parse(extra.clone()).err().unwrap_or_else(|| panic!("{extra} was taken"));
            assert_eq!((fault.status.as_u16(), fault.param.as_deref()), (400, Some(field)), "{extra}");
            assert!(fault.message.contains(field) || field == "messages", "{}", fault.message);
        }
        for body in ["", "{", "[]", "\"x\"", "{}", "{\"messages\":1e999}", "\u{0}"] {
            assert_eq!(ChatRequest::parse(body.as_bytes()).unwrap_err().status.as_u16(), 400, "{body}");
        }
        let deep = format!("{{\"messages\":{}", "[".repeat(60_000));
        assert_eq!(ChatRequest::parse(deep.as_bytes()).unwrap_err().status.as_u16(), 400);
    }
}
