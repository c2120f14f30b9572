//! An opened file of weights, whatever its container: wholly validated, tensors by name, nothing copied.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::dtype::DType;
use crate::error::{Kind, Place, WeightsError};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::mmap::SharedBytes;
use crate::{gguf, safetensors};

/// Files beside `model.safetensors` that others may ask for.
const SIDE_FILES: [&str; 6] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "tokenizer.model",
];
const MODEL_FILE: &str = "model.safetensors";
const CONFIG_FILE: &str = "config.json";
/// Published ones have below 100 KB; parsing takes several times the length.
const MAX_CONFIG_BYTES: usize = 4 << 20;

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

/// A tensor, borrowed from its file. `data` holds exactly the blocks of `shape`.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    pub name: &'a str,
    pub dtype: DType,
    /// Row-major, outermost first: a matrix is [rows, cols].
    pub shape: &'a [usize],
    pub data: SharedBytes,
}

/// An opened file of weights.
pub struct WeightFile {
    path: PathBuf,
    container: Container,
    metadata: Metadata,
    /// The files that hold data, each with the length of its header.
    parts: Vec<(SharedBytes, usize)>,
    tensors: Vec<TensorInfo>,
    /// Index of `tensors` by name.
    by_name: HashMap<String, usize>,
    side_files: Vec<(&'static str, SharedBytes)>,
}

impl WeightFile {
    /// Opens a GGUF file, a folder with `model.safetensors` and `config.json`, or a bare `.safetensors` file (with
    /// the `config.json` beside it if it has the name that folders use). Errors: anything that is not as it must be.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        let name = file_name(path);
        if path.is_dir() {
            return Self::open_folder(path);
        }
        let bytes = map(path, &name)?;
        if bytes.starts_with(gguf::MAGIC) {
            return Self::from_gguf(path.to_owned(), &name, bytes);
        }
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        if extension != "safetensors" && !safetensors::sniff(&bytes) {
            return Err(foreign(&name, &bytes));
        }
        let folder = path.parent().filter(|f| name == MODEL_FILE && f.join(CONFIG_FILE).is_file());
        Self::from_safetensors(path.to_owned(), &name, bytes, folder)
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
        Self::from_gguf(PathBuf::from(name), name, bytes)
    }

    fn open_folder(folder: &Path) -> Result<Self, WeightsError> {
        let path = folder.join(MODEL_FILE);
        let name = file_name(folder);
        if !path.is_file() {
            let (kind, cause) = if folder.join("model.safetensors.index.json").is_file() {
                (Kind::Unsupported, "a model in several safetensors files, which is not read yet")
            } else {
                (Kind::NotAModel, "a folder without model.safetensors")
            };
            return Err(WeightsError::new(name, kind, cause));
        }
        let name = format!("{name}/{MODEL_FILE}");
        let bytes = map(&path, &name)?;
        Self::from_safetensors(folder.to_owned(), &name, bytes, Some(folder))
    }

    fn from_gguf(path: PathBuf, name: &str, bytes: SharedBytes) -> Result<Self, WeightsError> {
        let parsed = gguf::parse(name, &bytes)?;
        let container = Container::Gguf { version: parsed.version };
        let parts = vec![(bytes, parsed.data_start)];
        Self::assemble(path, container, parsed.metadata, parts, parsed.tensors)
    }

    /// With the files beside it where `folder` is given.
    fn from_safetensors(
        path: PathBuf,
        name: &str,
        bytes: SharedBytes,
        folder: Option<&Path>,
    ) -> Result<Self, WeightsError> {
        let parsed = safetensors::parse(name, &bytes)?;
        let config = folder.map_or(Ok(serde_json::Value::Null), read_config)?;
        let parts = vec![(bytes, parsed.data_start)];
        let metadata = Metadata::safetensors(name, config);
        let mut file = Self::assemble(path, Container::Safetensors, metadata, parts, parsed.tensors)?;
        for side in SIDE_FILES {
            let Some(path) = folder.map(|f| f.join(side)).filter(|p| p.is_file()) else { continue };
            file.side_files.push((side, map(&path, side)?));
        }
        Ok(file)
    }

    fn assemble(
        path: PathBuf,
        container: Container,
        metadata: Metadata,
        parts: Vec<(SharedBytes, usize)>,
        tensors: Vec<TensorInfo>,
    ) -> Result<Self, WeightsError> {
        let mut by_name = HashMap::with_capacity(tensors.len());
        for (i, tensor) in tensors.iter().enumerate() {
            if by_name.insert(tensor.name.clone(), i).is_some() {
                let error =
                    WeightsError::new(metadata.file.clone(), Kind::Malformed, "stands twice in the file");
                return Err(error.at(Place::Tensor(tensor.name.clone())));
            }
        }
        Ok(Self { path, container, metadata, parts, tensors, by_name, side_files: Vec::new() })
    }

