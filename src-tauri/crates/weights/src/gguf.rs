//! GGUF, versions 2 and 3, little-endian: magic, version, counts, metadata pairs, tensor table, padding, data.
//!
//! Reads the tables once and checks every number against the file. Guarantees that tensors are aligned ranges inside the
//! file without overlap. Never allocates by a number that has not been compared with the bytes present.

use std::ops::Range;
use std::path::PathBuf;

use crate::dtype::DType;
use crate::error::{FaultKind, FaultLocation, WeightsError, shown};
use crate::metadata::{Metadata, PairLocation, ValueType};
use crate::mmap::SharedBytes;
use crate::tensor::{Container, FilePart, TensorInfo};
use crate::weight_file::WeightFile;

/// First bytes of a GGUF file.
pub const MAGIC: &[u8; 4] = b"GGUF";
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;
/// Real files have fewer than 100 pairs and 20 000 tensors; this bounds memory and time for malicious ones.
const MAX_PAIRS: u64 = 1 << 16;
const MAX_TENSORS: u64 = 1 << 18;
/// Limits of the format.
const MAX_KEY_BYTES: u64 = 65_535;
const MAX_NAME_BYTES: u64 = 64;
const MAX_DIMS: u32 = 4;
const DEFAULT_ALIGNMENT: u32 = 32;
/// Sensible alignments: 8 keeps every block format aligned in a page-aligned map; 1 MiB is ample padding.
const ALIGNMENTS: std::ops::RangeInclusive<u32> = 8..=1 << 20;
/// Minimum size of a pair (key length, one key byte, type, one value byte) and of a tensor entry (name length, one name
/// byte, dimension count, one dimension, type, offset).
const MIN_PAIR_BYTES: u64 = 8 + 1 + 4 + 1;
const MIN_TENSOR_BYTES: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// Contents of a GGUF file.
pub struct ParsedGguf {
    pub version: u32,
    pub metadata: Metadata,
    /// In table order; ranges are relative to the file.
    pub tensors: Vec<TensorInfo>,
    /// Offset of the data; everything before is header.
    pub data_start: usize,
}

impl ParsedGguf {
    /// The model of a GGUF that is one file.
    pub fn into_file(
        self,
        path: PathBuf,
        name: &str,
        bytes: SharedBytes,
    ) -> Result<WeightFile, WeightsError> {
        let container = Container::Gguf { version: self.version };
        let parts = vec![FilePart { name: name.to_owned(), bytes, data_start: self.data_start }];
        WeightFile::assemble(path, container, self.metadata, parts, self.tensors)
    }
}

/// Reads and checks a whole file.
pub fn parse(file: &str, bytes: &SharedBytes) -> Result<ParsedGguf, WeightsError> {
    parse_within(file, bytes, bytes.len())
}

/// As [`parse`], where `bytes` holds only the header of a file of `file_len` bytes.
pub fn parse_within(file: &str, bytes: &SharedBytes, file_len: usize) -> Result<ParsedGguf, WeightsError> {
    let mut cursor = GgufCursor { file, bytes, at: MAGIC.len() };
    let version = cursor.u32()?;
    check_version(file, version)?;
    let (n_tensors, n_pairs) = (cursor.u64()?, cursor.u64()?);
    cursor.check_count("tensors", n_tensors, MIN_TENSOR_BYTES, MAX_TENSORS)?;
    cursor.check_count("metadata pairs", n_pairs, MIN_PAIR_BYTES, MAX_PAIRS)?;
    let mut entries = Vec::new();
    for _ in 0..n_pairs {
        entries.push(cursor.pair()?);
    }
    let metadata = Metadata::gguf(file, bytes.clone(), entries)?;
    let alignment = alignment(&metadata)?;
    let mut tensors = Vec::new();
    for _ in 0..n_tensors {
        tensors.push(cursor.tensor()?);
    }
    let data_start = cursor.at.next_multiple_of(alignment);
    place_tensors(file, file_len, data_start, alignment, &mut tensors)?;
    Ok(ParsedGguf { version, metadata, tensors, data_start: data_start.min(bytes.len()) })
}

fn check_version(file: &str, version: u32) -> Result<(), WeightsError> {
    if VERSIONS.contains(&version) {
        return Ok(());
    }
    let cause = if VERSIONS.contains(&version.swap_bytes()) {
        "a GGUF file for big-endian machines".to_owned()
    } else {
        format!("GGUF version {version}; versions 2 and 3 are read")
    };
    Err(WeightsError::new(file, FaultKind::Unsupported, cause))
}

/// Value of `general.alignment`, or the default.
fn alignment(metadata: &Metadata) -> Result<usize, WeightsError> {
    const KEY: &str = "general.alignment";
    let alignment = metadata.opt_u32(KEY)?.unwrap_or(DEFAULT_ALIGNMENT);
    if alignment.is_power_of_two() && ALIGNMENTS.contains(&alignment) {
        return Ok(alignment as usize);
    }
    let cause = format!("is {alignment}; must be a power of two from 8 to 1048576");
    Err(metadata.error(KEY, FaultKind::KeyInvalid, &cause))
}

