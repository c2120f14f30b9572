//! `GET /metrics` in Prometheus' text format, and the same figures as JSON.
//!
//! Labels never hold what a client wrote: routes are those of the router, with their parameters unfilled.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use app::{AnswerTotals, RuntimeStats};
use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::fault::{Fault, json_response};
use crate::guard::CallerState;
use crate::running_turn::blocking;

/// Media type of the format, version 0.0.4.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Stands for the method of a request that is none of HTTP's.
const OTHER_METHOD: &str = "OTHER";

/// Stands for the route of a request that has none.
const NO_ROUTE: &str = "none";

/// Method, route and status of a request.
type RequestLabels = (&'static str, String, u16);

/// Requests that were answered.
#[derive(Default)]
pub struct RequestCounts(Mutex<BTreeMap<RequestLabels, u64>>);

impl RequestCounts {
    /// Counts a request.
    pub fn count(&self, method: &Method, route: Option<&MatchedPath>, status: StatusCode) {
        let route = route.map_or(NO_ROUTE, MatchedPath::as_str).to_owned();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((method_label(method), route, status.as_u16())).or_default() += 1;
    }

    fn all(&self) -> Vec<(RequestLabels, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }
}

/// A client may invent methods.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => OTHER_METHOD,
    }
}

/// Handles `GET /metrics`.
pub async fn metrics(CallerState(shared): CallerState) -> Response {
    let app = shared.app;
    match blocking(move || app.runtime_stats()).await {
        Ok(stats) => {
            let text = exposition(&stats, &shared.requests.all());
            let headers = [(header::CONTENT_TYPE, MEDIA_TYPE), (header::CACHE_CONTROL, "no-store")];
            (StatusCode::OK, headers, text).into_response()
        }
        Err(error) => Fault(error).into_response(),
    }
}

/// Handles `GET /api/v1/stats`.
pub async fn stats(CallerState(shared): CallerState) -> Response {
    let app = shared.app;
    match blocking(move || app.runtime_stats()).await {
        Ok(stats) => {
            let n_requests: u64 = shared.requests.all().iter().map(|(_, count)| count).sum();
            let first_token = &stats.totals.time_to_first_token;
            let quantile = |share: f64| first_token.quantile_s(share).map(|seconds| seconds * 1e3);
            let ttft_ms = json!({ "p50": quantile(0.5), "p95": quantile(0.95), "p99": quantile(0.99) });
            let value = json!({
                "uptime_s": stats.uptime_s, "requests": n_requests, "running": stats.running,
                "queued": stats.queued, "answers_at_once": stats.answers_at_once,
                "loaded_models": stats.loaded_models, "memory_bytes": stats.memory_bytes,
                "answers": stats.totals.ended, "prompt_tokens": stats.totals.prompt_tokens,
                "cached_tokens": stats.totals.cached_tokens,
                "generated_tokens": stats.totals.generated_tokens,
                "drafted_tokens": stats.totals.drafted_tokens,
                "accepted_tokens": stats.totals.accepted_tokens,
                "prefill_s": stats.totals.prefill_s, "decode_s": stats.totals.decode_s, "ttft_ms": ttft_ms,
            });
            json_response(StatusCode::OK, &value)
        }
        Err(error) => Fault(error).into_response(),
    }
}

/// A text in Prometheus' format.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String can't fail.
        let _ = write!(self.0, "# HELP inglenook_{name} {help}\n# TYPE inglenook_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "inglenook_{name}{labels} {value}");
    }

    /// A family of one sample.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// Escapes the value of a label.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn exposition(stats: &RuntimeStats, requests: &[(RequestLabels, u64)]) -> String {
    let mut text = Exposition::default();
    text.family("build_info", "gauge", "Version of the program.");
    text.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    text.single("uptime_seconds", "gauge", "Time since the process began.", stats.uptime_s);
    if let Some(bytes) = stats.memory_bytes {
        let help = "Memory of the process and its worker, pages of mapped files included.";
        text.single("resident_memory_bytes", "gauge", help, bytes as f64);
    }
    text.family("http_requests_total", "counter", "Requests by method, route and status.");
    for ((method, route, status), count) in requests {
        let labels = [("method", *method), ("route", route), ("status", &status.to_string())];
        text.sample("http_requests_total", &labels, *count as f64);
    }
    text.single("answers_running", "gauge", "Answers that are being written.", stats.running as f64);
    text.single("answers_queued", "gauge", "Answers that wait for their turn.", stats.queued as f64);
    let help = "Answers that may be written at once.";
    text.single("answers_at_once", "gauge", help, stats.answers_at_once as f64);
    text.family("model_loaded", "gauge", "Models in memory.");
    for model in &stats.loaded_models {
        text.sample("model_loaded", &[("model", model)], 1.0);
    }
    write_totals(&mut text, &stats.totals);
    text.0
}

