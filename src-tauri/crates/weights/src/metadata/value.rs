//! Types, values and arrays of metadata, as GGUF defines them. Arrays are decoded on access.

use crate::error::{FaultKind, FaultLocation, WeightsError};

/// Type of a GGUF value; the discriminant is its number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named as the types they are
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    Str = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    const ALL: [(Self, &'static str, usize); 13] = [
        (Self::U8, "u8", 1),
        (Self::I8, "i8", 1),
        (Self::U16, "u16", 2),
        (Self::I16, "i16", 2),
        (Self::U32, "u32", 4),
        (Self::I32, "i32", 4),
        (Self::F32, "f32", 4),
        (Self::Bool, "bool", 1),
        (Self::Str, "string", 8),
        (Self::Array, "array", 12),
        (Self::U64, "u64", 8),
        (Self::I64, "i64", 8),
        (Self::F64, "f64", 8),
    ];

    /// Type by its number.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).map(|row| row.0)
    }

    /// Name, for messages.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Bytes of a scalar; the minimum size of strings and arrays.
    pub fn min_bytes(self) -> usize {
        Self::ALL[self as usize].2
    }
}

/// A value, borrowed from the file.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // named as the types they are
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Str(&'a str),
    /// A string that is not UTF-8.
    Bytes(&'a [u8]),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Value<'a> {
    /// Name of its type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::F32(_) => "f32",
            Self::Bool(_) => "bool",
            Self::Str(_) => "string",
            Self::Bytes(_) => "string that is not UTF-8",
            Self::Array(_) => "array",
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F64(_) => "f64",
        }
    }

    /// Any integer type; None if negative.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|v| u64::try_from(v).ok())
    }

    /// Any integer type that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|v| i64::try_from(v).ok())
    }

    fn as_i128(&self) -> Option<i128> {
        match *self {
            Self::U8(v) => Some(v.into()),
            Self::I8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::I16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::U64(v) => Some(v.into()),
            Self::I64(v) => Some(v.into()),
            Self::F32(_) | Self::F64(_) | Self::Bool(_) | Self::Str(_) | Self::Bytes(_) | Self::Array(_) => {
                None
            }
        }
    }

    /// Either float type.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Self::F32(v) => Some(v),
            Self::F64(v) => Some(v as f32),
            _ => None,
        }
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(v) = *self { Some(v) } else { None }
    }

    /// A UTF-8 string.
    pub fn as_str(&self) -> Option<&'a str> {
        if let Self::Str(v) = *self { Some(v) } else { None }
    }

    /// An array.
    pub fn as_array(&self) -> Option<Array<'a>> {
        if let Self::Array(v) = *self { Some(v) } else { None }
    }
}

/// An array of scalars or strings, borrowed from the file.
#[derive(Clone, Copy)]
pub struct Array<'a> {
    pub(super) file: &'a str,
    pub(super) key: &'a str,
    pub(super) element: ValueType,
    pub(super) len: usize,
    /// Bytes of the elements.
    pub(super) bytes: &'a [u8],
    /// Whether all strings are UTF-8.
    pub(super) utf8: bool,
}

impl std::fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}; {}]", self.element.name(), self.len)
    }
}

