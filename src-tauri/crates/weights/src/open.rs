//! Opens model files: recognizes the container and dispatches to its reader.

use std::path::{Path, PathBuf};

use crate::error::WeightsError;
use crate::mmap::SharedBytes;
use crate::source_file::{file_name, map, not_a_model};
use crate::tensor::{Container, FilePart};
use crate::weight_file::WeightFile;
use crate::{folder, gguf, safetensors, split};

/// Tensors up to this size may be factors that determine a model's structure; a header-only view fills them with ones.
const MAX_STRUCTURAL_BYTES: usize = 1 << 16;

impl WeightFile {
    /// Opens a GGUF file, the first part of a split one, a safetensors folder, or a bare `.safetensors` file. A bare file
    /// with the usual name uses the `config.json` next to it. Errors if anything in the file is invalid.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        if path.is_dir() {
            return folder::open(path);
        }
        let name = file_name(path);
        let bytes = map(path, &name)?;
        if bytes.starts_with(gguf::MAGIC) {
            return split::open(path, &name, bytes);
        }
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        if extension != "safetensors" && !safetensors::sniff(&bytes) {
            return Err(not_a_model(&name, &bytes));
        }
        folder::open_file(path, &name, bytes)
    }

    /// Opens a GGUF file that is embedded in the program. `name` replaces the path.
    pub fn from_static(name: &str, bytes: &'static [u8]) -> Result<Self, WeightsError> {
        Self::from_bytes(name, SharedBytes::from_static(bytes))
    }

    /// Opens a GGUF file in memory. `name` replaces the path.
    pub fn from_bytes(name: &str, bytes: SharedBytes) -> Result<Self, WeightsError> {
        if !bytes.starts_with(gguf::MAGIC) {
            return Err(not_a_model(name, &bytes));
        }
        let parsed = gguf::parse(name, &bytes)?;
        split::refuse(&parsed.metadata)?;
        parsed.into_file(PathBuf::from(name), name, bytes)
    }

    /// Opens the beginning of a GGUF file of `file_len` bytes; `header` must contain all of its tables. Small F32 tensors
    /// are filled with ones, the others are empty. Errors as for the whole file, and if the tables exceed `header`.
    pub fn from_header(name: &str, header: SharedBytes, file_len: u64) -> Result<Self, WeightsError> {
        if !header.starts_with(gguf::MAGIC) {
            return Err(not_a_model(name, &header));
        }
        let file_len = usize::try_from(file_len).unwrap_or(usize::MAX);
        let mut parsed = gguf::parse_within(name, &header, file_len)?;
        split::refuse(&parsed.metadata)?;
        let ones = SharedBytes::from_vec(
            std::iter::repeat_n(1.0f32.to_le_bytes(), MAX_STRUCTURAL_BYTES / 4).flatten().collect(),
        );
        for info in &mut parsed.tensors {
            info.part = 1;
            let n = info.range.len();
            info.range = 0..if info.dtype.is_f32() && n <= MAX_STRUCTURAL_BYTES { n } else { 0 };
        }
        let container = Container::Gguf { version: parsed.version };
        let part = |bytes: SharedBytes| FilePart { name: name.to_owned(), data_start: bytes.len(), bytes };
        Self::assemble(
            PathBuf::from(name),
            container,
            parsed.metadata,
            vec![part(header), part(ones)],
            parsed.tensors,
        )
    }
}
