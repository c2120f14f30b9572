//! Tensors of a file of weights, and the files that hold their bytes. Below every container format.

use std::ops::Range;

use crate::dtype::DType;
use crate::mmap::SharedBytes;

/// Container format of a model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// GGUF.
    Gguf {
        /// Version of the format: 2 or 3.
        version: u32,
    },
    /// Safetensors, alone or in a folder with config.json.
    Safetensors,
}

/// An entry of the tensor table.
#[derive(Debug, Clone)]
pub(crate) struct TensorInfo {
    pub name: String,
    pub dtype: DType,
    /// Outermost first.
    pub shape: Vec<usize>,
    /// Index of the file that holds it; 0 if there is only one.
    pub part: usize,
    /// Byte range in that file.
    pub range: Range<usize>,
}

/// One of the files that hold a model's data.
pub(crate) struct FilePart {
    /// Its file name, for messages.
    pub name: String,
    pub bytes: SharedBytes,
    /// Offset of the data; everything before is header.
    pub data_start: usize,
}

/// Facts about one of the files that hold a model's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePartInfo<'a> {
    /// File name.
    pub name: &'a str,
    /// Length of the file in bytes.
    pub n_bytes: u64,
    /// Number of tensors in it.
    pub n_tensors: usize,
}

/// A tensor, borrowed from its file.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    /// Name as in the file.
    pub name: &'a str,
    /// Block format.
    pub dtype: DType,
    /// Dimensions, row-major, outermost first: a matrix is (rows, cols).
    pub shape: &'a [usize],
    /// Exactly the blocks of `shape`.
    pub data: SharedBytes,
}