impl<'a> Array<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Type of the elements.
    pub fn element(&self) -> ValueType {
        self.element
    }

    /// The strings in order. Errors for another element type or a string that is not UTF-8.
    pub fn strs(&self) -> Result<impl ExactSizeIterator<Item = &'a str> + Clone + use<'a>, WeightsError> {
        if !self.utf8 {
            return Err(self.error("holds a string that is not UTF-8".into()));
        }
        Ok(self.byte_strs()?.map(|bytes| std::str::from_utf8(bytes).expect("checked at open")))
    }

    /// The strings in order as bytes. Errors for another element type.
    pub fn byte_strs(&self) -> Result<ByteStrs<'a>, WeightsError> {
        self.expect_element(self.element == ValueType::Str, "string")?;
        Ok(ByteStrs { bytes: self.bytes, left: self.len })
    }

    /// Integers of any type. Errors for another element type or a number that does not fit.
    pub fn u32s(&self) -> Result<Vec<u32>, WeightsError> {
        self.integers("u32", |v| u32::try_from(v).ok())
    }

    /// Integers of any type. Errors for another element type or a number that does not fit.
    pub fn i32s(&self) -> Result<Vec<i32>, WeightsError> {
        self.integers("i32", |v| i32::try_from(v).ok())
    }

    /// Floats of either type, as `f32`.
    pub fn f32s(&self) -> Result<Vec<f32>, WeightsError> {
        self.scalars().map(|v| v.as_f32().ok_or_else(|| self.wrong("f32"))).collect()
    }

    /// Whether its elements are numbers or booleans.
    pub fn is_scalars(&self) -> bool {
        !matches!(self.element, ValueType::Str | ValueType::Array)
    }

    /// The value that all its elements have. None if they differ, are no scalars, or there are none.
    pub fn common_value(&self) -> Option<Value<'a>> {
        let mut elements = self.bytes.chunks_exact(self.element.min_bytes());
        let first = elements.next().filter(|_| self.is_scalars())?;
        elements.all(|element| element == first).then(|| scalar(self.element, first))
    }

    /// Booleans. Errors for another element type.
    pub fn bools(&self) -> Result<Vec<bool>, WeightsError> {
        self.scalars().map(|v| v.as_bool().ok_or_else(|| self.wrong("bool"))).collect()
    }

    fn integers<T>(&self, name: &str, convert: fn(i128) -> Option<T>) -> Result<Vec<T>, WeightsError> {
        let convert = |v: Value| v.as_i128().and_then(convert).ok_or_else(|| self.wrong(name));
        self.scalars().map(convert).collect()
    }

    /// The elements as values; empty strings if they are strings.
    fn scalars(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let element = self.element;
        let bytes = if element == ValueType::Str { [].as_slice() } else { self.bytes };
        let strings = if element == ValueType::Str { self.len } else { 0 };
        let values = bytes.chunks_exact(element.min_bytes()).map(move |raw| scalar(element, raw));
        values.chain(std::iter::repeat_n(Value::Str(""), strings))
    }

    fn expect_element(&self, right: bool, expected: &str) -> Result<(), WeightsError> {
        if right { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn wrong(&self, expected: &str) -> WeightsError {
        self.error(format!("expected an array of {expected}, found one of {}", self.element.name()))
    }

    fn error(&self, cause: String) -> WeightsError {
        WeightsError::new(self.file, FaultKind::KeyInvalid, cause).at(FaultLocation::Key(self.key.into()))
    }
}

/// Iterator over the length-prefixed strings of an array.
#[derive(Clone)]
pub struct ByteStrs<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for ByteStrs<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (len, rest) = self.bytes.split_first_chunk::<8>().expect("checked at open");
        let (string, rest) = rest.split_at(u64::from_le_bytes(*len) as usize);
        self.bytes = rest;
        Some(string)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ByteStrs<'_> {}

/// Decodes a scalar from its bytes. Panics for strings and arrays.
pub(crate) fn scalar(kind: ValueType, raw: &[u8]) -> Value<'static> {
    fn le<const N: usize>(raw: &[u8]) -> [u8; N] {
        raw.try_into().expect("exactly the bytes of the type")
    }
    match kind {
        ValueType::U8 => Value::U8(raw[0]),
        ValueType::I8 => Value::I8(raw[0] as i8),
        ValueType::U16 => Value::U16(u16::from_le_bytes(le(raw))),
        ValueType::I16 => Value::I16(i16::from_le_bytes(le(raw))),
        ValueType::U32 => Value::U32(u32::from_le_bytes(le(raw))),
        ValueType::I32 => Value::I32(i32::from_le_bytes(le(raw))),
        ValueType::F32 => Value::F32(f32::from_le_bytes(le(raw))),
        ValueType::Bool => Value::Bool(raw[0] != 0),
        ValueType::U64 => Value::U64(u64::from_le_bytes(le(raw))),
        ValueType::I64 => Value::I64(i64::from_le_bytes(le(raw))),
        ValueType::F64 => Value::F64(f64::from_le_bytes(le(raw))),
        ValueType::Str | ValueType::Array => unreachable!("not a scalar"),
    }
}

/// A number as text, for messages; empty for longer values.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::F32(v) => v.to_string(),
        Value::F64(v) => v.to_string(),
        Value::Bool(v) => v.to_string(),
        other => other.as_i128().map_or(String::new(), |v| v.to_string()),
    }
}
