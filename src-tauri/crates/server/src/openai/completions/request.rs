//! Parses requests for completions of texts, field by field.

use app::GenerateArgs;
use contract::protocol::{ChatOptions, ProbabilityReport, Prompt};
use serde_json::Value;

use crate::fault::OpenAiFault;
use crate::openai::fields::{Fields, Result, object};
use crate::openai::{format, sampling_fields};
use crate::whole_number::token_id;

/// Tokens of an answer unless the client says so, as in OpenAI's API.
const DEFAULT_MAX_TOKENS: usize = 16;

/// Largest number of prompts per request, as in OpenAI's API.
const MAX_PROMPTS: usize = 20;

/// Largest number of alternatives per token, as for chat completions.
const MAX_LOGPROBS: u64 = sampling_fields::MAX_TOP_LOGPROBS;

/// A text, or the tokens of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPrompt {
    Text(String),
    Ids(Vec<u32>),
}

/// A parsed request.
#[derive(Debug)]
pub struct CompletionRequest {
    /// Library id.
    pub model: Option<String>,
    pub prompts: Vec<TextPrompt>,
    /// What comes after the answer.
    pub suffix: Option<String>,
    /// All but the prompt.
    pub args: GenerateArgs,
    pub n_choices: usize,
    /// Runs per prompt, of which the best become choices.
    pub best_of: usize,
    pub is_echoed: bool,
    /// Alternatives per token that the client wants.
    pub logprobs: Option<u32>,
    pub stream: bool,
    pub include_usage: bool,
}

impl CompletionRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = Fields(&object);
        let n_choices = sampling_fields::choices(fields)?;
        let stream = fields.is_set("stream")?;
        let best_of = best_of(fields, n_choices, stream)?;
        let logprobs = logprobs(fields)?;
        let prompts = prompts(fields)?;
        let suffix = fields.text("suffix")?.filter(|suffix| !suffix.is_empty()).map(str::to_owned);
        if suffix.is_some() && prompts.iter().any(|prompt| matches!(prompt, TextPrompt::Ids(_))) {
            return Err(OpenAiFault::invalid("suffix", "`suffix` needs prompts that are texts, not tokens."));
        }
        let max_tokens = match fields.get("max_tokens") {
            Some(_) => sampling_fields::max_tokens(fields, &["max_tokens"])?,
            None => Some(DEFAULT_MAX_TOKENS),
        };
        let args = GenerateArgs {
            model: None,
            prompt: Prompt::Ids(Vec::new()),
            sampling: sampling_fields::sampling(fields)?,
            max_tokens,
            stop: sampling_fields::stop(fields)?,
            ignore_eos: fields.is_set("ignore_eos")?,
            chat: ChatOptions::default(),
            constraint: format::of_chat(fields)?,
            // The best run is the one whose tokens are most likely.
            logprobs: logprobs.or((best_of > n_choices).then_some(0)).map(ProbabilityReport::before_sampling),
        };
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            prompts,
            suffix,
            args,
            n_choices,
            best_of,
            is_echoed: fields.is_set("echo")?,
            logprobs,
            stream,
            include_usage: sampling_fields::include_usage(fields)?,
        })
    }

    /// Runs per prompt.
    pub fn n_runs(&self) -> usize {
        self.best_of.max(self.n_choices)
    }
}

/// 0 counts as absent.
fn best_of(fields: Fields<'_>, n_choices: usize, stream: bool) -> Result<usize> {
    const MAX_BEST_OF: u64 = 20;
    let best_of = fields.count_within("best_of", 0, MAX_BEST_OF)?.filter(|n| *n > 0);
    let best_of = best_of.and_then(|n| usize::try_from(n).ok()).unwrap_or(n_choices);
    if best_of < n_choices {
        return Err(OpenAiFault::invalid("best_of", "`best_of` must be at least `n`."));
    }
    if stream && best_of > n_choices {
        return Err(OpenAiFault::invalid("best_of", "`best_of` must equal `n` in a stream."));
    }
    Ok(best_of)
}

