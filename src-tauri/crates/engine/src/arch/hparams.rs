//! Hyperparameters by key, from either container, each checked against bounds before use.
//!
//! The bounds are an order of magnitude beyond anything published, so that products cannot overflow and a damaged
//! file is refused with its key named.
//!
//! What is read from config.json is noted under its GGUF key, for the converter.

use std::borrow::Cow;
use std::cell::RefCell;

use kernels::{Activation, RopeStyle};
use serde_json::Value;
use weights::write::OwnedValue;
use weights::{Array, Container, WeightFile};

pub(super) use super::keys::HParamKey;
pub(super) use super::numbers::JsonNumbers;
use super::numbers::{bounded, in_range, wrong};
use super::{Family, keys, tensor_names};
use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::Role;

mod layer_numbers;

/// The deepest published model has 126 layers.
pub(crate) const MAX_LAYERS: usize = 1024;
/// Bound on the widths of the residual stream and of feed-forward layers.
pub(crate) const MAX_WIDTH: usize = 1 << 20;
pub(crate) const MAX_HEADS: usize = 1 << 12;
/// Published mixtures have up to 512.
pub(crate) const MAX_EXPERTS: usize = 1 << 14;
/// The kernels' own bound.
pub(crate) const MAX_HEAD_DIM: usize = 512;
/// Positions are 32-bit.
pub(crate) const MAX_POSITIONS: usize = u32::MAX as usize;
/// The largest published vocabulary has 262,208 entries.
const MAX_VOCAB: usize = 1 << 24;
/// Bound on rotary bases and factors.
pub(crate) const MAX_FACTOR: f64 = 1e15;

/// Reads the hyperparameters of one file for one family.
pub struct HParams<'a> {
    file: &'a WeightFile,
    family: Family,
    /// config.json; of a multimodal model, the language part merged over the rest.
    config: Option<Cow<'a, Value>>,
    fit: ContextFit,
    notes: RefCell<GgufNotes>,
}

/// Properties of the load that a model's structure depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ContextFit {
    /// Maximum tokens per sequence: LongRoPE has separate frequencies for short and long contexts. 0: the original
    /// training context.
    pub n_ctx: usize,
    /// Factor of a YaRN extension that replaces the file's own scaling.
    pub rope_factor: Option<f64>,
}

