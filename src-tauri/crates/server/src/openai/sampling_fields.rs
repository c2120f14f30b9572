//! The fields that say how tokens are chosen, as chat completions, completions and responses share them.

use app::SamplingArgs;
use contract::LogitBias;
use serde_json::Value;

use super::fields::{Fields, Result, unsupported};
use crate::fault::OpenAiFault;
use crate::{request_fields, whole_number};

/// Largest number of stop texts; OpenAI allows 4.
const MAX_STOPS: usize = 16;

/// Largest number of biased tokens; OpenAI allows 300.
const MAX_LOGIT_BIASES: usize = 1024;

/// Largest number of choices per prompt, as in OpenAI's API.
const MAX_CHOICES: u64 = 128;

/// Largest number of alternatives per token, as in OpenAI's API.
pub const MAX_TOP_LOGPROBS: u64 = 20;

/// Temperature, truncation, penalties, biases and seed.
pub fn sampling(fields: Fields<'_>) -> Result<SamplingArgs> {
    // Some clients send a negative seed; map it to a fixed number.
    let seed = fields.typed("seed", "a whole number", |value| {
        whole_number::unsigned(value).or_else(|| whole_number::signed(value).map(i64::cast_unsigned))
    })?;
    Ok(SamplingArgs {
        temperature: fields.number_within("temperature", 0.0, 2.0)?,
        top_k: fields.count("top_k")?.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
        top_p: fields.number_within("top_p", 0.0, 1.0)?,
        min_p: fields.number_within("min_p", 0.0, 1.0)?,
        repeat_penalty: fields.number_within("repeat_penalty", 0.5, 2.0)?,
        seed,
        presence_penalty: fields.number_within("presence_penalty", -2.0, 2.0)?,
        frequency_penalty: fields.number_within("frequency_penalty", -2.0, 2.0)?,
        logit_bias: logit_bias(fields)?,
        samplers: request_fields::samplers(fields.0)
            .map_err(|error| OpenAiFault::invalid(None, error.message().to_owned()))?,
    })
}

/// A map of token ids to numbers from -100 to 100. A bias of 0 changes nothing, whatever its key.
fn logit_bias(fields: Fields<'_>) -> Result<Option<Vec<LogitBias>>> {
    let Some(map) = fields.typed("logit_bias", "an object of token ids and numbers", Value::as_object)?
    else {
        return Ok(None);
    };
    if map.len() > MAX_LOGIT_BIASES {
        let message = format!("`logit_bias` has more than {MAX_LOGIT_BIASES} tokens.");
        return Err(OpenAiFault::invalid("logit_bias", message));
    }
    let mut biases = Vec::with_capacity(map.len());
    for (key, value) in map {
        let bias = value.as_f64().filter(|bias| (-100.0..=100.0).contains(bias)).ok_or_else(|| {
            OpenAiFault::invalid("logit_bias", format!("`logit_bias` of \"{key}\" must be from -100 to 100."))
        })?;
        if bias == 0.0 {
            continue;
        }
        let token = key.parse().map_err(|_| {
            OpenAiFault::invalid("logit_bias", format!("`logit_bias` has the key \"{key}\", not a token id."))
        })?;
        biases.push(LogitBias { token, bias: bias as f32 });
    }
    Ok(Some(biases))
}

/// The seed of a choice: choices of one request differ.
pub fn seeded(sampling: &SamplingArgs, choice: usize) -> SamplingArgs {
    let seed = sampling.seed.map(|seed| seed.wrapping_add(choice as u64));
    SamplingArgs { seed, ..sampling.clone() }
}

/// Number of choices.
pub fn choices(fields: Fields<'_>) -> Result<usize> {
    let n = fields.count_within("n", 1, MAX_CHOICES)?;
    Ok(n.map_or(1, |n| usize::try_from(n).unwrap_or(1)))
}

/// The first of `names` that is given. The others are checked too.
pub fn max_tokens(fields: Fields<'_>, names: &[&'static str]) -> Result<Option<usize>> {
    let mut first = None;
    for &name in names.iter().filter(|name| fields.get(name).is_some()) {
        // llama.cpp's clients send -1 for no limit.
        let limit = match fields.get(name).and_then(whole_number::signed) {
            Some(-1) => None,
            _ => fields.count(name)?.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        };
        first.get_or_insert(limit);
    }
    Ok(first.flatten())
}

/// Texts that end the answer.
pub fn stop(fields: Fields<'_>) -> Result<Vec<String>> {
    let fault = || {
        OpenAiFault::invalid(
            "stop",
            format!("`stop` must be a string or a list of at most {MAX_STOPS} strings."),
        )
    };
    match fields.get("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(all)) if all.len() <= MAX_STOPS => {
            all.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(fault)).collect()
        }
        Some(_) => Err(fault()),
    }
}

/// Whether a stream ends with the usage.
pub fn include_usage(fields: Fields<'_>) -> Result<bool> {
    match fields.object("stream_options")? {
        Some(options) => options.is_set("include_usage"),
        None => Ok(false),
    }
}

/// Rejects output that isn't text.
pub fn refuse_modalities(fields: Fields<'_>) -> Result<()> {
    let has_other = |value: &Value| value.as_array().is_none_or(|all| all.iter().any(|one| *one != "text"));
    if fields.get("modalities").is_some_and(has_other) {
        return Err(unsupported(
            "modalities",
            "`modalities` can only be [\"text\"]: models answer with text.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn biases_and_seeds() {
        let value = json!({ "logit_bias": { "5": -100, "foo": 0, "7": 1.5 }, "seed": -1, "n": 3 });
        let fields = Fields(value.as_object().unwrap());
        let sampling = sampling(fields).unwrap();
        let biases = [LogitBias { token: 5, bias: -100.0 }, LogitBias { token: 7, bias: 1.5 }];
        assert_eq!(sampling.logit_bias.as_deref(), Some(&biases[..]));
        assert_eq!((seeded(&sampling, 0).seed, seeded(&sampling, 1).seed), (Some(u64::MAX), Some(0)));
        assert_eq!(choices(fields).unwrap(), 3);
        for wrong in
            [json!({ "foo": 1 }), json!({ "5": 101 }), json!({ "5": "x" }), json!([]), json!({ "-1": 1 })]
        {
            let value = json!({ "logit_bias": wrong });
            assert!(super::sampling(Fields(value.as_object().unwrap())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_of_the_answer() {
        let read = |value: Value| max_tokens(Fields(value.as_object().unwrap()), &["new", "old"]);
        assert_eq!(read(json!({ "old": 3 })).unwrap(), Some(3));
        assert_eq!(read(json!({ "old": 3, "new": 0 })).unwrap(), Some(0));
        assert_eq!(read(json!({ "old": -1 })).unwrap(), None);
        assert_eq!(read(json!({ "old": 3, "new": -1 })).unwrap(), None);
        assert_eq!(read(json!({ "new": 1e300 })).unwrap(), Some(usize::MAX));
        assert!(read(json!({ "old": -2 })).is_err());
        assert!(read(json!({ "old": -2, "new": 1 })).is_err());
    }
}