    /// As it was opened: the file, or the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn container(&self) -> Container {
        self.container
    }

    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub fn n_tensors(&self) -> usize {
        self.tensors.len()
    }

    /// All tensors in the order of the file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorView<'_>> {
        self.tensors.iter().map(|info| self.view(info))
    }

    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        self.by_name.get(name).map(|&i| self.view(&self.tensors[i]))
    }

    fn view<'a>(&'a self, info: &'a TensorInfo) -> TensorView<'a> {
        let data = self.parts[info.part].0.slice(info.range.clone());
        TensorView { name: &info.name, dtype: info.dtype, shape: &info.shape, data }
    }

    /// The contents of a file beside `model.safetensors`, by its name.
    pub fn side_file(&self, name: &str) -> Option<&[u8]> {
        self.side_files.iter().find(|side| side.0 == name).map(|side| &*side.1)
    }

    /// Bytes of all files that hold data.
    pub fn len_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.0.len() as u64).sum()
    }

    /// 32 hexadecimal digits that differ for files that differ: lengths, tables, metadata, tokenizer, and samples
    /// of the data go in. Fast; no protection against forgery.
    pub fn fingerprint(&self) -> String {
        let mut print = Fingerprint::new();
        for (bytes, header) in &self.parts {
            print.whole(&bytes[..*header]);
            print.sampled(&bytes[*header..]);
        }
        print.whole(self.metadata.config().to_string().as_bytes());
        for (name, bytes) in &self.side_files {
            print.whole(name.as_bytes());
            print.whole(bytes);
        }
        print.finish()
    }
}

/// The last part of a path, for messages.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn map(path: &Path, name: &str) -> Result<SharedBytes, WeightsError> {
    SharedBytes::map(path).map_err(|e| WeightsError::new(name, Kind::Io, format!("cannot be read: {e}")))
}

/// config.json of a folder: an object.
fn read_config(folder: &Path) -> Result<serde_json::Value, WeightsError> {
    let path = folder.join(CONFIG_FILE);
    let error = |kind, cause: String| WeightsError::new(CONFIG_FILE, kind, cause);
    if !path.is_file() {
        return Err(error(Kind::NotAModel, "is missing beside model.safetensors".into()));
    }
    let bytes = map(&path, CONFIG_FILE)?;
    if bytes.len() > MAX_CONFIG_BYTES {
        let cause = format!("has {} bytes; the limit is {MAX_CONFIG_BYTES}", bytes.len());
        return Err(error(Kind::Limit, cause));
    }
    let config: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|e| error(Kind::Malformed, format!("is not valid JSON: {e}")))?;
    if !config.is_object() {
        return Err(error(Kind::Malformed, "is not a JSON object".into()));
    }
    Ok(config)
}

/// Says what a file is that is no model.
fn foreign(name: &str, bytes: &[u8]) -> WeightsError {
    let head = &bytes[..bytes.len().min(512)];
    let text = String::from_utf8_lossy(head).trim_start().to_ascii_lowercase();
    let (kind, cause) = if bytes.is_empty() {
        (Kind::Truncated, "is empty".to_owned())
    } else if text.starts_with("<!doctype") || text.starts_with("<html") || text.starts_with("<?xml") {
        (Kind::NotAModel, "is a web page, not a model: the download link led to a page about the file".into())
    } else if text.starts_with("version https://git-lfs") {
        (Kind::NotAModel, "is a Git LFS pointer, not the model itself: the large file was not fetched".into())
    } else if head.starts_with(b"PK\x03\x04") {
        (Kind::NotAModel, "is a ZIP or PyTorch archive, not a GGUF or safetensors file".into())
    } else if [b"ggjt", b"tjgg", b"lmgg", b"fmgg", b"algg"].iter().any(|magic| head.starts_with(*magic)) {
        (Kind::Unsupported, "is a GGML file from before GGUF, which is not read".into())
    } else if head.starts_with(b"FUGG") {
        (Kind::Unsupported, "a GGUF file for big-endian machines".into())
    } else if text.starts_with('{') || text.starts_with('[') {
        (Kind::NotAModel, "is a JSON text, not a model".into())
    } else {
        (Kind::NotAModel, "is neither a GGUF nor a safetensors file".into())
    };
    WeightsError::new(name, kind, cause)
}
