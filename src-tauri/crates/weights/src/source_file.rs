//! Mapping files, naming them in messages, and describing files that are not a model.

use std::path::Path;

use crate::error::{FaultKind, WeightsError};
use crate::mmap::SharedBytes;

/// Remedy for a web page that was saved in the place of a model.
const PAGE_ADVICE: &str =
    "Download the model again from its page. You may have to log in and accept its license first.";

/// Last component of a path, for messages.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Maps a file; `name` is used in the error.
pub(crate) fn map(path: &Path, name: &str) -> Result<SharedBytes, WeightsError> {
    SharedBytes::map(path).map_err(|e| WeightsError::new(name, FaultKind::Io, format!("cannot be read: {e}")))
}

/// Error that says what a file is, given that it is not a model.
pub(crate) fn not_a_model(name: &str, bytes: &[u8]) -> WeightsError {
    let head = &bytes[..bytes.len().min(512)];
    let text = String::from_utf8_lossy(head).trim_start().to_ascii_lowercase();
    let is_page = text.starts_with("<!doctype") || text.starts_with("<html") || text.starts_with("<?xml");
    let (kind, cause) = if bytes.is_empty() {
        (FaultKind::Truncated, "is empty".to_owned())
    } else if is_page {
        (
            FaultKind::NotAModel,
            "is a web page, not a model: the download link led to a page about the file".into(),
        )
    } else if text.starts_with("version https://git-lfs") {
        (
            FaultKind::NotAModel,
            "is a Git LFS pointer, not the model itself: the large file was not fetched".into(),
        )
    } else if head.starts_with(b"PK\x03\x04") {
        (FaultKind::NotAModel, "is a ZIP or PyTorch archive, not a GGUF or safetensors file".into())
    } else if [b"ggjt", b"tjgg", b"lmgg", b"fmgg", b"algg"].iter().any(|magic| head.starts_with(*magic)) {
        (FaultKind::Unsupported, "is a GGML file from before GGUF, which is not supported".into())
    } else if head.starts_with(b"FUGG") {
        (FaultKind::Unsupported, "a GGUF file for big-endian machines".into())
    } else if text.starts_with('{') || text.starts_with('[') {
        (FaultKind::NotAModel, "is a JSON text, not a model".into())
    } else {
        (FaultKind::NotAModel, "is neither a GGUF nor a safetensors file".into())
    };
    let error = WeightsError::new(name, kind, cause);
    if is_page { error.advise(PAGE_ADVICE) } else { error }
}
