//! Writes GGUF version 3, little-endian: for converted models, benchmark shapes and tests.
//!
//! Guarantees that a written file opens with the same pairs and tensors.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use crate::dtype::DType;
use crate::error::WeightsError;
use crate::gguf;
use crate::metadata::{RawValue, ValueType};
use crate::mmap::SharedBytes;
use crate::tensor::{Container, FilePart};
use crate::weight_file::WeightFile;

const ALIGNMENT: usize = 32;

/// A metadata value to write.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnedValue {
    /// Unsigned 32-bit integer.
    U32(u32),
    /// Signed 32-bit integer.
    I32(i32),
    /// Unsigned 64-bit integer.
    U64(u64),
    /// 32-bit float.
    F32(f32),
    /// Boolean.
    Bool(bool),
    /// UTF-8 string.
    Str(String),
    /// Array of unsigned 32-bit integers.
    U32s(Vec<u32>),
    /// Array of signed 32-bit integers.
    I32s(Vec<i32>),
    /// Array of 32-bit floats.
    F32s(Vec<f32>),
    /// Array of booleans.
    Bools(Vec<bool>),
    /// Array of UTF-8 strings.
    Strs(Vec<String>),
    /// A value copied byte for byte from another file.
    Raw(RawValue),
}

/// Callback that writes the blocks of one tensor: exactly the bytes of its shape.
pub type TensorFillFn = Box<dyn Fn(&mut dyn Write) -> io::Result<()>>;

/// Tensors up to this size keep their data in an outline: norms, rotary factors.
const MAX_OUTLINED_BYTES: u64 = 1 << 16;

/// A tensor to write.
struct PendingTensor {
    name: String,
    dtype: DType,
    /// Outermost first.
    shape: Vec<usize>,
    n_bytes: u64,
    fill: TensorFillFn,
}

/// Collects metadata pairs and tensors, and writes them in that order.
#[derive(Default)]
pub struct GgufWriter {
    pairs: Vec<(String, OwnedValue)>,
    tensors: Vec<PendingTensor>,
}

impl GgufWriter {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key; a later value replaces an earlier one.
    pub fn set(&mut self, key: &str, value: OwnedValue) -> &mut Self {
        self.pairs.retain(|pair| pair.0 != key);
        self.pairs.push((key.to_owned(), value));
        self
    }

    /// Adds a tensor from its encoded blocks; `shape` is outermost first. Panics if `bytes` has the wrong length or the
    /// format has no GGUF type number.
    pub fn tensor(&mut self, name: &str, dtype: DType, shape: &[usize], bytes: Vec<u8>) -> &mut Self {
        assert_eq!(bytes.len() as u64, n_bytes(dtype, shape), "{name}: bytes for the shape");
        self.tensor_from(name, dtype, shape, Box::new(move |out| out.write_all(&bytes)))
    }

    /// Adds a tensor whose blocks are produced while the file is written, for models larger than memory. Panics if the
    /// format has no GGUF type number. [`GgufWriter::write`] errors if `fill` writes the wrong number of bytes.
    pub fn tensor_from(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        fill: TensorFillFn,
    ) -> &mut Self {
        assert!(dtype.gguf_id().is_some(), "{name}: {dtype} has no GGUF number");
        let n_bytes = n_bytes(dtype, shape);
        self.tensors.push(PendingTensor {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            n_bytes,
            fill,
        });
        self
    }

    /// Adds a tensor from its values, which are encoded. Panics if the format has no encoder or the lengths differ.
    pub fn encode(&mut self, name: &str, dtype: DType, shape: &[usize], values: &[f32]) -> &mut Self {
        let n_cols = shape.last().copied().expect("a tensor has a dimension");
        let encode = dtype.encoder().unwrap_or_else(|| panic!("{name}: {dtype} cannot be encoded"));
        let mut bytes = vec![0; shape.iter().product::<usize>() / n_cols * dtype.row_bytes(n_cols)];
        encode(values, &mut bytes);
        self.tensor(name, dtype, shape, bytes)
    }

