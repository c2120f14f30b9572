//! Fields of a request that a server refuses. It is asked again without them, and they are left out
//! from then on.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::server_words::RefusedRequest;

/// Fields that an answer can do without. Where a refusal names several, the first of them goes:
/// of two that exclude each other the more usual one stays.
const OPTIONAL: [&str; 28] = [
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "top_k",
    "min_p",
    "repeat_penalty",
    "repetition_penalty",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "xtc_probability",
    "xtc_threshold",
    "ignore_eos",
    "top_p",
    "stream_options",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "reasoning_budget",
    "reasoning_effort",
    "seed",
    "stop",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "include_usage",
];

/// Most fields that one request is asked again without.
pub const MAX_OMISSIONS: usize = OPTIONAL.len();

/// The two names of the longest answer. A server may know only one of them.
const LENGTH_FIELDS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// The fields that a server has refused so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OmittedFields(BTreeSet<&'static str>);

impl OmittedFields {
    /// Takes the refused fields out of a request.
    pub fn apply(&self, body: &mut Map<String, Value>) {
        for field in &self.0 {
            let Some(value) = body.shift_remove(*field) else { continue };
            let other = LENGTH_FIELDS.into_iter().find(|it| LENGTH_FIELDS.contains(field) && it != field);
            if let Some(other) = other.filter(|other| !self.0.contains(other)) {
                body.insert(other.into(), value);
            }
        }
    }

    /// Adds the field that a refusal of `body` names. None: it names none that can be left out.
    pub fn learn(&mut self, refused: &RefusedRequest, body: &Map<String, Value>) -> Option<&'static str> {
        let words = refused.words.to_lowercase();
        let is_named = |field: &&&str| {
            let apart = refused.field.as_deref().map(|it| it.split(['.', '[']).next().unwrap_or(it));
            apart == Some(**field) || names(&words, field)
        };
        let candidates = OPTIONAL.iter().filter(|field| body.contains_key(**field));
        let apart = candidates.clone().find(|field| refused.field.as_deref() == Some(**field));
        let found = apart.or_else(|| candidates.clone().find(is_named));
        let found = found.or_else(|| {
            let is_usage = names(&words, "include_usage") && body.contains_key("stream_options");
            OPTIONAL.iter().find(|field| is_usage && **field == "stream_options")
        })?;
        // A length that is too long is the user's to change; a name that is unknown is not.
        let is_length = LENGTH_FIELDS.contains(found);
        let is_unknown =
            ["max_completion_tokens", "support", "unknown", "unrecognized", "permitted", "unexpected"]
                .iter()
                .any(|word| words.contains(word));
        if is_length && !is_unknown {
            return None;
        }
        self.0.insert(found).then_some(found)
    }
}

/// Whether a text names a field: as a separate word, and a word of plain language only as a name.
fn names(words: &str, field: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    words.match_indices(field).any(|(at, _)| {
        let (before, after) = (words[..at].chars().next_back(), words[at + field.len()..].chars().next());
        let is_word = !before.is_some_and(is_part) && !after.is_some_and(is_part);
        let is_quoted =
            before.is_some_and(|c| "'\"`.:[".contains(c)) || after.is_some_and(|c| "'\"`:=".contains(c));
        is_word && (is_quoted || field != "stop")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(words: &str, field: Option<&str>, expected: Option<&str>) {
        let body = json!({
            "model": "m", "messages": [], "temperature": 0.8, "top_p": 0.9, "max_tokens": 5, "seed": 1,
            "stop": ["x"], "stream_options": { "include_usage": true },
        });
        let refused = RefusedRequest { words: words.into(), field: field.map(Into::into) };
        let learned = OmittedFields::default().learn(&refused, body.as_object().unwrap());
        assert_eq!(learned, expected, "{words}");
    }

    #[test]
    fn fields_are_found_in_the_words_of_servers() {
        let value = "Unsupported value: 'temperature' does not support 0.8 with this model. Only the default (1) value is supported.";
        check(value, None, Some("temperature"));
        check(
            "Unsupported parameter: 'top_p' is not supported with this model.",
            Some("top_p"),
            Some("top_p"),
        );
        check(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            None,
            Some("top_p"),
        );
        check("no", Some("seed"), Some("seed"));
        check("stream_options.include_usage: Extra inputs are not permitted", None, Some("stream_options"));
        check("Unknown field include_usage", None, Some("stream_options"));
        check("Unrecognized request argument supplied: stop", None, None);
        check("property 'stop' is unsupported", None, Some("stop"));
        check(
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            Some("max_tokens"),
            Some("max_tokens"),
        );
        check("max_tokens is too large: 5000", Some("max_tokens"), None);
        check("This model does not take top_k", None, None);
        check("bad", None, None);
        check("the model stopped", None, None);
    }

    #[test]
    fn refused_fields_are_left_out_or_named_otherwise() {
        let mut omitted = OmittedFields::default();
        let asked = json!({ "top_p": 0.9, "max_tokens": 5, "x": 1 });
        let mut body = asked.as_object().unwrap().clone();
        let refused = |words: &str| RefusedRequest { words: words.into(), field: None };
        assert_eq!(omitted.learn(&refused("unknown: top_p"), &body), Some("top_p"));
        assert_eq!(omitted.learn(&refused("unknown: max_tokens"), &body), Some("max_tokens"));
        omitted.apply(&mut body);
        assert_eq!(Value::Object(body.clone()), json!({ "x": 1, "max_completion_tokens": 5 }));
        assert_eq!(
            omitted.learn(&refused("unknown: max_completion_tokens"), &body),
            Some("max_completion_tokens")
        );
        let mut body = asked.as_object().unwrap().clone();
        omitted.apply(&mut body);
        assert_eq!(Value::Object(body), json!({ "x": 1 }));
        assert_eq!(
            omitted.learn(&refused("unknown: top_p"), asked.as_object().unwrap()),
            None,
            "once is enough"
        );
    }
}
