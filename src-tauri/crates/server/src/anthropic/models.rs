//! `/v1/models` in Anthropic's form, for clients that send the header `anthropic-version`.

use std::collections::BTreeMap;

use app::ServedModel;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use contract::Result;
use serde_json::{Value, json};

use super::fault::AnthropicFault;
use crate::fault::json_response;
use crate::guard::CallerState;
use crate::interface_paths::ANTHROPIC_VERSION;
use crate::model_time::modified_ms;
use crate::openai;
use crate::request_fields::invalid;
use crate::running_turn::blocking;
use crate::url_parts::{Path, Query};

/// Models of a page where the client names no number, and the most that it may name: as in Anthropic's API.
const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 1000;

/// Handles `GET /v1/models`.
pub async fn models(
    state: CallerState,
    headers: HeaderMap,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    if !is_anthropic(&headers) {
        return openai::models(state).await;
    }
    let CallerState(shared) = state;
    let listed = async {
        let page = PageQuery::parse(&query)?;
        let models = blocking(move || shared.app.models_served()).await?;
        Ok(page.of(&models, |model| &model.id, model_value))
    };
    answer(listed.await)
}

/// Handles `GET /v1/models/{id}`.
pub async fn model(state: CallerState, headers: HeaderMap, path: Path<String>) -> Response {
    if !is_anthropic(&headers) {
        return openai::model(state, path).await;
    }
    let (CallerState(shared), Path(id)) = (state, path);
    let found = blocking(move || shared.app.model_for_request(Some(&id))).await;
    answer(found.map(|model| model_value(&model)))
}

/// Whether a request comes from a client of Anthropic's.
pub fn is_anthropic(headers: &HeaderMap) -> bool {
    headers.contains_key(ANTHROPIC_VERSION)
}

fn answer(outcome: Result<Value>) -> Response {
    match outcome {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(error) => AnthropicFault::from(error).into_response(),
    }
}

/// The day of a model's release is not known; that of its file stands for it.
fn model_value(ServedModel { id, context, path }: &ServedModel) -> Value {
    let created = platform::calendar::date_time(modified_ms(path.as_deref()));
    json!({
        "type": "model", "id": id, "display_name": id, "created_at": format!("{created}Z"),
        "lifecycle": "active", "max_input_tokens": context, "max_tokens": context,
    })
}

/// The page of the list that a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct PageQuery {
    limit: usize,
    after: Option<String>,
    before: Option<String>,
}

impl PageQuery {
    pub fn parse(query: &BTreeMap<String, String>) -> Result<Self> {
        let limit = match query.get("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => {
                let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                limit.ok_or_else(|| invalid(format!("`limit` must be from 1 to {MAX_LIMIT}.")))?
            }
        };
        Ok(Self { limit, after: query.get("after_id").cloned(), before: query.get("before_id").cloned() })
    }

    /// The page of a whole list.
    pub fn of<T>(&self, all: &[T], id_of: impl Fn(&T) -> &str, value: impl Fn(&T) -> Value) -> Value {
        let at = |id: &String| all.iter().position(|one| id_of(one) == id);
        let from = self.after.as_ref().and_then(at).map_or(0, |at| at + 1);
        let until = self.before.as_ref().and_then(at).unwrap_or(all.len());
        let rest = all.get(from..until).unwrap_or_default();
        // A page before an id ends directly before it.
        let page = match self.before {
            Some(_) => &rest[rest.len().saturating_sub(self.limit)..],
            None => &rest[..rest.len().min(self.limit)],
        };
        let id = |one: Option<&T>| json!(one.map(&id_of));
        json!({
            "data": page.iter().map(value).collect::<Vec<_>>(), "has_more": page.len() < rest.len(),
            "first_id": id(page.first()), "last_id": id(page.last()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let query = |text: &str| {
            let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>()
        };
        let models: Vec<ServedModel> =
            ["a", "b", "c"].map(|id| ServedModel { id: id.into(), context: None, path: None }).to_vec();
        for (text, ids, has_more) in [
            ("", vec!["a", "b", "c"], false),
            ("limit=2", vec!["a", "b"], true),
            ("limit=2&after_id=b", vec!["c"], false),
            ("limit=1&before_id=c", vec!["b"], true),
            ("after_id=c", vec![], false),
            ("after_id=c&before_id=a", vec![], false),
        ] {
            let page = PageQuery::parse(&query(text)).unwrap();
            let page = page.of(&models, |model| &model.id, model_value);
            let listed: Vec<&str> =
                page["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
            assert_eq!((listed, &page["has_more"]), (ids, &json!(has_more)), "{text}");
        }
        for text in ["limit=0", "limit=x", "limit=1001"] {
            assert!(PageQuery::parse(&query(text)).is_err(), "{text}");
        }
    }
}
