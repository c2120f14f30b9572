//! An opened model's weights, whatever the container and however many files: wholly validated, tensors by name,
//! nothing copied.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::dtype::DType;
use crate::error::{Kind, Place, WeightsError};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::mmap::{Advice, SharedBytes};
use crate::{folder, gguf, safetensors, split};

/// Tensors of at most so many bytes may be factors that a model's structure depends on.
const SMALL: usize = 1 << 16;

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
pub(crate) struct Part {
    /// Its file name, for messages.
    pub name: String,
    pub bytes: SharedBytes,
    /// Where the data begin: all before is header.
    pub data_start: usize,
}

/// What is told of one of the files that hold a model's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInfo<'a> {
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

/// An opened file of weights.
pub struct WeightFile {
    path: PathBuf,
    container: Container,
    metadata: Metadata,
    parts: Vec<Part>,
    tensors: Vec<TensorInfo>,
    /// Index of `tensors` by name.
    by_name: HashMap<String, usize>,
    side_files: Vec<(&'static str, SharedBytes)>,
}

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
        Self::whole_gguf(PathBuf::from(name), name, bytes, parsed)
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
        let ones =
            SharedBytes::from_vec(std::iter::repeat_n(1.0f32.to_le_bytes(), SMALL / 4).flatten().collect());
        for info in &mut parsed.tensors {
            info.part = 1;
            let n = info.range.len();
            info.range = 0..if info.dtype.is_f32() && n <= SMALL { n } else { 0 };
        }
        let container = Container::Gguf { version: parsed.version };
        let part = |bytes: SharedBytes| Part { name: name.to_owned(), data_start: bytes.len(), bytes };
        Self::assemble(
            PathBuf::from(name),
            container,
            parsed.metadata,
            vec![part(header), part(ones)],
            parsed.tensors,
        )
    }

    /// A GGUF that is one file.
    pub(crate) fn whole_gguf(
        path: PathBuf,
        name: &str,
        bytes: SharedBytes,
        parsed: gguf::Parsed,
    ) -> Result<Self, WeightsError> {
        let container = Container::Gguf { version: parsed.version };
        let parts = vec![Part { name: name.to_owned(), bytes, data_start: parsed.data_start }];
        Self::assemble(path, container, parsed.metadata, parts, parsed.tensors)
    }

    /// Errors: a name twice.
    pub(crate) fn assemble(
        path: PathBuf,
        container: Container,
        metadata: Metadata,
        parts: Vec<Part>,
        tensors: Vec<TensorInfo>,
    ) -> Result<Self, WeightsError> {
        let mut by_name = HashMap::with_capacity(tensors.len());
        for (i, tensor) in tensors.iter().enumerate() {
            if let Some(first) = by_name.insert(tensor.name.clone(), i) {
                let (here, there) = (&parts[tensor.part].name, &parts[tensors[first].part].name);
                let cause = match tensor.part == tensors[first].part {
                    true => "stands twice in the file".to_owned(),
                    false => format!("stands in {there} as well"),
                };
                let error = WeightsError::new(here.clone(), Kind::Malformed, cause);
                return Err(error.at(Place::Tensor(tensor.name.clone())));
            }
        }
        Ok(Self { path, container, metadata, parts, tensors, by_name, side_files: Vec::new() })
    }

    pub(crate) fn with_side_files(mut self, side_files: Vec<(&'static str, SharedBytes)>) -> Self {
        self.side_files = side_files;
        self
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
        let data = self.parts[info.part].bytes.slice(info.range.clone());
        TensorView { name: &info.name, dtype: info.dtype, shape: &info.shape, data }
    }

    /// The files that hold data, in order: one, or the parts of a split model.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = PartInfo<'_>> {
        let n_tensors = |part: usize| self.tensors.iter().filter(|tensor| tensor.part == part).count();
        self.parts.iter().enumerate().map(move |(i, part)| PartInfo {
            name: &part.name,
            n_bytes: part.bytes.len() as u64,
            n_tensors: n_tensors(i),
        })
    }

    /// The contents of a file beside the weights, by its name.
    pub fn side_file(&self, name: &str) -> Option<&[u8]> {
        self.side_files.iter().find(|side| side.0 == name).map(|side| &*side.1)
    }

    /// Tells the system how the tensors' bytes will be used. Whether it listened, for all files.
    pub fn advise(&self, advice: Advice) -> bool {
        let mut all = true;
        for part in &self.parts {
            all &= part.bytes.advise(advice);
        }
        all
    }

    /// As `SharedBytes::move_to_large_pages`, for all files.
    pub fn move_to_large_pages(&self, stop: &AtomicBool) -> u64 {
        self.parts.iter().map(|part| part.bytes.move_to_large_pages(stop)).sum()
    }

    /// Bytes of all files that hold data.
    pub fn len_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes.len() as u64).sum()
    }

    /// 32 hexadecimal digits that differ for files that differ: lengths, tables, metadata, tokenizer, and samples
    /// of the data go in. Fast; no protection against forgery.
    pub fn fingerprint(&self) -> String {
        let mut print = Fingerprint::new();
        for Part { bytes, data_start, .. } in &self.parts {
            print.whole(&bytes[..*data_start]);
            print.sampled(&bytes[*data_start..]);
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
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

pub(crate) fn map(path: &Path, name: &str) -> Result<SharedBytes, WeightsError> {
    SharedBytes::map(path).map_err(|e| WeightsError::new(name, Kind::Io, format!("cannot be read: {e}")))
}

/// Says what a file is that is no model.
pub(crate) fn foreign(name: &str, bytes: &[u8]) -> WeightsError {
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
