//! Metadata of a model file: the key-value pairs of GGUF, or the config.json of a safetensors folder.
//!
//! Values stay in the mapped file and are decoded on access; their bounds were checked at open.

mod value;

use std::ops::Range;

use crate::error::{FaultKind, FaultLocation, WeightsError};
use crate::mmap::SharedBytes;
pub use value::{Array, Value, ValueType};
use value::{brief, scalar};

/// A value of any type, byte for byte as a GGUF file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct RawValue {
    pub(crate) kind: ValueType,
    /// For arrays: element type, number of elements.
    pub(crate) array: Option<(ValueType, usize)>,
    /// The scalar, the string without its length, or the array's elements.
    pub(crate) bytes: Vec<u8>,
}

/// Location of a key-value pair in the file; all bounds are checked.
#[derive(Clone)]
pub(crate) struct PairLocation {
    pub key: Range<usize>,
    pub kind: ValueType,
    /// For arrays: element type, number of elements.
    pub array: Option<(ValueType, usize)>,
    /// The bytes of the scalar, of the string, or of the array's elements.
    pub bytes: Range<usize>,
    /// Whether strings within are UTF-8.
    pub utf8: bool,
}

/// All metadata of a file.
pub struct Metadata {
    pub(crate) file: String,
    bytes: SharedBytes,
    /// In the order of the file.
    entries: Vec<PairLocation>,
    /// Indices of `entries`, sorted by key.
    sorted: Vec<u32>,
    config: serde_json::Value,
}

impl Metadata {
    /// Metadata of a GGUF file; keys are UTF-8. Errors for a duplicate key.
    pub(crate) fn gguf(
        file: &str,
        bytes: SharedBytes,
        entries: Vec<PairLocation>,
    ) -> Result<Self, WeightsError> {
        let mut sorted: Vec<u32> = (0..entries.len() as u32).collect();
        sorted.sort_by(|&a, &b| {
            let key = |i: u32| &bytes[entries[i as usize].key.clone()];
            key(a).cmp(key(b))
        });
        let metadata = Self { file: file.into(), bytes, entries, sorted, config: serde_json::Value::Null };
        for pair in metadata.sorted.windows(2) {
            let (a, b) = (metadata.key_at(pair[0] as usize), metadata.key_at(pair[1] as usize));
            if a == b {
                let error = WeightsError::new(file, FaultKind::Malformed, "stands twice in the file");
                return Err(error.at(FaultLocation::Key(a.into())));
            }
        }
        Ok(metadata)
    }

    /// Metadata of a safetensors file: no pairs, but a config.json (or null).
    pub(crate) fn safetensors(file: &str, config: serde_json::Value) -> Self {
        let bytes = SharedBytes::from_static(&[]);
        Self { file: file.into(), bytes, entries: Vec::new(), sorted: Vec::new(), config }
    }

    /// Contents of config.json; null for a GGUF file or a bare safetensors file.
    pub fn config(&self) -> &serde_json::Value {
        &self.config
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All pairs, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        (0..self.entries.len()).map(|i| (self.key_at(i), self.value_at(i)))
    }

    /// All pairs, in file order, undecoded, to be written to another file.
    pub fn raw_pairs(&self) -> impl Iterator<Item = (&str, RawValue)> {
        self.entries.iter().enumerate().map(|(i, entry)| {
            let bytes = self.bytes[entry.bytes.clone()].to_vec();
            (self.key_at(i), RawValue { kind: entry.kind, array: entry.array, bytes })
        })
    }

    /// Value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        let found = self.sorted.binary_search_by(|&i| self.key_at(i as usize).cmp(key)).ok()?;
        Some(self.value_at(self.sorted[found] as usize))
    }

    fn key_at(&self, index: usize) -> &str {
        std::str::from_utf8(&self.bytes[self.entries[index].key.clone()]).expect("checked at open")
    }

    fn value_at(&self, index: usize) -> Value<'_> {
        let entry = &self.entries[index];
        let bytes = &self.bytes[entry.bytes.clone()];
        match (entry.kind, entry.array) {
            (_, Some((element, len))) => {
                let key = self.key_at(index);
                Value::Array(Array { file: &self.file, key, element, len, bytes, utf8: entry.utf8 })
            }
            (ValueType::Str, None) => std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Str),
            (kind, None) => scalar(kind, bytes),
        }
    }

    /// A string. Like all getters below, errors with the key's name if it is missing or has another type.
    pub fn str(&self, key: &str) -> Result<&str, WeightsError> {
        self.required(key, "string", self.opt_str(key)?)
    }

    /// A string; None if missing.
    pub fn opt_str(&self, key: &str) -> Result<Option<&str>, WeightsError> {
        self.typed(key, "string", |v| v.as_str())
    }

    /// Any integer type that fits.
    pub fn u32(&self, key: &str) -> Result<u32, WeightsError> {
        self.required(key, "u32", self.opt_u32(key)?)
    }

    /// As [`Metadata::u32`]; None if missing.
    pub fn opt_u32(&self, key: &str) -> Result<Option<u32>, WeightsError> {
        self.typed(key, "u32", |v| v.as_u64().and_then(|v| u32::try_from(v).ok()))
    }

    /// Any integer type that is not negative.
    pub fn u64(&self, key: &str) -> Result<u64, WeightsError> {
        self.required(key, "u64", self.opt_u64(key)?)
    }

    /// As [`Metadata::u64`]; None if missing.
    pub fn opt_u64(&self, key: &str) -> Result<Option<u64>, WeightsError> {
        self.typed(key, "u64", |v| v.as_u64())
    }

    /// Either float type.
    pub fn f32(&self, key: &str) -> Result<f32, WeightsError> {
        self.required(key, "f32", self.opt_f32(key)?)
    }

    /// As [`Metadata::f32`]; None if missing.
    pub fn opt_f32(&self, key: &str) -> Result<Option<f32>, WeightsError> {
        self.typed(key, "f32", |v| v.as_f32())
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<bool, WeightsError> {
        self.required(key, "bool", self.opt_bool(key)?)
    }

    /// A boolean; None if missing.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, WeightsError> {
        self.typed(key, "bool", |v| v.as_bool())
    }

    /// An array.
    pub fn array(&self, key: &str) -> Result<Array<'_>, WeightsError> {
        self.required(key, "array", self.opt_array(key)?)
    }

    /// An array; None if missing.
    pub fn opt_array(&self, key: &str) -> Result<Option<Array<'_>>, WeightsError> {
        self.typed(key, "array", |v| v.as_array())
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl Fn(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, WeightsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        convert(value).map(Some).ok_or_else(|| {
            let cause = format!("expected {expected}, found {} {}", value.type_name(), brief(&value));
            self.error(key, FaultKind::KeyInvalid, cause.trim_end())
        })
    }

    fn required<T>(&self, key: &str, expected: &str, value: Option<T>) -> Result<T, WeightsError> {
        value.ok_or_else(|| {
            self.error(key, FaultKind::KeyMissing, &format!("is missing ({expected} expected)"))
        })
    }

    /// An error that names this file and a key, for those who know what its value must be.
    pub fn error(&self, key: &str, kind: FaultKind, cause: &str) -> WeightsError {
        WeightsError::new(self.file.clone(), kind, cause).at(FaultLocation::Key(key.into()))
    }
}
