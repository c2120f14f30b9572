//! Safetensors: header length, JSON header, data.
//!
//! The header is parsed strictly (no duplicate keys, no overflowing numbers). Guarantees that the tensors tile the data:
//! no holes, no overlap, nothing after the last one.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::dtype::DType;
use crate::error::{FaultKind, FaultLocation, WeightsError, shown};
use crate::tensor::TensorInfo;

/// Limit of the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The largest published models have fewer than 100 000 tensors per file.
const MAX_TENSORS: usize = 1 << 18;
/// Real tensors have at most 5 dimensions.
const MAX_DIMS: usize = 16;
/// Longer names and metadata strings are refused before decoding copies them.
const MAX_STRING_BYTES: usize = 1 << 20;

/// Contents of a safetensors file.
pub struct ParsedSafetensors {
    /// In data order; ranges are relative to the file.
    pub tensors: Vec<TensorInfo>,
    pub data_start: usize,
}

/// Whether these bytes can be the start of a safetensors file.
pub fn sniff(bytes: &[u8]) -> bool {
    let Some((len, rest)) = bytes.split_first_chunk::<8>() else { return false };
    u64::from_le_bytes(*len) <= MAX_HEADER_BYTES && matches!(rest.first(), Some(b'{'))
}

/// Parses and checks a whole file.
pub fn parse(file: &str, bytes: &[u8]) -> Result<ParsedSafetensors, WeightsError> {
    let error = |kind, cause: String| WeightsError::new(file, kind, cause);
    let Some((len, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(error(
            FaultKind::Truncated,
            format!("has only {} bytes: too short for a header", bytes.len()),
        ));
    };
    let len = u64::from_le_bytes(*len);
    if len > MAX_HEADER_BYTES {
        let cause = format!("claims a header of {len} bytes; the limit is {MAX_HEADER_BYTES}");
        return Err(error(FaultKind::Limit, cause));
    }
    let len = len as usize; // at most 100 MB
    let Some(header) = rest.get(..len) else {
        let cause = format!("ends inside its header of {len} bytes");
        return Err(error(FaultKind::Truncated, cause));
    };
    check_strings(header).map_err(|cause| error(FaultKind::Limit, cause))?;
    let header = std::str::from_utf8(header).map_err(|e| {
        error(FaultKind::Malformed, format!("the header is not UTF-8 at byte {}", e.valid_up_to()))
    })?;
    let mut tensors = Vec::new();
    let mut json = serde_json::Deserializer::from_str(header);
    HeaderSeed { tensors: &mut tensors }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|e| error(FaultKind::Malformed, format!("the header is wrong: {e}")))?;
    tile(file, 8 + len, bytes.len(), &mut tensors)?;
    Ok(ParsedSafetensors { tensors, data_start: 8 + len })
}

/// Refuses strings of absurd length before anything decodes them.
fn check_strings(header: &[u8]) -> Result<(), String> {
    let (mut inside, mut escaped, mut run) = (false, false, 0usize);
    for &byte in header {
        run = if inside { run + 1 } else { 0 };
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
        if run > MAX_STRING_BYTES {
            return Err(format!("the header holds a string of more than {MAX_STRING_BYTES} bytes"));
        }
    }
    Ok(())
}

/// Checks that the tensors tile the data, sorts them by offset, and makes their ranges relative to the file.
fn tile(
    file: &str,
    data_start: usize,
    file_len: usize,
    tensors: &mut [TensorInfo],
) -> Result<(), WeightsError> {
    tensors.sort_by_key(|t| (t.range.start, t.range.end));
    for pair in tensors.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            let cause = format!("shares bytes with tensor \"{}\"", shown(&pair[0].name));
            return Err(WeightsError::new(file, FaultKind::Malformed, cause)
                .at(FaultLocation::Tensor(pair[1].name.clone())));
        }
    }
    let data_len = file_len - data_start;
    let mut end = 0;
    for tensor in tensors {
        let error = |kind, cause: String| {
            WeightsError::new(file, kind, cause).at(FaultLocation::Tensor(tensor.name.clone()))
        };
        if tensor.range.start != end {
            let cause = format!("begins at {} and leaves a hole after {end}", tensor.range.start);
            return Err(error(FaultKind::Malformed, cause));
        }
        end = tensor.range.end;
        if end > data_len {
            let cause = format!("ends at {end}, but the file has only {data_len} bytes of data");
            return Err(error(FaultKind::Truncated, cause));
        }
        tensor.range = data_start + tensor.range.start..data_start + end;
    }
    if end != data_len {
        let cause = format!("{} bytes after the last tensor belong to no tensor", data_len - end);
        return Err(WeightsError::new(file, FaultKind::Malformed, cause));
    }
    Ok(())
}