fn write_totals(text: &mut Exposition, totals: &AnswerTotals) {
    text.family("answers_total", "counter", "Answers that have ended, by how they did.");
    for (outcome, count) in &totals.ended {
        text.sample("answers_total", &[("outcome", outcome)], *count as f64);
    }
    let counters = [
        ("prompt_tokens_total", "Tokens of prompts.", totals.prompt_tokens as f64),
        ("cached_prompt_tokens_total", "Tokens of prompts that were cached.", totals.cached_tokens as f64),
        ("generated_tokens_total", "Tokens of answers.", totals.generated_tokens as f64),
        ("drafted_tokens_total", "Tokens drafted and verified.", totals.drafted_tokens as f64),
        ("accepted_tokens_total", "Drafted tokens that were accepted.", totals.accepted_tokens as f64),
        ("prefill_seconds_total", "Time spent on reading prompts.", totals.prefill_s),
        ("decode_seconds_total", "Time spent on generating.", totals.decode_s),
    ];
    for (name, help, value) in counters {
        text.single(name, "counter", help, value);
    }
    let (name, times) = ("time_to_first_token_seconds", &totals.time_to_first_token);
    text.family(name, "histogram", "Time from a request to the first token of its answer.");
    let bucket = format!("{name}_bucket");
    for (bound, count) in times.cumulative() {
        text.sample(&bucket, &[("le", &bound.to_string())], count as f64);
    }
    text.sample(&bucket, &[("le", "+Inf")], times.count() as f64);
    text.sample(&format!("{name}_sum"), &[], times.sum_s);
    text.sample(&format!("{name}_count"), &[], times.count() as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> RuntimeStats {
        let mut totals = AnswerTotals { prompt_tokens: 7, ..AnswerTotals::default() };
        totals.ended.insert("stop".into(), 2);
        totals.time_to_first_token.observe(0.02);
        RuntimeStats {
            uptime_s: 1.5,
            totals,
            running: 1,
            queued: 0,
            answers_at_once: 4,
            loaded_models: vec!["a\"b".into()],
            memory_bytes: Some(1 << 20),
        }
    }

    #[test]
    fn every_sample_has_a_type_and_a_number() {
        let requests = [(("GET", "/v1/models/{*id}".to_owned(), 200), 3)];
        let text = exposition(&stats(), &requests);
        for line in [
            "inglenook_http_requests_total{method=\"GET\",route=\"/v1/models/{*id}\",status=\"200\"} 3",
            "inglenook_answers_total{outcome=\"stop\"} 2",
            "inglenook_prompt_tokens_total 7",
            "inglenook_model_loaded{model=\"a\\\"b\"} 1",
            "inglenook_time_to_first_token_seconds_bucket{le=\"0.01\"} 0",
            "inglenook_time_to_first_token_seconds_bucket{le=\"0.025\"} 1",
            "inglenook_time_to_first_token_seconds_bucket{le=\"+Inf\"} 1",
            "inglenook_time_to_first_token_seconds_count 1",
            "inglenook_uptime_seconds 1.5",
            "inglenook_resident_memory_bytes 1048576",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing in\n{text}");
        }
        let typed: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(typed.iter().any(|family| name.starts_with(family)), "{line} has no type");
        }
    }

    #[test]
    fn invented_methods_share_a_label() {
        let counts = RequestCounts::default();
        for method in ["BREW", "WHEN"] {
            counts.count(&method.parse().unwrap(), None, StatusCode::NOT_FOUND);
        }
        assert_eq!(counts.all(), [((OTHER_METHOD, NO_ROUTE.to_owned(), 404), 2)]);
    }
}