/// A number of alternatives; true counts as 0.
fn logprobs(fields: Fields<'_>) -> Result<Option<u32>> {
    match fields.get("logprobs") {
        Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(0)),
        Some(_) | None => {
            Ok(fields.count_within("logprobs", 0, MAX_LOGPROBS)?.and_then(|n| u32::try_from(n).ok()))
        }
    }
}

/// A text, tokens, or a list of either.
fn prompts(fields: Fields<'_>) -> Result<Vec<TextPrompt>> {
    let wrong = || {
        OpenAiFault::invalid("prompt", "`prompt` must be a text, a list of token ids, or a list of either.")
    };
    let prompts = match fields.get("prompt") {
        Some(Value::String(text)) => vec![TextPrompt::Text(text.clone())],
        Some(Value::Array(list)) if list.first().is_some_and(Value::is_number) => {
            vec![TextPrompt::Ids(ids(list).ok_or_else(wrong)?)]
        }
        Some(Value::Array(list)) => {
            let one = |value: &Value| match value {
                Value::String(text) => Some(TextPrompt::Text(text.clone())),
                Value::Array(list) => ids(list).filter(|ids| !ids.is_empty()).map(TextPrompt::Ids),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
            };
            list.iter().map(|value| one(value).ok_or_else(wrong)).collect::<Result<_>>()?
        }
        None => vec![TextPrompt::Text(String::new())],
        Some(_) => return Err(wrong()),
    };
    if prompts.is_empty() || prompts.len() > MAX_PROMPTS {
        let message = format!("`prompt` has {} prompts; 1 to {MAX_PROMPTS} are allowed.", prompts.len());
        return Err(OpenAiFault::invalid("prompt", message));
    }
    Ok(prompts)
}

/// Token ids; `None` where one is not.
pub fn ids(list: &[Value]) -> Option<Vec<u32>> {
    list.iter().map(token_id).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Result<CompletionRequest> {
        CompletionRequest::parse(value.to_string().as_bytes())
    }

    #[test]
    fn prompts_have_four_forms() {
        let text = |text: &str| TextPrompt::Text(text.into());
        for (prompt, expected) in [
            (json!("a"), vec![text("a")]),
            (json!(["a", "b"]), vec![text("a"), text("b")]),
            (json!([1, 2]), vec![TextPrompt::Ids(vec![1, 2])]),
            (json!([[1], "b"]), vec![TextPrompt::Ids(vec![1]), text("b")]),
            (Value::Null, vec![text("")]),
        ] {
            assert_eq!(parse(&json!({ "prompt": prompt })).unwrap().prompts, expected);
        }
        for prompt in
            [json!([]), json!(7), json!({}), json!([[]]), json!([1, "a"]), json!([-1]), json!(["a", 1])]
        {
            let fault = parse(&json!({ "prompt": prompt })).unwrap_err();
            assert_eq!(fault.param.as_deref(), Some("prompt"), "{prompt}");
        }
    }

    #[test]
    fn the_other_fields() {
        let request =
            parse(&json!({ "prompt": "a", "n": 2, "best_of": 3, "echo": true, "logprobs": 2 })).unwrap();
        assert_eq!((request.n_choices, request.best_of, request.is_echoed), (2, 3, true));
        let report = ProbabilityReport::before_sampling;
        assert_eq!(
            (request.args.max_tokens, request.args.logprobs),
            (Some(DEFAULT_MAX_TOKENS), Some(report(2)))
        );
        let request = parse(&json!({ "prompt": "a", "best_of": 2, "max_tokens": 0 })).unwrap();
        assert_eq!(
            (request.args.max_tokens, request.args.logprobs, request.logprobs),
            (Some(0), Some(report(0)), None)
        );
        for (fields, param) in [
            (json!({ "n": 2, "best_of": 1 }), "best_of"),
            (json!({ "stream": true, "best_of": 2 }), "best_of"),
            (json!({ "suffix": "b", "prompt": [1] }), "suffix"),
            (json!({ "logprobs": 21 }), "logprobs"),
            (json!({ "echo": 1 }), "echo"),
        ] {
            assert_eq!(parse(&fields).unwrap_err().param.as_deref(), Some(param), "{fields}");
        }
    }
}