    /// Writes the file to `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = self.header();
        let padding = header.len().next_multiple_of(ALIGNMENT) - header.len();
        out.write_all(&header)?;
        out.write_all(&[0; ALIGNMENT][..padding])?;
        for tensor in &self.tensors {
            let mut counted = CountingWriter { out: &mut *out, n_bytes: 0 };
            (tensor.fill)(&mut counted)?;
            if counted.n_bytes != tensor.n_bytes {
                return Err(io::Error::other(format!(
                    "{}: {} bytes for {}",
                    tensor.name, counted.n_bytes, tensor.n_bytes
                )));
            }
            let padding = tensor.n_bytes.next_multiple_of(ALIGNMENT as u64) - tensor.n_bytes;
            out.write_all(&[0; ALIGNMENT][..padding as usize])?;
        }
        out.flush()
    }

    /// Writes the file into memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("memory takes all that is written");
        bytes
    }

    /// Length of the file in bytes.
    pub fn n_bytes(&self) -> u64 {
        let padded = |n: u64| n.next_multiple_of(ALIGNMENT as u64);
        padded(self.header().len() as u64)
            + self.tensors.iter().map(|tensor| padded(tensor.n_bytes)).sum::<u64>()
    }

    /// The file as a reader will see it, without writing it: pairs and tensor table. Only small tensors have data; the
    /// others are empty. Errors if the file would not open.
    pub fn outline(&self, name: &str) -> Result<WeightFile, WeightsError> {
        let mut bytes = self.header();
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        let header = SharedBytes::from_vec(bytes);
        let file_len = usize::try_from(self.n_bytes()).unwrap_or(usize::MAX);
        let mut parsed = gguf::parse_within(name, &header, file_len)?;
        let mut small = Vec::new();
        for (info, tensor) in parsed.tensors.iter_mut().zip(&self.tensors) {
            info.part = 1;
            info.range = match tensor.n_bytes <= MAX_OUTLINED_BYTES {
                true => append(&mut small, &tensor.fill),
                false => 0..0,
            };
        }
        let part = |bytes: SharedBytes| FilePart { name: name.to_owned(), data_start: bytes.len(), bytes };
        let parts = vec![part(header), part(SharedBytes::from_vec(small))];
        let container = Container::Gguf { version: parsed.version };
        WeightFile::assemble(PathBuf::from(name), container, parsed.metadata, parts, parsed.tensors)
    }

    fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(crate::gguf::MAGIC);
        out.extend_from_slice(&3u32.to_le_bytes());
        out.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.pairs.len() as u64).to_le_bytes());
        for (key, value) in &self.pairs {
            put_str(&mut out, key);
            put_value(&mut out, value);
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            put_str(&mut out, &tensor.name);
            out.extend_from_slice(&(tensor.shape.len() as u32).to_le_bytes());
            for &dim in tensor.shape.iter().rev() {
                out.extend_from_slice(&(dim as u64).to_le_bytes());
            }
            out.extend_from_slice(&tensor.dtype.gguf_id().expect("checked when added").to_le_bytes());
            out.extend_from_slice(&offset.to_le_bytes());
            offset += tensor.n_bytes.next_multiple_of(ALIGNMENT as u64);
        }
        out
    }
}

/// Appends a tensor's data to `bytes` and returns its range; the range is empty if `fill` fails.
fn append(bytes: &mut Vec<u8>, fill: &TensorFillFn) -> Range<usize> {
    let start = bytes.len();
    match fill(bytes) {
        Ok(()) => start..bytes.len(),
        Err(_) => start..start,
    }
}

/// Bytes of all blocks of a tensor. Panics for a shape without dimensions.
fn n_bytes(dtype: DType, shape: &[usize]) -> u64 {
    let (n_cols, outer) = shape.split_last().expect("a tensor has a dimension");
    outer.iter().product::<usize>() as u64 * dtype.row_bytes(*n_cols) as u64
}

/// Counts the bytes written through it.
struct CountingWriter<'a> {
    out: &'a mut dyn Write,
    n_bytes: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.n_bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn put_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_type(out: &mut Vec<u8>, kind: ValueType) {
    out.extend_from_slice(&(kind as u32).to_le_bytes());
}

fn put_array<T>(out: &mut Vec<u8>, kind: ValueType, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_type(out, ValueType::Array);
    put_type(out, kind);
    out.extend_from_slice(&(items.len() as u64).to_le_bytes());
    for item in items {
        put(out, item);
    }
}

fn put_value(out: &mut Vec<u8>, value: &OwnedValue) {
    use OwnedValue as V;
    use ValueType as T;
    let mut scalar = |kind, bytes: &[u8]| {
        put_type(out, kind);
        out.extend_from_slice(bytes);
    };
    match value {
        V::U32(v) => scalar(T::U32, &v.to_le_bytes()),
        V::I32(v) => scalar(T::I32, &v.to_le_bytes()),
        V::U64(v) => scalar(T::U64, &v.to_le_bytes()),
        V::F32(v) => scalar(T::F32, &v.to_le_bytes()),
        V::Bool(v) => scalar(T::Bool, &[u8::from(*v)]),
        V::Str(v) => {
            put_type(out, T::Str);
            put_str(out, v);
        }
        V::U32s(v) => put_array(out, T::U32, v, |out, v| out.extend_from_slice(&v.to_le_bytes())),
        V::I32s(v) => put_array(out, T::I32, v, |out, v| out.extend_from_slice(&v.to_le_bytes())),
        V::F32s(v) => put_array(out, T::F32, v, |out, v| out.extend_from_slice(&v.to_le_bytes())),
        V::Bools(v) => put_array(out, T::Bool, v, |out, v| out.push(u8::from(*v))),
        V::Strs(v) => put_array(out, T::Str, v, |out, v| put_str(out, v)),
        V::Raw(RawValue { kind, array, bytes }) => {
            put_type(out, *kind);
            if let Some((element, len)) = array {
                put_type(out, *element);
                out.extend_from_slice(&(*len as u64).to_le_bytes());
            } else if *kind == T::Str {
                out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            }
            out.extend_from_slice(bytes);
        }
    }
}
