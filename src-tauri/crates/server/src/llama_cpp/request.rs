//! Parses requests to llama.cpp's `/completion` and `/infill`.

use app::{GenerateArgs, SamplingArgs};
use contract::protocol::{ChatOptions, Constraint, ProbabilityReport, ProbabilityStage, Prompt, PromptPart};
use contract::{LogitBias, Result, nearest_f32};
use serde_json::{Map, Value};

use crate::request_fields::{self, RequestFields, invalid, object};
use crate::whole_number::token_id;

/// Largest number of stop texts.
const MAX_STOPS: usize = 64;

/// Largest number of prompts in one request.
const MAX_PROMPTS: usize = 128;

/// Largest number of alternatives per token.
const MAX_PROBABILITIES: usize = 100;

/// Bias of a token that must not appear.
const BANNED: f32 = -100.0;

/// A change of a token's likelihood: the token, or a text whose tokens are meant.
#[derive(Debug, Clone, PartialEq)]
pub enum BiasTarget {
    Token(u32),
    Text(String),
}

/// A request to continue texts.
#[derive(Debug)]
pub struct LlamaCppRequest {
    /// Name of the model as the client gives it.
    pub model: Option<String>,
    pub prompts: Vec<Vec<PromptPart>>,
    /// The answer is a list, because the prompt is one.
    pub is_list: bool,
    /// Without its prompt and biases.
    pub args: GenerateArgs,
    pub biases: Vec<(BiasTarget, f32)>,
    pub stream: bool,
    pub format: LlamaCppFormat,
}

/// What of an answer its client wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LlamaCppFormat {
    pub n_probs: usize,
    /// Probabilities are those that tokens were drawn by.
    pub is_after_sampling: bool,
    pub return_tokens: bool,
    /// Only these fields, as paths. Empty: all.
    pub fields: Vec<String>,
}

impl LlamaCppRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = RequestFields(&object);
        let (prompts, is_list) = prompts(fields.get("prompt"))?;
        Self::with_prompts(fields, prompts, is_list)
    }

    /// Parses everything but the prompt.
    pub fn with_prompts(fields: RequestFields, prompts: Vec<Vec<PromptPart>>, is_list: bool) -> Result<Self> {
        let n_probs = fields.count("n_probs")?.unwrap_or(0);
        if n_probs > MAX_PROBABILITIES {
            return Err(invalid(format!("`n_probs` must be from 0 to {MAX_PROBABILITIES}.")));
        }
        let stage = match fields.boolean("post_sampling_probs")?.unwrap_or(false) {
            true => ProbabilityStage::AfterSampling,
            false => ProbabilityStage::BeforeSampling,
        };
        if fields.count("n_cmpl")?.or(fields.count("n")?).is_some_and(|n| n != 1) {
            return Err(invalid("`n_cmpl` can only be 1: one answer per prompt."));
        }
        let stream = fields.boolean("stream")?.unwrap_or(false);
        if stream && prompts.len() != 1 {
            return Err(invalid("A stream has one prompt: send a request for each."));
        }
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            prompts,
            is_list,
            args: GenerateArgs {
                model: None,
                prompt: Prompt::Ids(Vec::new()),
                sampling: sampling(fields)?,
                max_tokens: max_tokens(fields)?,
                stop: fields.texts("stop", MAX_STOPS)?,
                ignore_eos: fields.boolean("ignore_eos")?.unwrap_or(false),
                chat: ChatOptions::default(),
                constraint: constraint(fields)?,
                logprobs: u32::try_from(n_probs)
                    .ok()
                    .filter(|n| *n > 0)
                    .map(|n_alternatives| ProbabilityReport { n_alternatives, stage }),
            },
            biases: biases(fields.get("logit_bias"))?,
            stream,
            format: LlamaCppFormat {
                n_probs,
                is_after_sampling: stage == ProbabilityStage::AfterSampling,
                return_tokens: fields.boolean("return_tokens")?.unwrap_or(false),
                fields: fields.texts("response_fields", MAX_STOPS)?,
            },
        })
    }
}

/// A prompt, or several, and whether a list came.
fn prompts(value: Option<&Value>) -> Result<(Vec<Vec<PromptPart>>, bool)> {
    let Some(value) = value else { return Err(invalid("`prompt` is required.")) };
    let Value::Array(list) = value else { return Ok((vec![prompt(value)?], false)) };
    let is_token = |value: &Value| value.is_number();
    // Numbers, with or without texts between them, are one prompt.
    if list.is_empty() || list.iter().any(is_token) {
        return Ok((vec![prompt(value)?], false));
    }
    if list.len() > MAX_PROMPTS {
        return Err(invalid(format!(
            "`prompt` has {} prompts; at most {MAX_PROMPTS} are allowed.",
            list.len()
        )));
    }
    Ok((list.iter().map(prompt).collect::<Result<_>>()?, list.len() > 1))
}