/// What a GGUF of the family would say about a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GgufNotes {
    /// Keys without the architecture prefix. A later pair with the same key wins.
    pub pairs: Vec<(&'static str, OwnedValue)>,
    /// Keys that have no architecture prefix.
    pub global_pairs: Vec<(&'static str, OwnedValue)>,
    /// Small float32 tensors that a GGUF has and safetensors have not.
    pub tensors: Vec<(Cow<'static, str>, Vec<f32>)>,
}

impl<'a> HParams<'a> {
    pub(super) fn new(file: &'a WeightFile, family: Family, fit: ContextFit) -> Self {
        let config = match file.container() {
            Container::Gguf { .. } => None,
            Container::Safetensors => Some(language_part(file.metadata().config(), family.hf_defaults())),
        };
        Self { file, family, config, fit, notes: RefCell::default() }
    }

    pub(super) fn into_notes(self) -> GgufNotes {
        self.notes.into_inner()
    }

    /// Notes what a GGUF would say for a value read from a config.
    pub(super) fn note(&self, gguf: &'static str, value: OwnedValue) {
        if self.config().is_some() && !gguf.is_empty() {
            self.notes.borrow_mut().pairs.push((gguf, value));
        }
    }

    /// Notes what a GGUF would say under a key without the architecture's prefix.
    pub(super) fn note_global(&self, key: &'static str, value: OwnedValue) {
        if self.config().is_some() {
            self.notes.borrow_mut().global_pairs.push((key, value));
        }
    }

    /// Notes a number.
    pub(super) fn note_real(&self, key: HParamKey, value: f64) {
        self.note(key.gguf, OwnedValue::F32(value as f32));
    }

    /// Notes a count.
    pub(super) fn note_count(&self, key: HParamKey, n: usize) {
        self.note(key.gguf, u32::try_from(n).map_or(OwnedValue::U64(n as u64), OwnedValue::U32));
    }

    /// Notes a count per layer.
    pub(super) fn note_counts(&self, key: HParamKey, counts: &[usize]) {
        let counts = counts.iter().map(|n| u32::try_from(*n).unwrap_or(u32::MAX)).collect();
        self.note(key.gguf, OwnedValue::U32s(counts));
    }

    /// Notes a flag per layer.
    pub(super) fn note_flags(&self, gguf: &'static str, flags: &[bool]) {
        self.note(gguf, OwnedValue::Bools(flags.to_vec()));
    }

    /// Checks a derived count, from 1 to `max`.
    pub(super) fn bounded(&self, name: &str, n: usize, max: usize) -> Result<usize> {
        bounded(name, n as u64, max)
    }

    /// Notes a tensor that a GGUF would have for values read from a config.
    pub(super) fn note_tensor(&self, gguf: impl Into<Cow<'static, str>>, values: Vec<f32>) {
        let tensors = &mut self.notes.borrow_mut().tensors;
        let tensor = (gguf.into(), values);
        // Layers of one kind yield equal tensors.
        if self.config().is_some() && !tensors.contains(&tensor) {
            tensors.push(tensor);
        }
    }

    /// Returns config.json. `None` for a GGUF.
    pub(super) fn config(&self) -> Option<&Value> {
        self.config.as_deref()
    }

    pub(super) fn n_ctx(&self) -> usize {
        self.fit.n_ctx
    }

    pub(super) fn rope_factor(&self) -> Option<f64> {
        self.fit.rope_factor
    }

    /// Returns a value of config.json, unless it is missing or null.
    pub(super) fn value(&self, hf: &str) -> Option<&Value> {
        self.config()?.get(hf).filter(|value| !value.is_null())
    }

    /// Returns the key as it is written in this file.
    pub(super) fn name(&self, key: HParamKey) -> String {
        match self.file.container() {
            Container::Gguf { .. } => format!("{}.{}", self.family.gguf_name(), key.gguf),
            Container::Safetensors => key.hf.to_owned(),
        }
    }

    /// Reads a required count from 1 to `max`.
    pub(super) fn count(&self, key: HParamKey, max: usize) -> Result<usize> {
        self.optional_count(key, max)?.ok_or_else(|| self.missing(&self.name(key)))
    }

    /// Reads an optional count from 1 to `max`.
    pub(super) fn optional_count(&self, key: HParamKey, max: usize) -> Result<Option<usize>> {
        let found = self.optional_unbounded(key)?;
        found.map(|n| bounded(&self.name(key), n, max)).transpose()
    }

    /// Reads any count. Not to be computed with.
    pub(super) fn optional_unbounded(&self, key: HParamKey) -> Result<Option<u64>> {
        match self.config() {
            None if key.gguf.is_empty() => Ok(None),
            None => match self.repeated(key)? {
                Some(value) => self.converted(key, "counts", value.as_u64()),
                None => Ok(self.file.metadata().opt_u64(&self.name(key))?),
            },
            Some(config) => {
                let found = JsonNumbers::new(config, "").optional_integer(key.hf)?;
                let value = found.map(|n| u32::try_from(n).map_or(OwnedValue::U64(n), OwnedValue::U32));
                value.into_iter().for_each(|value| self.note(key.gguf, value));
                Ok(found)
            }
        }
    }

    /// Reads a required finite number from `min` to `max`.
    pub(super) fn real(&self, key: HParamKey, min: f64, max: f64) -> Result<f64> {
        self.optional_real(key, min, max)?.ok_or_else(|| self.missing(&self.name(key)))
    }

    pub(super) fn optional_real(&self, key: HParamKey, min: f64, max: f64) -> Result<Option<f64>> {
        match self.config() {
            None if key.gguf.is_empty() => Ok(None),
            None => {
                let name = self.name(key);
                let found = match self.repeated(key)? {
                    Some(value) => self.converted(key, "numbers", value.as_f32())?,
                    None => self.file.metadata().opt_f32(&name)?,
                };
                found.map(|x| in_range(&name, f64::from(x), min, max)).transpose()
            }
            Some(config) => {
                let found = JsonNumbers::new(config, "").optional_real(key.hf, min, max)?;
                found.into_iter().for_each(|x| self.note(key.gguf, OwnedValue::F32(x as f32)));
                Ok(found)
            }
        }
    }

    /// Reads a text of a GGUF's metadata.
    pub(super) fn optional_text(&self, gguf: &'static str) -> Result<Option<&'a str>> {
        match self.file.container() {
            Container::Gguf { .. } => {
                Ok(self.file.metadata().opt_str(&self.name(HParamKey { gguf, hf: "" }))?)
            }
            Container::Safetensors => Ok(None),
        }
    }

    /// Reads a flag of a GGUF's metadata.
    pub(super) fn optional_flag(&self, gguf: &'static str) -> Result<Option<bool>> {
        match self.file.container() {
            Container::Gguf { .. } => match self.repeated(HParamKey { gguf, hf: "" })? {
                Some(value) => self.converted(HParamKey { gguf, hf: "" }, "flags", value.as_bool()),
                None => Ok(self.file.metadata().opt_bool(&self.name(HParamKey { gguf, hf: "" }))?),
            },
            Container::Safetensors => Ok(None),
        }
    }

    /// Returns the rows of a matrix, if it exists. `layer` is `None` outside the layers.
    pub(super) fn n_rows(&self, role: Role, layer: Option<usize>) -> Option<usize> {
        let (_, name) = tensor_names::find(self.file, self.family, role, layer)?;
        self.file.tensor(&name)?.shape.first().copied()
    }

    /// Reads a flag of config.json. A GGUF has none.
    pub(super) fn flag(&self, hf: &str, default: bool) -> Result<bool> {
        match self.config().and_then(|config| config.get(hf)) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(hf, format!("{other} is neither true nor false"))),
        }
    }

    /// Returns whether a projection has a bias: by the config, or in a GGUF by the tensor.
    pub(super) fn has_bias(&self, hf: &str, role: Role) -> Result<bool> {
        match self.file.container() {
            Container::Gguf { .. } => Ok(self.has_tensor(role, Some(0))),
            Container::Safetensors => self.flag(hf, false),
        }
    }

    /// Returns whether the output matrix is the embedding table: by the config, or in a GGUF by the missing tensor.
    pub(super) fn tied_embeddings(&self, default: bool) -> Result<bool> {
        match self.file.container() {
            Container::Gguf { .. } => Ok(!self.has_tensor(Role::Output, None)),
            Container::Safetensors => self.flag("tie_word_embeddings", default),
        }
    }

    pub(super) fn has_tensor(&self, role: Role, layer: Option<usize>) -> bool {
        tensor_names::find(self.file, self.family, role, layer).is_some()
    }

    /// Returns the value of a GGUF array whose entries are all equal: some converters write each number per layer.
    /// `None` for other values.
    ///
    /// Errors: the entries differ.
    fn repeated(&self, key: HParamKey) -> Result<Option<weights::Value<'a>>> {
        let array = self.array(key)?.filter(|array| array.is_scalars() && !array.is_empty());
        let Some(array) = array.filter(|_| !keys::OF_THE_MODEL.contains(&key.gguf)) else { return Ok(None) };
        match array.common_value() {
            Some(value) => Ok(Some(value)),
            None => Err(self.unsupported(&format!("values that differ between layers ({})", self.name(key)))),
        }
    }

    /// Returns a value that was found in an array, unless it is of the wrong type.
    fn converted<T>(&self, key: HParamKey, expected: &str, value: Option<T>) -> Result<Option<T>> {
        let error = || wrong(&self.name(key), format!("its entries are not {expected}"));
        value.map(Some).ok_or_else(error)
    }

    /// Reads a count per layer: one for all, or a list. A list of equal counts may have any length.
    ///
    /// Errors: a list of another length, a count above `max`.
    pub(super) fn counts_by_layer(
        &self,
        key: HParamKey,
        n_layers: usize,
        max: usize,
    ) -> Result<Option<Vec<usize>>> {
        let name = self.name(key);
        let all: Vec<u64> = match (self.array(key)?, self.value(key.hf)) {
            (Some(array), _) => array.u32s()?.into_iter().map(u64::from).collect(),
            (None, Some(Value::Array(list))) => {
                let count = |x: &Value| x.as_u64().ok_or_else(|| wrong(&name, format!("{x} is not a count")));
                list.iter().map(count).collect::<Result<_>>()?
            }
            (None, _) => match self.optional_unbounded(key)? {
                Some(n) => vec![n; n_layers],
                None => return Ok(None),
            },
        };
        let all = match all.first() {
            Some(first) if all.iter().all(|n| n == first) => vec![*first; n_layers],
            _ => all,
        };
        if all.len() != n_layers {
            return Err(wrong(&name, format!("{} counts for {n_layers} layers", all.len())));
        }
        if let Some(Value::Array(_)) = self.value(key.hf) {
            self.note(key.gguf, OwnedValue::U32s(all.iter().map(|n| *n as u32).collect()));
        }
        let count = |n: u64| match usize::try_from(n) {
            Ok(n) if n <= max => Ok(n),
            _ => Err(wrong(&name, format!("{n} is above {max}"))),
        };
        all.into_iter().map(count).collect::<Result<_>>().map(Some)
    }

    /// Reads as [`HParams::counts_by_layer`] where every layer needs at least one.
    ///
    /// Errors: as there, and 0. Where only some layers have 0 they have another structure, which is not implemented.
    pub(super) fn positive_counts_by_layer(
        &self,
        key: HParamKey,
        n_layers: usize,
        max: usize,
    ) -> Result<Option<Vec<usize>>> {
        let Some(counts) = self.counts_by_layer(key, n_layers, max)? else { return Ok(None) };
        if counts.contains(&0) && counts.iter().any(|n| *n > 0) {
            return Err(
                self.unsupported(&format!("layers without a part of the others ({})", self.name(key)))
            );
        }
        counts.iter().try_for_each(|n| bounded(&self.name(key), *n as u64, max).map(|_| ()))?;
        Ok(Some(counts))
    }

    /// Reads a GGUF's flag per layer, if present.
    ///
    /// Errors: a list of another length.
    pub(super) fn flags_by_layer(&self, gguf: &'static str, n_layers: usize) -> Result<Option<Vec<bool>>> {
        let Some(array) = self.array(HParamKey { gguf, hf: "" })? else { return Ok(None) };
        let flags = array.bools()?;
        if flags.len() < n_layers {
            let message = format!("{} flags for {n_layers} layers", flags.len());
            return Err(wrong(&self.name(HParamKey { gguf, hf: "" }), message));
        }
        Ok(Some(flags[..n_layers].to_vec()))
    }

    /// Reads config.json's `layer_types`, if present.
    ///
    /// Errors: a list of another length, or not of texts.
    pub(super) fn layer_types(&self, n_layers: usize) -> Result<Option<Vec<&str>>> {
        let Some(types) = self.value("layer_types") else { return Ok(None) };
        let texts = types.as_array().map(|list| list.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        match texts {
            Some(texts) if texts.len() == n_layers => Ok(Some(texts)),
            _ => Err(wrong("layer_types", format!("it is not a list of {n_layers} names"))),
        }
    }

    fn array(&self, key: HParamKey) -> Result<Option<Array<'a>>> {
        match self.config() {
            Some(_) => Ok(None),
            None if key.gguf.is_empty() => Ok(None),
            None => {
                let found = self.file.metadata().get(&self.name(key));
                Ok(found.and_then(|value| value.as_array()))
            }
        }
    }

    /// Reads the window of all layers. 0 means none.
    pub(super) fn window(&self) -> Result<Option<usize>> {
        match self.optional_unbounded(keys::WINDOW)? {
            None | Some(0) => Ok(None),
            Some(_) => self.count(keys::WINDOW, MAX_POSITIONS).map(Some),
        }
    }

    /// Returns whether the file is a GGUF.
    pub(super) fn is_gguf(&self) -> bool {
        matches!(self.file.container(), Container::Gguf { .. })
    }

    /// Returns the rows of the embedding table. A config's `vocab_size` must agree.
    pub(super) fn n_vocab(&self) -> Result<usize> {
        let Some((_, name)) = tensor_names::find(self.file, self.family, Role::TokenEmbedding, None) else {
            let container = self.file.container();
            let name = tensor_names::expected_name(container, self.family, Role::TokenEmbedding, None);
            return Err(super::tensor_missing(&name));
        };
        let Some(table) = self.file.tensor(&name) else { return Err(super::tensor_missing(&name)) };
        let n_rows = table.shape.first().map_or(0, |&n| n as u64);
        let n_rows = bounded(&format!("rows of {name}"), n_rows, MAX_VOCAB)?;
        if let Some(config) = self.config() {
            let n_vocab = JsonNumbers::new(config, "").optional_integer("vocab_size")?;
            if n_vocab.is_some_and(|n| n != n_rows as u64) {
                let message = format!("{} is not the {n_rows} rows of {name}", n_vocab.unwrap_or(0));
                return Err(self.wrong("vocab_size", message));
            }
        }
        Ok(n_rows)
    }

    /// Reads the activation that a config names. GGUF families have one each, the default.
    pub(super) fn activation(&self, hf: &str, default: Activation) -> Result<Activation> {
        match self.value(hf) {
            None => Ok(default),
            Some(Value::String(name)) => match name.as_str() {
                "silu" | "swish" => Ok(Activation::Silu),
                "gelu" => Ok(Activation::Gelu),
                "relu2" => Ok(Activation::ReluSquared),
                "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(Activation::GeluTanh),
                other => Err(self.unsupported(&format!("activation \"{other}\""))),
            },
            Some(other) => Err(self.wrong(hf, format!("{other} is not a name"))),
        }
    }

    /// Returns the rotation style: llama's GGUF files have pairs permuted side by side.
    pub(super) fn rope_style(&self) -> RopeStyle {
        match self.file.container() {
            Container::Gguf { .. } => RopeStyle::Interleaved,
            Container::Safetensors => RopeStyle::Half,
        }
    }

    /// Reads a small tensor of positive factors, if it exists. (len)
    pub(super) fn optional_factors(&self, tensor: &str, len: usize) -> Result<Option<Vec<f32>>> {
        let Some(view) = self.file.tensor(tensor) else { return Ok(None) };
        super::check_shape(&view, &[len])?;
        let codec = super::codec(&view)?;
        let mut factors = vec![0.0; len];
        (codec.decode)(&view.data, &mut factors);
        if factors.iter().any(|&f| !f.is_finite() || f <= 0.0) {
            return Err(self.wrong(tensor, "its values are not all positive numbers".into()));
        }
        Ok(Some(factors))
    }

    pub(super) fn wrong(&self, key: &str, message: String) -> EngineError {
        wrong(key, message)
    }

    pub(super) fn missing(&self, key: &str) -> EngineError {
        EngineError::new("model.hyperparameter", format!("{key} is missing"), DAMAGED)
    }

    /// Error for a known family with a feature that is not implemented.
    pub(super) fn unsupported(&self, what: &str) -> EngineError {
        EngineError::new(
            "model.feature_unsupported",
            format!("this {} model uses {what}, which Inglenook cannot run yet", self.family.gguf_name()),
            "Choose another model.",
        )
    }
}

/// Merges `text_config` over the rest of the config, and both over the family's defaults.
fn language_part<'a>(config: &'a Value, defaults: &[(&str, f64)]) -> Cow<'a, Value> {
    let text = config.get("text_config").and_then(Value::as_object);
    let Some(all) = config.as_object().filter(|_| text.is_some() || !defaults.is_empty()) else {
        return Cow::Borrowed(config);
    };
    let whole = |x: f64| if x.fract() == 0.0 { Value::from(x as u64) } else { Value::from(x) };
    let mut merged: serde_json::Map<String, Value> =
        defaults.iter().map(|(key, value)| ((*key).to_owned(), whole(*value))).collect();
    let given = all.iter().chain(text.into_iter().flatten());
    merged.extend(given.map(|(key, value)| (key.clone(), value.clone())));
    Cow::Owned(Value::Object(merged))
}
