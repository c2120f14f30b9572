//! How long a model stays in memory after an answer, as Ollama's clients say it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use app::App;
use contract::Result;
use io::{Clock, RealClock};
use serde_json::Value;

use crate::request_fields::{RequestFields, invalid};

/// Time until a model that answers is looked at again.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// Longest time that is counted; anything longer is as good as forever.
const MAX_KEEP: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a request says about the time after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAlive {
    /// Nothing: what an earlier request said is renewed.
    Unchanged,
    /// The model leaves memory when nothing is asked for this long.
    For(Duration),
    Forever,
}

impl KeepAlive {
    /// Reads `keep_alive`: seconds, or a duration such as `5m`; negative means forever.
    pub fn parse(fields: RequestFields) -> Result<Self> {
        let wrong = || invalid("`keep_alive` must be seconds or a duration such as \"5m\".");
        let seconds = match fields.get("keep_alive") {
            None => return Ok(Self::Unchanged),
            Some(Value::Number(seconds)) => seconds.as_f64().ok_or_else(wrong)?,
            Some(Value::String(text)) => seconds_of(text.trim()).ok_or_else(wrong)?,
            Some(_) => return Err(wrong()),
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(keep) if keep <= MAX_KEEP => Ok(Self::For(keep)),
            Ok(_) | Err(_) => Ok(Self::Forever),
        }
    }

    /// Whether the model is to leave memory at once.
    pub fn is_unload(self) -> bool {
        self == Self::For(Duration::ZERO)
    }
}

/// A duration as Go writes it: `1h30m`, `300ms`, `-1`; without a unit, seconds.
fn seconds_of(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    if let Ok(seconds) = rest.parse::<f64>() {
        return Some(sign * seconds).filter(|seconds| seconds.is_finite());
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let n_digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..n_digits].parse().ok()?;
        rest = &rest[n_digits..];
        let n_letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..n_letters] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum += number * unit;
        rest = &rest[n_letters..];
    }
    (!text.is_empty()).then_some(sign * sum)
}

/// When models leave memory, because a client said so.
#[derive(Default)]
pub struct ModelExpiries(Mutex<HashMap<String, ModelExpiry>>);

#[derive(Debug, Clone, Copy)]
struct ModelExpiry {
    keep: Duration,
    /// UTC milliseconds.
    at_ms: i64,
    /// Tells a renewed expiry from the one before.
    generation: u64,
}

impl ModelExpiries {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, ModelExpiry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a model leaves memory, in UTC milliseconds. `None`: it stays.
    pub fn at_ms(&self, model: &str) -> Option<i64> {
        self.lock().get(model).map(|expiry| expiry.at_ms)
    }

    /// Applies what a request for `model` says. The time begins now, and again while the program answers.
    pub fn apply(self: &Arc<Self>, app: &App, model: &str, keep: KeepAlive) {
        let keep = match keep {
            KeepAlive::Unchanged => self.lock().get(model).map(|expiry| expiry.keep),
            KeepAlive::For(keep) => Some(keep),
            KeepAlive::Forever => {
                self.lock().remove(model);
                None
            }
        };
        let Some(keep) = keep else { return };
        let generation = self.renew(model, keep);
        let (expiries, app, model) = (Arc::clone(self), app.clone(), model.to_owned());
        tokio::spawn(async move { expiries.expire(&app, &model, keep, generation).await });
    }

    fn renew(&self, model: &str, keep: Duration) -> u64 {
        let mut all = self.lock();
        let generation = all.get(model).map_or(0, |expiry| expiry.generation + 1);
        let ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let at_ms = RealClock::new().now_utc_ms().saturating_add(ms);
        all.insert(model.to_owned(), ModelExpiry { keep, at_ms, generation });
        generation
    }

    async fn expire(&self, app: &App, model: &str, keep: Duration, mut generation: u64) {
        loop {
            tokio::time::sleep(keep).await;
            if self.lock().get(model).is_none_or(|expiry| expiry.generation != generation) {
                return;
            }
            if !app.is_answering() {
                break;
            }
            generation = self.renew(model, keep);
            tokio::time::sleep(BUSY_RETRY).await;
        }
        self.lock().remove(model);
        if let Err(error) = app.model_unload(model) {
            tracing::warn!(code = error.code(), "a model was not unloaded: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: Value) -> Result<KeepAlive> {
        let body = json!({ "keep_alive": value });
        KeepAlive::parse(RequestFields(body.as_object().unwrap()))
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let keep = |seconds: f64| KeepAlive::For(Duration::from_secs_f64(seconds));
        for (value, expected) in [
            (Value::Null, KeepAlive::Unchanged),
            (json!(0), keep(0.0)),
            (json!("0"), keep(0.0)),
            (json!("0s"), keep(0.0)),
            (json!(300), keep(300.0)),
            (json!("5m"), keep(300.0)),
            (json!("1h30m"), keep(5400.0)),
            (json!("1.5h"), keep(5400.0)),
            (json!("300ms"), keep(0.3)),
            (json!(-1), KeepAlive::Forever),
            (json!("-1m"), KeepAlive::Forever),
            (json!("9999999h"), KeepAlive::Forever),
        ] {
            assert_eq!(parse(value.clone()).unwrap(), expected, "{value}");
        }
        for value in [json!("soon"), json!(""), json!("5x"), json!("m"), json!(true), json!("5m6")] {
            assert!(parse(value.clone()).is_err(), "{value}");
        }
        assert!(parse(json!(0)).unwrap().is_unload() && !parse(json!(1)).unwrap().is_unload());
    }
}
