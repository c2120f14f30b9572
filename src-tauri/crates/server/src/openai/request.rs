//! Parses chat completion requests field by field, so that every error names its field.

use app::GenerateArgs;
use app::SamplingArgs;
use contract::protocol::{ChatOptions, Prompt, PromptMessage};
use prompt::openai_messages;
use serde_json::{Map, Value};

use crate::fault::OpenAiFault;
use crate::json_body;

/// Largest number of stop texts; OpenAI allows 4.
const MAX_STOPS: usize = 16;

/// Largest number of messages; far beyond any conversation.
const MAX_MESSAGES: usize = 10_000;

type Result<T> = std::result::Result<T, OpenAiFault>;

#[derive(Debug)]
pub struct ChatRequest {
    /// Library id.
    pub model: Option<String>,
    pub args: GenerateArgs,
    pub stream: bool,
    pub include_usage: bool,
}

impl ChatRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let value = json_body::parse(body)
            .map_err(|error| OpenAiFault::invalid(None, format!("The body is not JSON: {error}.")))?;
        let Value::Object(object) = value else {
            return Err(OpenAiFault::invalid(None, "The body must be a JSON object."));
        };
        let fields = Fields(&object);
        fields.refuse_unbuilt()?;
        let stream = fields.boolean("stream")?.unwrap_or(false);
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            args: GenerateArgs {
                model: None,
                prompt: Prompt::Chat(fields.messages()?),
                sampling: fields.sampling()?,
                max_tokens: fields.max_tokens()?,
                stop: fields.stop()?,
                ignore_eos: fields.boolean("ignore_eos")?.unwrap_or(false),
                chat: fields.chat()?,
            },
            stream,
            include_usage: fields.include_usage()?,
        })
    }
}

