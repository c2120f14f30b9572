//! Ollama's `/api/embed` and the older `/api/embeddings`.

use app::App;
use contract::Result;
use contract::protocol::EmbedAs;
use io::{Clock, RealClock};
use serde_json::{Value, json};

use super::request::model;
use crate::embedding_vector::shorten;
use crate::request_fields::{RequestFields, invalid, object};

/// Largest number of texts per request.
const MAX_INPUTS: usize = 2048;

/// `/api/embed`: a vector of length 1 for each text.
pub fn embed(app: &App, body: &[u8]) -> Result<Value> {
    let object = object(body)?;
    let fields = RequestFields(&object);
    let dimensions = fields.count("dimensions")?.filter(|n| *n > 0);
    let texts = fields.texts("input", MAX_INPUTS)?;
    let clock = RealClock::new();
    let id = app.model_for_request(Some(&model(fields)?))?.id;
    if texts.is_empty() {
        return Ok(json!({ "model": id, "embeddings": [] }));
    }
    let mut embedded = app.embed(&id, EmbedAs::Text, &texts)?;
    if let Some(n) = dimensions {
        embedded.vectors.iter_mut().try_for_each(|vector| shorten(vector, n)).map_err(invalid)?;
    }
    let took = u64::try_from(clock.monotonic().as_nanos()).unwrap_or(u64::MAX);
    Ok(json!({
        "model": id, "embeddings": embedded.vectors, "total_duration": took, "load_duration": 0,
        "prompt_eval_count": embedded.tokens,
    }))
}

/// `/api/embeddings`: the vector of one text.
pub fn embeddings(app: &App, body: &[u8]) -> Result<Value> {
    let object = object(body)?;
    let fields = RequestFields(&object);
    let Some(text) = fields.text("prompt")? else { return Err(invalid("`prompt` is required.")) };
    let id = app.model_for_request(Some(&model(fields)?))?.id;
    if text.is_empty() {
        return Ok(json!({ "embedding": [] }));
    }
    let embedded = app.embed(&id, EmbedAs::Text, &[text.to_owned()])?;
    Ok(json!({ "embedding": embedded.vectors.first() }))
}
