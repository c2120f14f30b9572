//! Why a picture or its settings cannot be used, with what can be done about it.

/// What went wrong, for callers that react differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisionErrorKind {
    /// The bytes are not of a format that is read here.
    UnknownFormat,
    /// The file is damaged, or uses a variant of its format that is not read here.
    UnreadableFile,
    /// The file exceeds a limit of size or memory.
    TooLarge,
    /// The model's settings for images are missing, contradictory or not supported.
    InvalidSettings,
    /// The model does not take a picture of this shape.
    RefusedShape,
}

/// Cause, place and remedy. Displays as both sentences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} {remedy}")]
pub struct VisionError {
    /// What went wrong.
    pub kind: VisionErrorKind,
    /// The cause and the place, as one sentence.
    pub message: String,
    /// What can be done, as one sentence.
    pub remedy: String,
}

impl VisionError {
    pub(crate) fn new(kind: VisionErrorKind, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind, message: message.into(), remedy: remedy.into() }
    }

    /// A key of the model's settings that cannot be used.
    pub(crate) fn setting(key: &str, why: impl std::fmt::Display) -> Self {
        Self::new(
            VisionErrorKind::InvalidSettings,
            format!("The model's image setting {key} {why}."),
            "Download the model again, or use another conversion of it.",
        )
    }
}