/// Fields of the request; null counts as absent.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &'static str) -> Result<Option<&'a str>> {
        self.typed(name, "a string", Value::as_str)
    }

    fn boolean(&self, name: &'static str) -> Result<Option<bool>> {
        self.typed(name, "true or false", Value::as_bool)
    }

    fn number(&self, name: &'static str) -> Result<Option<f64>> {
        self.typed(name, "a number", Value::as_f64)
    }

    /// A non-negative integer.
    fn count(&self, name: &'static str) -> Result<Option<u64>> {
        self.typed(name, "a whole number from 0", |value| {
            let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
            value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|number| number as u64))
        })
    }

    fn typed<T>(
        &self,
        name: &'static str,
        kind: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| OpenAiFault::invalid(name, format!("`{name}` must be {kind}.")))
    }

    /// Rejects unsupported fields that would change the answer.
    fn refuse_unbuilt(&self) -> Result<()> {
        let unbuilt = |name: &'static str| {
            Err(OpenAiFault {
                code: Some("unsupported_parameter".into()),
                ..OpenAiFault::invalid(
                    name,
                    format!("`{name}` is not supported. Remove it from the request."),
                )
            })
        };
        if self.count("n")?.is_some_and(|n| n != 1) {
            return Err(OpenAiFault::invalid("n", "`n` can only be 1: one answer per request."));
        }
        for name in ["functions", "logit_bias", "audio", "web_search_options"] {
            let is_empty = |value: &Value| {
                value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
            };
            if self.get(name).is_some_and(|value| !is_empty(value)) {
                return unbuilt(name);
            }
        }
        for name in ["logprobs", "top_logprobs"] {
            if self.get(name).is_some_and(|value| *value != Value::Bool(false) && value.as_u64() != Some(0)) {
                return unbuilt(name);
            }
        }
        for name in ["frequency_penalty", "presence_penalty"] {
            if self.number(name)?.is_some_and(|penalty| penalty != 0.0) {
                return unbuilt(name);
            }
        }
        for name in ["tool_choice", "function_call"] {
            if self.get(name).is_some_and(|value| *value != "none" && *value != "auto") {
                return unbuilt(name);
            }
        }
        let format = self.get("response_format").map(|format| format.get("type").unwrap_or(format));
        if format.is_some_and(|format| *format != "text") {
            return unbuilt("response_format");
        }
        let has_other_modality =
            |value: &Value| value.as_array().is_none_or(|all| all.iter().any(|one| *one != "text"));
        if self.get("modalities").is_some_and(has_other_modality) {
            return unbuilt("modalities");
        }
        Ok(())
    }

    fn messages(&self) -> Result<Vec<PromptMessage>> {
        let list = self.typed("messages", "a list of messages", Value::as_array)?;
        let list = list.filter(|list| !list.is_empty());
        let list =
            list.ok_or_else(|| OpenAiFault::invalid("messages", "`messages` needs at least one message."))?;
        if list.len() > MAX_MESSAGES {
            return Err(OpenAiFault::invalid(
                "messages",
                format!("There are more than {MAX_MESSAGES} messages."),
            ));
        }
        list.iter().enumerate().map(|(index, message)| self.message(index, message)).collect()
    }

    fn message(&self, index: usize, message: &Value) -> Result<PromptMessage> {
        openai_messages::message(message)
            .map_err(|what| OpenAiFault::invalid("messages", format!("Message {index}: {what}")))
    }

    fn chat(&self) -> Result<ChatOptions> {
        let invalid = |field: &'static str| move |what: String| OpenAiFault::invalid(field, sentence(&what));
        let is_wanted = self.get("tool_choice").is_none_or(|choice| *choice != "none");
        let tools =
            openai_messages::tools(self.get("tools").unwrap_or(&Value::Null)).map_err(invalid("tools"))?;
        let mut kwargs =
            self.typed("chat_template_kwargs", "an object", Value::as_object)?.cloned().unwrap_or_default();
        if let Some(word) = self.text("reasoning_effort")? {
            openai_messages::effort(word, &mut kwargs).map_err(invalid("reasoning_effort"))?;
        }
        Ok(ChatOptions {
            tools: if is_wanted { tools } else { Value::Null },
            kwargs,
            reasoning_budget: self
                .count("reasoning_budget")?
                .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            ..ChatOptions::default()
        })
    }

    fn sampling(&self) -> Result<SamplingArgs> {
        // Some clients send a negative seed; map it to a fixed number.
        let seed = self.typed("seed", "a whole number", |value| {
            value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned))
        })?;
        let ranged = |name: &'static str, max: f64| -> Result<Option<f64>> {
            match self.number(name)? {
                Some(number) if !(0.0..=max).contains(&number) => {
                    Err(OpenAiFault::invalid(name, format!("`{name}` must be from 0 to {max}.")))
                }
                number => Ok(number),
            }
        };
        Ok(SamplingArgs {
            temperature: ranged("temperature", 2.0)?,
            top_k: self.count("top_k")?.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
            top_p: ranged("top_p", 1.0)?,
            min_p: ranged("min_p", 1.0)?,
            repeat_penalty: self.number("repeat_penalty")?,
            seed,
        })
    }

    fn max_tokens(&self) -> Result<Option<usize>> {
        for name in ["max_completion_tokens", "max_tokens"] {
            match self.count(name)? {
                None => {}
                Some(0) => return Err(OpenAiFault::invalid(name, format!("`{name}` must be at least 1."))),
                Some(n) => return Ok(Some(usize::try_from(n).unwrap_or(usize::MAX))),
            }
        }
        Ok(None)
    }

    fn stop(&self) -> Result<Vec<String>> {
        let fault = || {
            OpenAiFault::invalid(
                "stop",
                format!("`stop` must be a string or a list of at most {MAX_STOPS} strings."),
            )
        };
        match self.get("stop") {
            None => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(Value::Array(all)) if all.len() <= MAX_STOPS => {
                all.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(fault)).collect()
            }
            Some(_) => Err(fault()),
        }
    }

    fn include_usage(&self) -> Result<bool> {
        let options = self.typed("stream_options", "an object", Value::as_object)?;
        let Some(wanted) =
            options.and_then(|options| options.get("include_usage")).filter(|value| !value.is_null())
        else {
            return Ok(false);
        };
        wanted
            .as_bool()
            .ok_or_else(|| OpenAiFault::invalid("stream_options", "`include_usage` must be true or false."))
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
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
        assert!(request.stream && request.include_usage);
        assert_eq!(parse(json!({ "stop": "x" })).unwrap().args.stop, ["x"]);
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
            (json!({ "n": 2 }), "n"),
            (json!({ "n": "two" }), "n"),
            (json!({ "tools": [{ "type": "function" }] }), "tools"),
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (json!({ "response_format": { "type": "json_object" } }), "response_format"),
            (json!({ "response_format": "json" }), "response_format"),
            (json!({ "logprobs": true }), "logprobs"),
            (json!({ "logit_bias": { "1": 5 } }), "logit_bias"),
            (json!({ "presence_penalty": 0.5 }), "presence_penalty"),
            (json!({ "modalities": ["text", "audio"] }), "modalities"),
            (json!({ "temperature": 3 }), "temperature"),
            (json!({ "temperature": "hot" }), "temperature"),
            (json!({ "top_p": -1 }), "top_p"),
            (json!({ "max_tokens": -1 }), "max_tokens"),
            (json!({ "max_tokens": 0 }), "max_tokens"),
            (json!({ "max_tokens": 1.5 }), "max_tokens"),
            (json!({ "stop": [1] }), "stop"),
            (json!({ "stop": { "a": 1 } }), "stop"),
            (json!({ "stream": "yes" }), "stream"),
            (json!({ "stream_options": [] }), "stream_options"),
            (json!({ "seed": 1.5 }), "seed"),
            (json!({ "model": 7 }), "model"),
            (json!({ "messages": [] }), "messages"),
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
