//! The weights of an opened model, independent of container and number of files: validated, tensors by name, zero-copy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::{FaultKind, FaultLocation, WeightsError};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::mmap::{Advice, SharedBytes};
use crate::tensor::{Container, FilePart, FilePartInfo, TensorInfo, TensorView};

/// An opened model file, or the set of files of one model.
pub struct WeightFile {
    path: PathBuf,
    container: Container,
    metadata: Metadata,
    parts: Vec<FilePart>,
    tensors: Vec<TensorInfo>,
    /// Index of `tensors` by name.
    by_name: HashMap<String, usize>,
    side_files: Vec<(&'static str, SharedBytes)>,
}

impl WeightFile {
    /// Combines parts and tensors. Errors if a tensor name stands twice.
    pub(crate) fn assemble(
        path: PathBuf,
        container: Container,
        metadata: Metadata,
        parts: Vec<FilePart>,
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
                let error = WeightsError::new(here.clone(), FaultKind::Malformed, cause);
                return Err(error.at(FaultLocation::Tensor(tensor.name.clone())));
            }
        }
        Ok(Self { path, container, metadata, parts, tensors, by_name, side_files: Vec::new() })
    }

    pub(crate) fn with_side_files(mut self, side_files: Vec<(&'static str, SharedBytes)>) -> Self {
        self.side_files = side_files;
        self
    }

    /// Path as it was opened: a file or a folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Container format.
    pub fn container(&self) -> Container {
        self.container
    }

    /// Metadata of the model.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Number of tensors.
    pub fn n_tensors(&self) -> usize {
        self.tensors.len()
    }

    /// All tensors, in file order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorView<'_>> {
        self.tensors.iter().map(|info| self.view(info))
    }

    /// A tensor by name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        self.by_name.get(name).map(|&i| self.view(&self.tensors[i]))
    }

    fn view<'a>(&'a self, info: &'a TensorInfo) -> TensorView<'a> {
        let data = self.parts[info.part].bytes.slice(info.range.clone());
        TensorView { name: &info.name, dtype: info.dtype, shape: &info.shape, data }
    }

    /// The files that hold data, in order.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = FilePartInfo<'_>> {
        let n_tensors = |part: usize| self.tensors.iter().filter(|tensor| tensor.part == part).count();
        self.parts.iter().enumerate().map(move |(i, part)| FilePartInfo {
            name: &part.name,
            n_bytes: part.bytes.len() as u64,
            n_tensors: n_tensors(i),
        })
    }

    /// Contents of a file that accompanies the weights, such as tokenizer.json.
    pub fn side_file(&self, name: &str) -> Option<&[u8]> {
        self.side_files.iter().find(|side| side.0 == name).map(|side| &*side.1)
    }

    /// Advises the system how the tensor data will be used. True if it accepted the advice for all files.
    pub fn advise(&self, advice: Advice) -> bool {
        let mut all = true;
        for part in &self.parts {
            all &= part.bytes.advise(advice);
        }
        all
    }

    /// Applies [`SharedBytes::move_to_large_pages`] to all files and returns the bytes moved.
    pub fn move_to_large_pages(&self, stop: &AtomicBool) -> u64 {
        self.parts.iter().map(|part| part.bytes.move_to_large_pages(stop)).sum()
    }

    /// Total bytes of all files that hold data.
    pub fn len_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes.len() as u64).sum()
    }

    /// Fingerprint of lengths, tables, metadata, side files and samples of the data, as 32 hexadecimal digits. Fast; no
    /// protection against forgery.
    pub fn fingerprint(&self) -> String {
        let mut print = Fingerprint::new();
        for FilePart { bytes, data_start, .. } in &self.parts {
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
