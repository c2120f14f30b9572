//! Tensors of a file of weights, and the files that hold their bytes. Below every container format.

use std::ops::Range;

use crate::dtype::DType;
use crate::mmap::SharedBytes;

/// What the file was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Gguf { version: u32 },
    Safetensors,
}

/// A row of the tensor table.
#[derive(Debug, Clone)]
pub(crate) struct TensorInfo {
    pub name: String,
    pub dtype: DType,
    /// Outermost first.
    pub shape: Vec<usize>,
    /// Index of the file it lies in: 0 where there is one.
    pub part: usize,
    /// Bytes of that file.
    pub range: Range<usize>,
}

/// One of the files that hold a model's data.
pub(crate) struct FilePart {
    /// Its file name, for messages.
    pub name: String,
    pub bytes: SharedBytes,
    /// Where the data begin: all before is header.
    pub data_start: usize,
}

/// What is told of one of the files that hold a model's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePartInfo<'a> {
    pub name: &'a str,
    pub n_bytes: u64,
    pub n_tensors: usize,
}

/// A tensor, borrowed from its file. `data` holds exactly the blocks of `shape`.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    pub name: &'a str,
    pub dtype: DType,
    /// Row-major, outermost first: a matrix is [rows, cols].
    pub shape: &'a [usize],
    pub data: SharedBytes,
}