/// Deserializes the whole header.
struct HeaderSeed<'t> {
    tensors: &'t mut Vec<TensorInfo>,
}

impl<'de> DeserializeSeed<'de> for HeaderSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeaderSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if names.len() == MAX_TENSORS {
                return Err(A::Error::custom(format!("more than {MAX_TENSORS} tensors")));
            }
            if name == "__metadata__" {
                map.next_value_seed(StringMapSeed)?;
            } else {
                let info = map.next_value_seed(TensorInfoSeed { name: &name })?;
                self.tensors.push(info);
            }
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!("\"{}\" stands twice", shown(&name))));
            }
        }
        Ok(())
    }
}

/// Deserializes `__metadata__`, a map of strings, and drops it.
struct StringMapSeed;

impl<'de> DeserializeSeed<'de> for StringMapSeed {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for StringMapSeed {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of strings as __metadata__")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<std::borrow::Cow<str>, std::borrow::Cow<str>>()?.is_some() {}
        Ok(())
    }
}

/// Deserializes one tensor: dtype, shape and data_offsets, each exactly once; other fields are ignored.
struct TensorInfoSeed<'n> {
    name: &'n str,
}

impl<'de> DeserializeSeed<'de> for TensorInfoSeed<'_> {
    type Value = TensorInfo;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TensorInfo, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TensorInfoSeed<'_> {
    type Value = TensorInfo;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a map for tensor \"{}\"", shown(self.name))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TensorInfo, A::Error> {
        let name = shown(self.name);
        let twice = |field: &str| A::Error::custom(format!("tensor \"{name}\": {field} stands twice"));
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(field) = map.next_key::<std::borrow::Cow<str>>()? {
            match &*field {
                "dtype" => {
                    let text = map.next_value::<std::borrow::Cow<str>>()?;
                    let known = DType::from_safetensors(&text).ok_or_else(|| {
                        A::Error::custom(format!("tensor \"{name}\": unknown dtype \"{}\"", shown(&text)))
                    })?;
                    if dtype.replace(known).is_some() {
                        return Err(twice("dtype"));
                    }
                }
                "shape" => {
                    if shape.replace(map.next_value_seed(NumberListSeed { max_len: MAX_DIMS })?).is_some() {
                        return Err(twice("shape"));
                    }
                }
                "data_offsets" => {
                    if offsets.replace(map.next_value_seed(NumberListSeed { max_len: 2 })?).is_some() {
                        return Err(twice("data_offsets"));
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = |field: &str| A::Error::custom(format!("tensor \"{name}\": {field} is missing"));
        let dtype = dtype.ok_or_else(|| missing("dtype"))?;
        let shape = shape.ok_or_else(|| missing("shape"))?;
        let offsets = offsets.ok_or_else(|| missing("data_offsets"))?;
        tensor(self.name, dtype, shape, &offsets)
            .map_err(|cause| A::Error::custom(format!("tensor \"{name}\": {cause}")))
    }
}

/// Builds a tensor entry from its three fields.
fn tensor(name: &str, dtype: DType, shape: Vec<usize>, offsets: &[usize]) -> Result<TensorInfo, String> {
    let &[start, end] = offsets else {
        return Err("data_offsets are not two numbers".into());
    };
    if name.is_empty() {
        return Err("an empty name".into());
    }
    let n_cols = shape.last().copied().unwrap_or(1);
    let rows = shape.iter().rev().skip(1).try_fold(1usize, |product, &dim| product.checked_mul(dim));
    let elements = rows.and_then(|rows| rows.checked_mul(n_cols));
    let n_bytes = dtype
        .checked_row_bytes(n_cols as u64)
        .and_then(|row| row.checked_mul(rows? as u64))
        .filter(|_| elements.is_some())
        .ok_or_else(|| format!("the shape {shape:?} is impossible for {dtype}"))?;
    let len = end.checked_sub(start).ok_or_else(|| format!("ends at {end} before it begins at {start}"))?;
    if len as u64 != n_bytes {
        return Err(format!("shape {shape:?} of {dtype} takes {n_bytes} bytes, data_offsets say {len}"));
    }
    Ok(TensorInfo { name: name.to_owned(), dtype, shape, part: 0, range: start..end })
}

/// A list of at most `most` numbers that fit `usize`.
struct NumberListSeed {
    max_len: usize,
}

impl<'de> DeserializeSeed<'de> for NumberListSeed {
    type Value = Vec<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<usize>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for NumberListSeed {
    type Value = Vec<usize>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a list of at most {} whole numbers", self.max_len)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<usize>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = seq.next_element::<usize>()? {
            if numbers.len() == self.max_len {
                return Err(A::Error::custom(format!("a list of more than {} numbers", self.max_len)));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }
}
