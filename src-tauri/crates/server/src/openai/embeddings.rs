//! `POST /v1/embeddings`: embedding vectors of texts.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use contract::protocol::{EmbedAs, EmbeddingBatch};
use serde_json::{Map, Value, json};

use super::blocking;
use crate::RouteState;
use crate::body::read;
use crate::fault::{OpenAiFault, json_response};
use crate::json_body;

/// Largest number of texts per request, as in OpenAI's API.
const MAX_INPUTS: usize = 2048;

type Result<T> = std::result::Result<T, OpenAiFault>;

/// Encoding of the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Float,
    /// Base64 of little-endian float32 values.
    Base64,
}

#[derive(Debug)]
struct EmbeddingsRequest {
    /// Library id.
    model: Option<String>,
    texts: Vec<String>,
    encoding: Encoding,
}

pub async fn embeddings(State(shared): State<RouteState>, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match embedded(shared, &body).await {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(fault) => fault.into_response(),
    }
}

async fn embedded(shared: RouteState, body: &[u8]) -> Result<Value> {
    let EmbeddingsRequest { model, texts, encoding } = EmbeddingsRequest::parse(body)?;
    let (model, embedded) = blocking(move || {
        // Library ids only: a request can't open arbitrary files.
        let model = match model {
            Some(model) => shared.app.model_served(&model)?.id,
            None => shared.app.embedding_model_served()?.id,
        };
        let embedded = shared.app.embed(&model, EmbedAs::Text, &texts)?;
        Ok((model, embedded))
    })
    .await
    .map_err(of_input)?;
    Ok(answer(&model, &embedded, encoding))
}

/// Attributes a length error to `input` instead of `messages`.
fn of_input(fault: OpenAiFault) -> OpenAiFault {
    match fault.param.as_deref() {
        Some("messages") => OpenAiFault { param: Some("input".into()), ..fault },
        Some(_) | None => fault,
    }
}

impl EmbeddingsRequest {
    fn parse(body: &[u8]) -> Result<Self> {
        let value = json_body::parse(body)
            .map_err(|error| OpenAiFault::invalid(None, format!("The body is not JSON: {error}.")))?;
        let Value::Object(fields) = value else {
            return Err(OpenAiFault::invalid(None, "The body must be a JSON object."));
        };
        let get = |name: &str| fields.get(name).filter(|value| !value.is_null());
        if get("dimensions").is_some() {
            return Err(OpenAiFault {
                code: Some("unsupported_parameter".into()),
                ..OpenAiFault::invalid(
                    "dimensions",
                    "`dimensions` is not supported. Remove it from the request.",
                )
            });
        }
        let model = match get("model") {
            None => None,
            Some(Value::String(model)) => Some(model.clone()),
            Some(_) => return Err(OpenAiFault::invalid("model", "`model` must be a string.")),
        };
        let encoding = match get("encoding_format").map(Value::as_str) {
            None | Some(Some("float")) => Encoding::Float,
            Some(Some("base64")) => Encoding::Base64,
            Some(_) => {
                let message = "`encoding_format` must be \"float\" or \"base64\".";
                return Err(OpenAiFault::invalid("encoding_format", message));
            }
        };
        Ok(Self { model, texts: texts(&fields)?, encoding })
    }
}

/// Parses one text or a list of texts.
fn texts(fields: &Map<String, Value>) -> Result<Vec<String>> {
    let wrong = || OpenAiFault::invalid("input", "`input` must be a text or a list of texts.");
    let texts: Vec<String> = match fields.get("input") {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => {
            let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
            list.iter().map(text).collect::<Result<_>>()?
        }
        Some(_) | None => return Err(wrong()),
    };
    if texts.is_empty() || texts.len() > MAX_INPUTS {
        let message = format!("`input` has {} texts; 1 to {MAX_INPUTS} are allowed.", texts.len());
        return Err(OpenAiFault::invalid("input", message));
    }
    match texts.iter().position(String::is_empty) {
        Some(at) => Err(OpenAiFault::invalid("input", format!("Text {at} of `input` is empty."))),
        None => Ok(texts),
    }
}

fn answer(model: &str, embedded: &EmbeddingBatch, encoding: Encoding) -> Value {
    let written = |vector: &[f32]| match encoding {
        Encoding::Float => json!(vector),
        Encoding::Base64 => {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            json!(base64(&bytes))
        }
    };
    let vectors = embedded.vectors.iter().enumerate();
    let data: Vec<Value> = vectors
        .map(|(index, vector)| json!({ "object": "embedding", "index": index, "embedding": written(vector) }))
        .collect();
    let usage = json!({ "prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens });
    json!({ "object": "list", "data": data, "model": model, "usage": usage })
}

/// Base64 with padding, which clients expect.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * n) & 63) as usize];
            text.push(if n > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_others_write_it() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"fooba", "Zm9vYmE="),
            (&[0, 255, 255], "AP//"),
        ] {
            assert_eq!(base64(bytes), expected);
        }
    }

    #[test]
    fn requests_are_read_field_by_field() {
        let parse = |body: &str| EmbeddingsRequest::parse(body.as_bytes());
        let request = parse(r#"{"input":"a","model":"m","encoding_format":"base64","user":"u"}"#).unwrap();
        assert_eq!((request.texts, request.model.as_deref()), (vec!["a".to_owned()], Some("m")));
        assert_eq!(request.encoding, Encoding::Base64);
        assert_eq!(parse(r#"{"input":["a","b"],"model":null}"#).unwrap().texts.len(), 2);
        for (body, param) in [
            ("[]", None),
            ("{", None),
            ("{}", Some("input")),
            (r#"{"input":[]}"#, Some("input")),
            (r#"{"input":""}"#, Some("input")),
            (r#"{"input":[1,2]}"#, Some("input")),
            (r#"{"input":"a","model":7}"#, Some("model")),
            (r#"{"input":"a","encoding_format":"hex"}"#, Some("encoding_format")),
            (r#"{"input":"a","dimensions":64}"#, Some("dimensions")),
        ] {
            assert_eq!(parse(body).unwrap_err().param.as_deref(), param, "{body}");
        }
    }
}