/// A text, tokens with texts between them, or an object with a text.
fn prompt(value: &Value) -> Result<Vec<PromptPart>> {
    match value {
        Value::String(text) => Ok(vec![PromptPart::Text(text.clone())]),
        Value::Object(object) => media_prompt(object),
        Value::Array(list) => {
            let part = |value: &Value| match value {
                Value::String(text) => Ok(PromptPart::Text(text.clone())),
                value => match token_id(value) {
                    Some(id) => Ok(PromptPart::Ids(vec![id])),
                    None => Err(invalid("`prompt` must be a text, or a list of texts and tokens.")),
                },
            };
            list.iter().map(part).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Err(invalid("`prompt` must be a text, or a list of texts and tokens."))
        }
    }
}

fn media_prompt(object: &Map<String, Value>) -> Result<Vec<PromptPart>> {
    let fields = RequestFields(object);
    if fields.get("multimodal_data").is_some() {
        return Err(invalid("`multimodal_data`: image input is not supported: the model reads only text."));
    }
    match fields.text("prompt_string")? {
        Some(text) => Ok(vec![PromptPart::Text(text.to_owned())]),
        None => Err(invalid("`prompt.prompt_string` is required.")),
    }
}

fn sampling(fields: RequestFields) -> Result<SamplingArgs> {
    // A negative seed means a random one.
    let seed = fields.integer("seed")?.and_then(|seed| u64::try_from(seed).ok());
    Ok(SamplingArgs {
        temperature: fields.number("temperature")?.map(|it| it.max(0.0)),
        // Not positive: no limit.
        top_k: fields.integer("top_k")?.map(|k| u32::try_from(k).unwrap_or(0)),
        top_p: fields.number_within("top_p", 0.0, 1.0)?,
        min_p: fields.number_within("min_p", 0.0, 1.0)?,
        repeat_penalty: fields.number("repeat_penalty")?,
        presence_penalty: fields.number("presence_penalty")?,
        frequency_penalty: fields.number("frequency_penalty")?,
        samplers: request_fields::samplers(fields.0)?,
        seed,
        ..SamplingArgs::default()
    })
}

/// The first of the names that is given; the others are checked too. -1 stands for no limit but the context.
fn max_tokens(fields: RequestFields) -> Result<Option<usize>> {
    let mut first = None;
    for name in ["n_predict", "max_completion_tokens", "max_tokens"] {
        let limit = match fields.integer(name)? {
            None => continue,
            Some(-1) => None,
            Some(n) => {
                let wrong = || invalid(format!("`{name}` must be from 0, or -1 for no limit."));
                Some(usize::try_from(n).map_err(|_| wrong())?)
            }
        };
        first.get_or_insert(limit);
    }
    Ok(first.flatten())
}

fn constraint(fields: RequestFields) -> Result<Option<Constraint>> {
    let grammar = fields.text("grammar")?.filter(|grammar| !grammar.is_empty());
    match fields.get("json_schema") {
        None => grammar.map(app::gbnf_constraint).transpose(),
        Some(_) if grammar.is_some() => {
            Err(invalid("`grammar` and `json_schema` can't be used together: leave one out."))
        }
        Some(schema @ Value::Object(_)) => Ok(Some(Constraint::JsonSchema(schema.clone()))),
        Some(_) => Err(invalid("`json_schema` must be an object.")),
    }
}