struct GgufCursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl GgufCursor<'_> {
    fn error(&self, kind: FaultKind, cause: impl Into<String>) -> WeightsError {
        WeightsError::new(self.file, kind, cause)
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    fn take(&mut self, n: u64) -> Result<Range<usize>, WeightsError> {
        if n > self.left() {
            let cause = format!("ends after {} bytes, in the middle of its tables", self.bytes.len());
            return Err(self.error(FaultKind::Truncated, cause));
        }
        let start = self.at;
        self.at += n as usize; // no larger than what is left
        Ok(start..self.at)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WeightsError> {
        let range = self.take(N as u64)?;
        Ok(self.bytes[range].try_into().expect("N bytes were taken"))
    }

    fn u32(&mut self) -> Result<u32, WeightsError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WeightsError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Checks a count against the remaining bytes and a limit.
    fn check_count(&self, what: &str, n: u64, min_bytes: u64, max: u64) -> Result<(), WeightsError> {
        if n > self.left() / min_bytes {
            let cause = format!("claims {n} {what}, more than the file can hold");
            return Err(self.error(FaultKind::Truncated, cause));
        }
        if n > max {
            return Err(self.error(FaultKind::Limit, format!("claims {n} {what}; the limit is {max}")));
        }
        Ok(())
    }

    /// Reads a length-prefixed string and returns its range.
    fn string(&mut self) -> Result<Range<usize>, WeightsError> {
        let n = self.u64()?;
        self.take(n)
    }

    fn pair(&mut self) -> Result<PairLocation, WeightsError> {
        let n = self.u64()?;
        if n == 0 || n > MAX_KEY_BYTES {
            return Err(self.error(FaultKind::Malformed, format!("a metadata key of {n} bytes")));
        }
        let key = self.take(n)?;
        let Ok(name) = std::str::from_utf8(&self.bytes[key.clone()]) else {
            return Err(self.error(FaultKind::Malformed, "a metadata key that is not UTF-8"));
        };
        let name = name.to_owned();
        let at_key = |e: WeightsError| e.at(FaultLocation::Key(name.clone()));
        self.value(key).map_err(at_key)
    }

    fn value(&mut self, key: Range<usize>) -> Result<PairLocation, WeightsError> {
        let kind = self.value_type()?;
        let mut entry = PairLocation { key, kind, array: None, bytes: 0..0, utf8: true };
        match kind {
            ValueType::Str => {
                entry.bytes = self.string()?;
                entry.utf8 = std::str::from_utf8(&self.bytes[entry.bytes.clone()]).is_ok();
            }
            ValueType::Array => {
                let (element, len) = (self.value_type()?, self.u64()?);
                if element == ValueType::Array {
                    return Err(self.error(FaultKind::KeyInvalid, "an array of arrays"));
                }
                self.check_count("elements", len, element.min_bytes() as u64, u64::MAX)?;
                entry.array = Some((element, len as usize)); // fits: compared with the file's length
                (entry.bytes, entry.utf8) = self.elements(element, len)?;
            }
            ValueType::U8
            | ValueType::I8
            | ValueType::U16
            | ValueType::I16
            | ValueType::U32
            | ValueType::I32
            | ValueType::F32
            | ValueType::Bool
            | ValueType::U64
            | ValueType::I64
            | ValueType::F64 => entry.bytes = self.take(kind.min_bytes() as u64)?,
        }
        Ok(entry)
    }

    fn value_type(&mut self) -> Result<ValueType, WeightsError> {
        let id = self.u32()?;
        ValueType::from_id(id)
            .ok_or_else(|| self.error(FaultKind::KeyInvalid, format!("has the unknown value type {id}")))
    }

    /// Range of an array's elements, and whether strings among them are UTF-8.
    fn elements(&mut self, element: ValueType, len: u64) -> Result<(Range<usize>, bool), WeightsError> {
        if element != ValueType::Str {
            return Ok((self.take(len * element.min_bytes() as u64)?, true)); // checked against the file: no overflow
        }
        let (start, mut utf8) = (self.at, true);
        for _ in 0..len {
            let string = self.string()?;
            utf8 &= std::str::from_utf8(&self.bytes[string]).is_ok();
        }
        Ok((start..self.at, utf8))
    }

    /// Reads a tensor entry. Its range is relative to the data until [`place_tensors`] adjusts it.
    fn tensor(&mut self) -> Result<TensorInfo, WeightsError> {
        let n = self.u64()?;
        if n == 0 || n > MAX_NAME_BYTES {
            let cause = format!("a tensor name of {n} bytes; 1 to {MAX_NAME_BYTES} are allowed");
            return Err(self.error(FaultKind::Malformed, cause));
        }
        let range = self.take(n)?;
        let name = match std::str::from_utf8(&self.bytes[range]) {
            Ok(name) => name.to_owned(),
            Err(_) => return Err(self.error(FaultKind::Malformed, "a tensor name that is not UTF-8")),
        };
        let at_tensor = |e: WeightsError| e.at(FaultLocation::Tensor(name.clone()));
        let (dtype, shape, n_bytes, offset) = self.tensor_row().map_err(at_tensor)?;
        let overflow =
            || at_tensor(self.error(FaultKind::Malformed, format!("offset {offset} lies outside the file")));
        let end = offset.checked_add(n_bytes).ok_or_else(overflow)?;
        let (Ok(start), Ok(end)) = (usize::try_from(offset), usize::try_from(end)) else {
            return Err(overflow());
        };
        Ok(TensorInfo { name, dtype, shape, part: 0, range: start..end })
    }

    /// Reads block format, shape (outermost first), length in bytes and offset.
    fn tensor_row(&mut self) -> Result<(DType, Vec<usize>, u64, u64), WeightsError> {
        let n_dims = self.u32()?;
        if n_dims == 0 || n_dims > MAX_DIMS {
            return Err(self.error(
                FaultKind::Malformed,
                format!("has {n_dims} dimensions; 1 to {MAX_DIMS} are allowed"),
            ));
        }
        let mut dims = [1u64; MAX_DIMS as usize];
        let dims = &mut dims[..n_dims as usize];
        for dim in dims.iter_mut() {
            *dim = self.u64()?;
        }
        let id = self.u32()?;
        let offset = self.u64()?;
        let dtype = DType::from_gguf_id(id).ok_or_else(|| {
            self.error(FaultKind::DType, format!("is stored in the unknown block format {id}"))
        })?;
        let shape_text = || dims.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        if dims.contains(&0) {
            return Err(self.error(FaultKind::Malformed, format!("has an empty shape ({})", shape_text())));
        }
        if dims[0] % dtype.block_len() as u64 != 0 {
            let (name, len) = (dtype.name(), dtype.block_len());
            let cause =
                format!("rows of {} elements are not a whole number of {name} blocks of {len}", dims[0]);
            return Err(self.error(FaultKind::Malformed, cause));
        }
        let rows = dims[1..].iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
        let n_bytes = rows.and_then(|rows| dtype.checked_row_bytes(dims[0])?.checked_mul(rows));
        let elements = rows.and_then(|rows| rows.checked_mul(dims[0]));
        let shape: Option<Vec<usize>> = dims.iter().rev().map(|&dim| usize::try_from(dim).ok()).collect();
        match (n_bytes, elements, shape) {
            (Some(n_bytes), Some(_), Some(shape)) => Ok((dtype, shape, n_bytes, offset)),
            _ => Err(self.error(FaultKind::Malformed, format!("has an impossible shape ({})", shape_text()))),
        }
    }
}

/// Makes the tensors' ranges relative to the file. They must be contiguous except for padding to `alignment`, as every
/// writer lays them out, and end inside the file.
fn place_tensors(
    file: &str,
    file_len: usize,
    data_start: usize,
    alignment: usize,
    tensors: &mut [TensorInfo],
) -> Result<(), WeightsError> {
    let mut order: Vec<u32> = (0..tensors.len() as u32).collect();
    order.sort_by_key(|&i| (tensors[i as usize].range.start, tensors[i as usize].range.end));
    let mut expected = Some(0usize);
    let mut previous: Option<u32> = None;
    for &i in &order {
        let TensorInfo { name, range, .. } = &tensors[i as usize];
        let error = |kind, cause: String| {
            WeightsError::new(file, kind, cause).at(FaultLocation::Tensor(name.clone()))
        };
        let start = range.start;
        if start % alignment != 0 {
            let cause = format!("offset {start} is not a multiple of the alignment {alignment}");
            return Err(error(FaultKind::Malformed, cause));
        }
        if expected.is_none_or(|expected| start < expected) {
            let other = previous.map_or("", |p| &tensors[p as usize].name);
            return Err(error(
                FaultKind::Malformed,
                format!("shares bytes with tensor \"{}\"", shown(other)),
            ));
        }
        if expected != Some(start) {
            return Err(error(FaultKind::Malformed, format!("offset {start} leaves a hole before it")));
        }
        if data_start.checked_add(range.end).is_none_or(|end| end > file_len) {
            let end = order.last().map_or(range.end, |&last| tensors[last as usize].range.end);
            let needed = data_start.saturating_add(end);
            let cause = format!(
                "ends beyond the file, which has {file_len} of the {needed} bytes that its tensors need"
            );
            return Err(error(FaultKind::Truncated, cause));
        }
        expected = range.end.checked_next_multiple_of(alignment);
        previous = Some(i);
    }
    for tensor in tensors {
        tensor.range = data_start + tensor.range.start..data_start + tensor.range.end;
    }
    Ok(())
}
