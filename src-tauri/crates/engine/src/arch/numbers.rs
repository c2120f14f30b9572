//! Numbers of JSON objects, and the checks of any hyperparameter against its bounds.

use serde_json::Value;

use super::keys;
use crate::error::{DAMAGED, EngineError, Result};

/// Reads numbers of a JSON object. `path` precedes their keys in messages.
pub(crate) struct JsonNumbers<'a> {
    object: &'a Value,
    path: &'static str,
}

impl<'a> JsonNumbers<'a> {
    pub(crate) fn new(object: &'a Value, path: &'static str) -> Self {
        Self { object, path }
    }

    /// Returns a value, or that of a list of equal ones. Null counts as absent.
    ///
    /// Errors: a list whose values differ.
    fn value(&self, key: &str) -> Result<Option<&'a Value>> {
        let value = self.object.get(key).filter(|value| !value.is_null());
        let list = value.and_then(Value::as_array).filter(|_| !keys::OF_THE_MODEL_HF.contains(&key));
        let Some((first, rest)) = list.and_then(|list| list.split_first()) else { return Ok(value) };
        match rest.iter().all(|other| other == first) {
            true => Ok(Some(first).filter(|first| !first.is_null())),
            false => Err(unsupported_list(&self.name(key))),
        }
    }

    /// Reads a non-negative integer. Null counts as absent.
    pub(crate) fn optional_integer(&self, key: &str) -> Result<Option<u64>> {
        match self.value(key)? {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(n) => Ok(Some(n)),
                None => Err(wrong(&self.name(key), format!("{value} is not a count"))),
            },
        }
    }

    /// Reads an optional count from 1 to `max`.
    pub(crate) fn optional_count(&self, key: &str, max: usize) -> Result<Option<usize>> {
        self.optional_integer(key)?.map(|n| bounded(&self.name(key), n, max)).transpose()
    }

    pub(crate) fn optional_real(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>> {
        match self.value(key)? {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(x) => in_range(&self.name(key), x, min, max).map(Some),
                None => Err(wrong(&self.name(key), format!("{value} is not a number"))),
            },
        }
    }

    pub(crate) fn real(&self, key: &str, min: f64, max: f64) -> Result<f64> {
        self.optional_real(key, min, max)?.ok_or_else(|| wrong(&self.name(key), "it is missing".into()))
    }

    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }
}

pub(crate) fn bounded(name: &str, n: u64, max: usize) -> Result<usize> {
    match usize::try_from(n) {
        Ok(n) if (1..=max).contains(&n) => Ok(n),
        _ => Err(wrong(name, format!("{n} is not between 1 and {max}"))),
    }
}

pub(crate) fn in_range(name: &str, x: f64, min: f64, max: f64) -> Result<f64> {
    // NaN is in no range.
    if (min..=max).contains(&x) {
        return Ok(x);
    }
    Err(wrong(name, format!("{x} is not between {min:?} and {max:?}")))
}

/// Error for values per layer where the engine has one for all.
fn unsupported_list(key: &str) -> EngineError {
    EngineError::new(
        "model.feature_unsupported",
        format!("this model uses values that differ between layers ({key}), which Inglenook cannot run yet"),
        "Choose another model.",
    )
}

pub(crate) fn wrong(key: &str, message: String) -> EngineError {
    EngineError::new("model.hyperparameter", format!("{key}: {message}"), DAMAGED)
}
