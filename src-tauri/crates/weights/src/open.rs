//! Opens a model's weights, whatever the container: recognizes the format and hands over to its reader.

use std::path::{Path, PathBuf};

use crate::error::WeightsError;
use crate::mmap::SharedBytes;
use crate::source_file::{file_name, foreign, map};
use crate::tensor::{Container, FilePart};
use crate::weight_file::WeightFile;
use crate::{folder, gguf, safetensors, split};

/// Tensors of at most so many bytes may be factors that a model's structure depends on.
const MAX_STRUCTURAL_BYTES: usize = 1 << 16;

impl WeightFile {
    /// Opens a GGUF file, the first part of a split one, a folder of a model in safetensors (one file or several
    /// with their index), or a bare `.safetensors` file (with the `config.json` beside it if it has the name that
    /// folders use). Errors: anything that is not as it must be.
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
            return Err(foreign(&name, &bytes));
        }
        folder::open_file(path, &name, bytes)
    }

    /// Opens a GGUF file that is part of the program. `name` stands for the path.
    pub fn from_static(name: &str, bytes: &'static [u8]) -> Result<Self, WeightsError> {
        Self::from_bytes(name, SharedBytes::from_static(bytes))
    }

    /// Opens a GGUF file that lies in memory. `name` stands for the path.
    pub fn from_bytes(name: &str, bytes: SharedBytes) -> Result<Self, WeightsError> {
        if !bytes.starts_with(gguf::MAGIC) {
            return Err(foreign(name, &bytes));
        }
        let parsed = gguf::parse(name, &bytes)?;
        split::refuse(&parsed.metadata)?;
        parsed.into_file(PathBuf::from(name), name, bytes)
    }

    /// What a GGUF file of `file_len` bytes says of itself, from its beginning alone: `header` has at least all of its
    /// tables. Views of small tensors hold ones, those of others nothing. Errors: what the whole file would give;
    /// tables that go on beyond `header`.
    pub fn from_header(name: &str, header: SharedBytes, file_len: u64) -> Result<Self, WeightsError> {
        if !header.starts_with(gguf::MAGIC) {
            return Err(foreign(name, &header));
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
