//! The engine's error: what went wrong, where, and what a person can do about it.
//!
//! Codes are stable words (`model.tensor_missing`); interfaces map them to exit codes and HTTP statuses.

use std::panic::{AssertUnwindSafe, catch_unwind};

use io::Fault;
use kernels::KernelError;
use vision::{VisionError, VisionErrorKind};
use weights::WeightsError;

/// A failure to load or run a model. `Display` gives the message: cause and place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    code: &'static str,
    message: String,
    remedy: String,
}

/// Result with an [`EngineError`].
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

impl EngineError {
    /// Creates an error. `code` is `area.cause`; `message` names the file, tensor or key; `remedy` is a sentence or
    /// empty.
    pub fn new(code: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: remedy.into() }
    }

    /// Returns the stable code, such as `kv.memory_full`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns whether a GPU failed or is missing, so that the CPU may take over.
    pub fn is_of_gpu(&self) -> bool {
        self.code.starts_with("kernels.gpu_")
    }

    /// Returns what the user can do about it.
    pub fn remedy(&self) -> String {
        self.remedy.clone()
    }
}

impl Fault for EngineError {
    fn code(&self) -> &str {
        self.code()
    }

    fn remedy(&self) -> String {
        self.remedy()
    }
}

/// Turns a panic of `work` into an error for the request that caused it. State that `work` was changing must be
/// restored before further use.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(EngineError::new(
            "engine.panicked",
            format!("the engine failed: {text}"),
            "This is a defect of Inglenook; please report it with the message.",
        ))
    })
}

/// Remedy for a file whose contents contradict themselves.
pub(crate) const DAMAGED: &str =
    "The file is damaged or was converted wrongly: download or convert it again.";

impl From<WeightsError> for EngineError {
    fn from(error: WeightsError) -> Self {
        Self::new(error.code(), error.to_string(), error.remedy())
    }
}

impl From<VisionError> for EngineError {
    fn from(error: VisionError) -> Self {
        let code = match error.kind {
            VisionErrorKind::UnknownFormat => "vision.unknown_format",
            VisionErrorKind::UnreadableFile => "vision.unreadable",
            VisionErrorKind::TooLarge => "vision.too_large",
            VisionErrorKind::InvalidSettings => "vision.settings",
            VisionErrorKind::RefusedShape => "vision.shape",
        };
        Self::new(code, error.message, error.remedy)
    }
}

impl From<KernelError> for EngineError {
    fn from(error: KernelError) -> Self {
        Self::new(error.code(), error.to_string(), error.remedy())
    }
}
