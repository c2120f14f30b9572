//! `POST /v1/embeddings`: embedding vectors of texts.

use app::App;
use axum::body::Body;
use axum::response::Response;
use contract::protocol::{EmbedAs, EmbedInput, EmbeddingBatch, PromptPart, SpecialTokens};
use serde_json::{Value, json};

use super::completions::ids;
use super::fields::{Fields, Result, object};
use super::{answered, blocking, ok};
use crate::base64;
use crate::embedding_vector::shorten;
use crate::fault::{CONTEXT_FULL_TYPE, OpenAiFault};
use crate::guard::CallerState;
use crate::whole_number::token_id;

/// Largest number of texts per request, as in OpenAI's API.
const MAX_INPUTS: usize = 2048;

/// Encoding of the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VectorEncoding {
    Float,
    /// Base64 of little-endian float32 values.
    Base64,
}

#[derive(Debug)]
pub struct EmbeddingsRequest {
    /// Library id.
    model: Option<String>,
    inputs: Vec<EmbeddedText>,
    encoding: VectorEncoding,
    /// Numbers of a vector that are wanted; `None`: all.
    dimensions: Option<usize>,
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EmbeddedText {
    Whole(EmbedInput),
    /// Texts and tokens, as llama.cpp takes them.
    Mixed(Vec<PromptPart>),
}

/// Handles `POST /v1/embeddings`.
pub async fn embeddings(CallerState(shared): CallerState, body: Body) -> Response {
    answered(body, |body| async move {
        let EmbeddingsRequest { model, inputs, encoding, dimensions } = EmbeddingsRequest::parse(&body)?;
        let (model, mut embedded) = blocking(move || {
            // Library ids only: a request can't open arbitrary files.
            let model = shared.app.embedding_model_for_request(model.as_deref())?.id;
            let inputs = tokenized(&shared.app, &model, inputs)?;
            let embedded = shared.app.embed_inputs(&model, EmbedAs::Text, &inputs)?;
            Ok((model, embedded))
        })
        .await
        .map_err(about_input)?;
        if let Some(n) = dimensions {
            embedded
                .vectors
                .iter_mut()
                .try_for_each(|vector| shorten(vector, n))
                .map_err(about_dimensions)?;
        }
        Ok(ok(&answer(&model, &embedded, encoding)))
    })
    .await
}

fn tokenized(app: &App, model: &str, inputs: Vec<EmbeddedText>) -> contract::Result<Vec<EmbedInput>> {
    let one = |input| match input {
        EmbeddedText::Whole(input) => Ok(input),
        EmbeddedText::Mixed(parts) => {
            let tokens = app.tokenize(model, parts, SpecialTokens::Without, false)?;
            Ok(EmbedInput::Ids(tokens.into_iter().map(|token| token.id).collect()))
        }
    };
    inputs.into_iter().map(one).collect()
}

fn about_dimensions(message: String) -> OpenAiFault {
    OpenAiFault::invalid("dimensions", message)
}

/// Attributes a length error to `input` instead of `messages`: there is no conversation to shorten.
fn about_input(fault: OpenAiFault) -> OpenAiFault {
    match (fault.param.as_deref(), fault.code.as_deref()) {
        (Some("messages"), _) if fault.kind == CONTEXT_FULL_TYPE => {
            // "N tokens in the context and M more exceed its L tokens."
            let numbers = fault.message.split_inclusive('.').next().unwrap_or_default();
            let message = format!("An input is too large to process: {numbers} Shorten it or split it.");
            OpenAiFault { param: Some("input".into()), message, ..fault }
        }
        (Some("messages"), _) | (None, Some("request.empty" | "request.token_unknown")) => {
            OpenAiFault { param: Some("input".into()), ..fault }
        }
        (Some(_) | None, _) => fault,
    }
}

impl EmbeddingsRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = Fields(&object);
        let encoding = match fields.get("encoding_format").map(Value::as_str) {
            None | Some(Some("float")) => VectorEncoding::Float,
            Some(Some("base64")) => VectorEncoding::Base64,
            Some(_) => {
                let message = "`encoding_format` must be \"float\" or \"base64\".";
                return Err(OpenAiFault::invalid("encoding_format", message));
            }
        };
        let dimensions = fields.count_within("dimensions", 1, u64::from(u32::MAX))?;
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            inputs: inputs(fields)?,
            encoding,
            dimensions: dimensions.and_then(|n| usize::try_from(n).ok()),
        })
    }
}

/// Parses one text or a list of texts; a list of numbers is the tokens of one.
fn inputs(fields: Fields<'_>) -> Result<Vec<EmbeddedText>> {
    let wrong =
        || OpenAiFault::invalid("input", "`input` must be a text, a list of token ids, or a list of either.");
    let inputs = match fields.get("input") {
        Some(Value::Array(list)) if list.first().is_some_and(Value::is_number) => {
            vec![tokens(list).ok_or_else(wrong)?]
        }
        Some(Value::Array(list)) => {
            list.iter().map(|one| text(one).ok_or_else(wrong)).collect::<Result<_>>()?
        }
        Some(value) => vec![text(value).ok_or_else(wrong)?],
        None => return Err(wrong()),
    };
    if inputs.is_empty() || inputs.len() > MAX_INPUTS {
        let message = format!("`input` has {} texts; 1 to {MAX_INPUTS} are allowed.", inputs.len());
        return Err(OpenAiFault::invalid("input", message));
    }
    Ok(inputs)
}

