//! An opened model's weights, whatever the container and however many files: wholly validated, tensors by name,
//! nothing copied.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::{FaultKind, FaultLocation, WeightsError};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::mmap::{Advice, SharedBytes};
use crate::tensor::{Container, FilePart, FilePartInfo, TensorInfo, TensorView};

/// An opened file of weights.
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
    /// Errors: a name twice.
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
    pub fn parts(&self) -> impl ExactSizeIterator<Item = FilePartInfo<'_>> {
        let n_tensors = |part: usize| self.tensors.iter().filter(|tensor| tensor.part == part).count();
        self.parts.iter().enumerate().map(move |(i, part)| FilePartInfo {
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