/// A list of pairs, or an object. `false` bans a token.
fn biases(value: Option<&Value>) -> Result<Vec<(BiasTarget, f32)>> {
    let wrong = || invalid("`logit_bias` must be a list of [token or text, bias], or an object.");
    let bias = |value: &Value| match value {
        Value::Bool(false) => Ok(BANNED),
        value => value.as_f64().map(nearest_f32).ok_or_else(wrong),
    };
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            let pair = |value: &Value| match value.as_array().map(Vec::as_slice) {
                Some([Value::String(text), value]) => Ok((BiasTarget::Text(text.clone()), bias(value)?)),
                Some([token, value]) => match token_id(token) {
                    Some(id) => Ok((BiasTarget::Token(id), bias(value)?)),
                    None => Err(wrong()),
                },
                Some(_) | None => Err(wrong()),
            };
            list.iter().map(pair).collect()
        }
        Some(Value::Object(object)) => {
            let pair = |(key, value): (&String, &Value)| {
                let target = key.parse().map_or_else(|_| BiasTarget::Text(key.clone()), BiasTarget::Token);
                Ok((target, bias(value)?))
            };
            object.iter().map(pair).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// The biases of tokens, once it is known which tokens the texts have.
pub fn token_biases(target_tokens: impl Iterator<Item = (Vec<u32>, f32)>) -> Vec<LogitBias> {
    let of_target =
        |(tokens, bias): (Vec<u32>, f32)| tokens.into_iter().map(move |token| LogitBias { token, bias });
    target_tokens.flat_map(of_target).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(body: Value) -> Result<LlamaCppRequest> {
        LlamaCppRequest::parse(body.to_string().as_bytes())
    }

    #[test]
    fn prompts_come_in_many_forms() {
        let text = |text: &str| PromptPart::Text(text.into());
        let id = |id: u32| PromptPart::Ids(vec![id]);
        for (prompt, expected, is_list) in [
            (json!("a"), vec![vec![text("a")]], false),
            (json!([1, 2]), vec![vec![id(1), id(2)]], false),
            (json!([1, "a", 2]), vec![vec![id(1), text("a"), id(2)]], false),
            (json!(["a", [1, "b"]]), vec![vec![text("a")], vec![id(1), text("b")]], true),
            (json!([[1], {"prompt_string": "a"}]), vec![vec![id(1)], vec![text("a")]], true),
            (json!(["a"]), vec![vec![text("a")]], false),
            (json!({"prompt_string": "a"}), vec![vec![text("a")]], false),
        ] {
            let request = parse(json!({"prompt": prompt})).unwrap();
            assert_eq!((request.prompts, request.is_list), (expected, is_list), "{prompt}");
        }
    }

    #[test]
    fn fields_reach_the_model() {
        let request = parse(json!({
            "prompt": "a", "n_predict": 5, "temperature": -1, "top_k": -1, "seed": -1, "stop": ["x"], "n_probs": 3,
            "return_tokens": true, "response_fields": ["content"], "json_schema": {"type": "object"},
            "logit_bias": [[5, -1.5], [" the ", false]], "cache_prompt": false, "id_slot": 3,
        }))
        .unwrap();
        let args = &request.args;
        let report = ProbabilityReport::before_sampling(3);
        assert_eq!((args.max_tokens, args.logprobs, args.stop.len()), (Some(5), Some(report), 1));
        let drawn = json!({"prompt": "a", "n_probs": 3, "post_sampling_probs": true});
        let report = ProbabilityReport { stage: ProbabilityStage::AfterSampling, ..report };
        assert_eq!(parse(drawn).unwrap().args.logprobs, Some(report));
        assert_eq!(
            (args.sampling.temperature, args.sampling.top_k, args.sampling.seed),
            (Some(0.0), Some(0), None)
        );
        assert_eq!(args.constraint, Some(Constraint::JsonSchema(json!({"type": "object"}))));
        let biases = [(BiasTarget::Token(5), -1.5), (BiasTarget::Text(" the ".into()), BANNED)];
        assert_eq!(request.biases, biases);
        assert_eq!(request.format.fields, ["content"]);
        let huge = parse(json!({"prompt": "a", "logit_bias": [[5, 3.8e199]]})).unwrap().biases;
        assert_eq!(huge, [(BiasTarget::Token(5), f32::MAX)], "JSON has no infinity");
        let object = parse(json!({"prompt": "a", "logit_bias": {"7": 2, "x": -100}})).unwrap().biases;
        assert_eq!(object, [(BiasTarget::Token(7), 2.0), (BiasTarget::Text("x".into()), -100.0)]);
        assert_eq!(parse(json!({"prompt": "a", "n_predict": -1})).unwrap().args.max_tokens, None);
        let grammar = parse(json!({"prompt": "a", "grammar": "root ::= \"a\""})).unwrap().args.constraint;
        assert!(matches!(grammar, Some(Constraint::Lark(lark)) if lark.starts_with("start: ")));
    }

    #[test]
    fn what_is_refused_names_its_field() {
        for (extra, field) in [
            (json!({"prompt": null}), "prompt"),
            (json!({"prompt": "a", "n_predict": 1, "max_tokens": -2}), "max_tokens"),
            (json!({"prompt": true}), "prompt"),
            (json!({"prompt": [1, -2]}), "prompt"),
            (json!({"prompt": {"prompt_string": "x", "multimodal_data": "y"}}), "multimodal_data"),
            (json!({"prompt": ["a", "b"], "stream": true}), "stream"),
            (json!({"n_predict": -2}), "n_predict"),
            (json!({"n_probs": 101}), "n_probs"),
            (json!({"grammar": "root ::= b"}), "line 1, column 10"),
            (json!({"grammar": "root ::= \"a\"", "json_schema": {}}), "grammar"),
            (json!({"logit_bias": [[1]]}), "logit_bias"),
            (json!({"logit_bias": 7}), "logit_bias"),
            (json!({"n_cmpl": 2}), "n_cmpl"),
        ] {
            let mut body = json!({"prompt": "a"});
            for (name, value) in extra.as_object().unwrap() {
                body[name] = value.clone();
            }
            let error = parse(body).err().unwrap_or_else(|| panic!("{extra} was taken"));
            assert!(error.message().contains(field), "{extra}: {error}");
        }
    }
}
