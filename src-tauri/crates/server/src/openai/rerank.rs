//! `POST /v1/rerank`: how well documents answer a query, in the forms of Jina and Cohere, or of Text Embeddings Inference
//! when the documents are called `texts`.

use app::App;
use axum::body::Body;
use axum::response::Response;
use contract::protocol::PassageScores;
use serde_json::{Value, json};

use super::fields::{Fields, Result, object};
use super::{answered, blocking, ok};
use crate::fault::OpenAiFault;
use crate::guard::CallerState;

/// Largest number of documents per request.
const MAX_DOCUMENTS: usize = 2048;

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RankingForm {
    /// An object with `results`, each with a `relevance_score`.
    Results,
    /// A list of scores.
    Scores,
}

#[derive(Debug)]
pub struct RerankRequest {
    /// None: the first model of the library that ranks.
    model: Option<String>,
    query: String,
    documents: Vec<String>,
    /// Number of results that are wanted.
    n_top: usize,
    /// Whether the results repeat their documents.
    with_documents: bool,
    form: RankingForm,
}

/// Handles `POST /v1/rerank` and its other names.
pub async fn rerank(CallerState(shared): CallerState, body: Body) -> Response {
    answered(body, |body| async move {
        let request = RerankRequest::parse(&body)?;
        let (request, model, ranked) = blocking(move || {
            let (model, ranked) = ranked(&shared.app, &request)?;
            Ok((request, model, ranked))
        })
        .await
        .map_err(about_query)?;
        Ok(ok(&answer(&request, &model, &ranked)))
    })
    .await
}

/// The model that ranks, and its scores.
fn ranked(app: &App, request: &RerankRequest) -> contract::Result<(String, PassageScores)> {
    let rank = |model: String| {
        let scores = app.rank(&model, &request.query, &request.documents)?;
        Ok((model, scores))
    };
    if let Some(name) = &request.model {
        // Library ids only: a request can't open arbitrary files.
        match app.model_named(name) {
            Ok(model) => return rank(model.id),
            // Any name stands for a model that ranks where the settings say so.
            Err(unknown) => _ = app.model_for_request(Some(name)).map_err(|_| unknown)?,
        }
    }
    for entry in app.models_list()?.into_iter().filter(|entry| entry.embeds && entry.remote.is_none()) {
        match rank(entry.id) {
            Err(error) if error.code() == "model.no_ranking" => {}
            outcome => return outcome,
        }
    }
    Err(contract::Error::not_found(
        "model.no_reranker",
        "No model of the library scores documents.",
        "Add a reranker, or name one in `model`.",
    ))
}

/// Attributes a length error to `query` instead of `messages`: documents are cut where they don't fit.
fn about_query(fault: OpenAiFault) -> OpenAiFault {
    match fault.param.as_deref() {
        Some("messages") => OpenAiFault { param: Some("query".into()), ..fault },
        Some(_) | None => fault,
    }
}

impl RerankRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = Fields(&object);
        let wanted = |name: &'static str| {
            let message = format!("`{name}` is missing.");
            fields.text(name)?.map(str::to_owned).ok_or_else(|| OpenAiFault::invalid(name, message))
        };
        let (name, form) = match fields.get("texts") {
            Some(_) => ("texts", RankingForm::Scores),
            None => ("documents", RankingForm::Results),
        };
        let documents = documents(fields.get(name), name)?;
        let n_top = fields.count_within("top_n", 1, u64::from(u32::MAX))?;
        Ok(Self {
            model: fields.text("model")?.map(str::to_owned),
            query: wanted("query")?,
            n_top: n_top.and_then(|n| usize::try_from(n).ok()).unwrap_or(documents.len()),
            with_documents: fields.boolean("return_documents")?.unwrap_or(false)
                || fields.boolean("return_text")?.unwrap_or(false),
            documents,
            form,
        })
    }
}

/// Reads a list of texts, or of objects with a `text`.
fn documents(value: Option<&Value>, name: &'static str) -> Result<Vec<String>> {
    let wrong = || {
        let message = format!("`{name}` must be a list of 1 to {MAX_DOCUMENTS} texts.");
        OpenAiFault::invalid(name, message)
    };
    let list = value.and_then(Value::as_array).filter(|list| (1..=MAX_DOCUMENTS).contains(&list.len()));
    let text = |document: &Value| document.as_str().or_else(|| document["text"].as_str()).map(str::to_owned);
    list.ok_or_else(wrong)?.iter().map(|document| text(document).ok_or_else(wrong)).collect()
}

/// The best documents first.
fn answer(request: &RerankRequest, model: &str, ranked: &PassageScores) -> Value {
    let mut order: Vec<usize> = (0..ranked.scores.len()).collect();
    order.sort_by(|a, b| ranked.scores[*b].total_cmp(&ranked.scores[*a]));
    let one = |index: usize| {
        let (score, text) = (ranked.scores[index], &request.documents[index]);
        match (request.form, request.with_documents) {
            (RankingForm::Results, false) => json!({ "index": index, "relevance_score": score }),
            (RankingForm::Results, true) => {
                json!({ "index": index, "relevance_score": score, "document": { "text": text } })
            }
            (RankingForm::Scores, false) => json!({ "index": index, "score": score }),
            (RankingForm::Scores, true) => json!({ "index": index, "score": score, "text": text }),
        }
    };
    let results: Vec<Value> = order.into_iter().take(request.n_top).map(one).collect();
    match request.form {
        RankingForm::Scores => results.into(),
        RankingForm::Results => json!({
            "object": "list",
            "model": model,
            "results": results,
            "usage": { "prompt_tokens": ranked.tokens, "total_tokens": ranked.tokens },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: Value) -> Result<RerankRequest> {
        RerankRequest::parse(body.to_string().as_bytes())
    }

    #[test]
    fn the_best_documents_come_first() {
        let request = parse(json!({
            "model": "m", "query": "q", "documents": ["a", { "text": "b" }, "c"], "top_n": 2,
            "return_documents": true,
        }))
        .unwrap();
        let ranked = PassageScores { scores: vec![-1.0, 2.5, 0.5], tokens: 9, ..PassageScores::default() };
        let value = answer(&request, "m", &ranked);
        let results: Vec<_> = value["results"].as_array().unwrap().iter().map(|it| &it["index"]).collect();
        assert_eq!(results, [1, 2]);
        assert_eq!(value["results"][0]["document"]["text"], "b");
        assert_eq!(value["usage"]["total_tokens"], 9);
        let request = parse(json!({ "model": "m", "query": "q", "texts": ["a", "b", "c"] })).unwrap();
        let value = answer(&request, "m", &ranked);
        assert_eq!(value[0], json!({ "index": 1, "score": 2.5 }));
        assert_eq!(value.as_array().unwrap().len(), 3);
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        let whole = json!({ "model": "m", "query": "q", "documents": ["a"] });
        for (field, wrong) in [
            ("model", json!(7)),
            ("query", json!(7)),
            ("documents", json!([])),
            ("documents", json!("a")),
            ("documents", json!([1])),
            ("texts", json!([{ "title": "a" }])),
            ("top_n", json!(0)),
            ("return_documents", json!("yes")),
        ] {
            let mut body = whole.clone();
            body[field] = wrong;
            assert_eq!(parse(body).unwrap_err().param.as_deref(), Some(field));
        }
    }
}