/// One text: itself, its tokens, or an object with it as llama.cpp takes them.
fn text(value: &Value) -> Option<EmbeddedText> {
    let whole = |text: &str| EmbeddedText::Whole(EmbedInput::Text(text.into()));
    match value {
        Value::String(text) => Some(whole(text)),
        Value::Array(list) => tokens(list),
        Value::Object(fields) => match fields.get("prompt_string") {
            Some(text) => text.as_str().map(whole),
            None => {
                let parts = fields.get("content")?.as_array()?;
                let is_text = |part: &Value| part["type"] == "text" && part["text"].is_string();
                let texts = || parts.iter().filter_map(|part| part["text"].as_str());
                parts.iter().all(is_text).then(|| whole(&texts().collect::<String>()))
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn tokens(list: &[Value]) -> Option<EmbeddedText> {
    if let Some(ids) = ids(list) {
        return Some(EmbeddedText::Whole(EmbedInput::Ids(ids)));
    }
    let part = |value: &Value| match value {
        Value::String(text) => Some(PromptPart::Text(text.clone())),
        value => Some(PromptPart::Ids(vec![token_id(value)?])),
    };
    list.iter().map(part).collect::<Option<_>>().map(EmbeddedText::Mixed)
}

fn answer(model: &str, embedded: &EmbeddingBatch, encoding: VectorEncoding) -> Value {
    let written = |vector: &[f32]| match encoding {
        VectorEncoding::Float => json!(vector),
        VectorEncoding::Base64 => {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            json!(base64::encode(&bytes))
        }
    };
    let vectors = embedded.vectors.iter().enumerate();
    let data: Vec<Value> = vectors
        .map(|(index, vector)| json!({ "object": "embedding", "index": index, "embedding": written(vector) }))
        .collect();
    let usage = json!({ "prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens });
    json!({ "object": "list", "data": data, "model": model, "usage": usage })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<EmbeddingsRequest> {
        EmbeddingsRequest::parse(body.as_bytes())
    }

    #[test]
    fn an_input_that_is_too_long_is_no_conversation() {
        let error = contract::Error::input(
            "request.context_full",
            "0 tokens in the context and 80 more exceed its 64 tokens.",
            "Start a new conversation.",
        );
        let fault = about_input(error.into());
        assert_eq!((fault.param.as_deref(), fault.kind), (Some("input"), CONTEXT_FULL_TYPE));
        assert_eq!(
            fault.message,
            "An input is too large to process: 0 tokens in the context and 80 more exceed its 64 tokens. \
             Shorten it or split it."
        );
    }

    #[test]
    fn requests_are_read_field_by_field() {
        let request =
            parse(r#"{"input":"a","model":"m","encoding_format":"base64","user":"u","dimensions":64}"#)
                .unwrap();
        assert_eq!(
            (request.inputs.len(), request.model.as_deref(), request.dimensions),
            (1, Some("m"), Some(64))
        );
        assert_eq!(request.encoding, VectorEncoding::Base64);
        for (body, param) in [
            ("[]", None),
            ("{", None),
            ("{}", Some("input")),
            (r#"{"input":[]}"#, Some("input")),
            (r#"{"input":[-1]}"#, Some("input")),
            (r#"{"input":{"content":"a"}}"#, Some("input")),
            (r#"{"input":{"content":[{"type":"image_url"}]}}"#, Some("input")),
            (r#"{"input":"a","model":7}"#, Some("model")),
            (r#"{"input":"a","encoding_format":"hex"}"#, Some("encoding_format")),
            (r#"{"input":"a","dimensions":0}"#, Some("dimensions")),
        ] {
            assert_eq!(parse(body).unwrap_err().param.as_deref(), param, "{body}");
        }
    }

    #[test]
    fn texts_have_several_forms() {
        let text = |text: &str| EmbeddedText::Whole(EmbedInput::Text(text.into()));
        let ids = |ids: &[u32]| EmbeddedText::Whole(EmbedInput::Ids(ids.to_vec()));
        let mixed = EmbeddedText::Mixed(vec![PromptPart::Ids(vec![1]), PromptPart::Text("a".into())]);
        for (input, expected) in [
            (json!("a"), vec![text("a")]),
            (json!(["a", [1, 2]]), vec![text("a"), ids(&[1, 2])]),
            (json!([1, 2]), vec![ids(&[1, 2])]),
            (json!([[1], [2]]), vec![ids(&[1]), ids(&[2])]),
            (json!([1, "a"]), vec![mixed.clone()]),
            (json!([[1, "a"], { "prompt_string": "b" }]), vec![mixed, text("b")]),
            (
                json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }),
                vec![text("ab")],
            ),
        ] {
            assert_eq!(parse(&json!({ "input": input }).to_string()).unwrap().inputs, expected, "{input}");
        }
    }
}
