//! What every failure becomes before it reaches an edge: a stable code, a sentence that names cause
//! and place, and a remedy that names the next step. Knows how severe it is, not how a door shows it.

use serde::{Deserialize, Serialize};

use crate::types::{ErrorAction, ErrorInfo};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who can do something about it. Doors turn this into exit codes and HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The caller asked wrongly: unknown use case, option not built.
    Usage,
    /// A file, prompt or request that can't be used.
    Input,
    /// No such conversation, turn, model, setting.
    NotFound,
    /// It exists, but not in a state that allows this.
    Conflict,
    /// Memory, disk, context or another limit.
    Limit,
    /// A device fault that no fallback could mend.
    Device,
    /// Ours.
    Bug,
}

impl ErrorKind {
    /// Exit status of a terminal command that ends with this.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Input | Self::NotFound | Self::Conflict => 3,
            Self::Limit => 4,
            Self::Device => 5,
            Self::Bug => 1,
        }
    }

    pub fn http_status(self) -> u16 {
        match self {
            Self::Usage | Self::Input => 400,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Limit => 507,
            Self::Device | Self::Bug => 500,
        }
    }
}

/// A failure on its way to an edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", .info.message)]
pub struct Error {
    pub kind: ErrorKind,
    pub info: ErrorInfo,
}

impl Error {
    pub fn new(
        kind: ErrorKind,
        code: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let info =
            ErrorInfo { code: code.into(), message: message.into(), remedy: remedy.into(), action: None };
        Self { kind, info }
    }

    pub fn input(code: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, code, message, remedy)
    }

    pub fn not_found(code: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, code, message, remedy)
    }

    /// With something that a door can offer to do.
    pub fn offering(mut self, action: ErrorAction) -> Self {
        self.info.action = Some(action);
        self
    }

    /// A fault of ours, caught at a boundary; everything else goes on.
    pub fn bug(what: impl std::fmt::Display) -> Self {
        Self::new(
            ErrorKind::Bug,
            "bug",
            format!("Something went wrong inside Inglenook: {what}"),
            "Try again. If it happens twice, the log in the log folder names the place.",
        )
    }

    pub fn code(&self) -> &str {
        &self.info.code
    }

    pub fn message(&self) -> &str {
        &self.info.message
    }

    pub fn remedy(&self) -> &str {
        &self.info.remedy
    }
}

/// How severe codes are; one that ends with a dot stands for all that begin so. What isn't listed is
/// something wrong with what was given.
const KINDS: &[(&str, ErrorKind)] = &[
    ("bug", ErrorKind::Bug),
    ("app.thread", ErrorKind::Limit),
    ("app.closed", ErrorKind::Conflict),
    ("app.open_already", ErrorKind::Conflict),
    ("worker.start", ErrorKind::Limit),
    ("worker.killed", ErrorKind::Limit),
    ("worker.file_gone", ErrorKind::Input),
    ("worker.", ErrorKind::Device),
    ("call.unknown", ErrorKind::NotFound),
    ("call.arguments", ErrorKind::Usage),
    ("model.unknown", ErrorKind::NotFound),
    ("model.memory", ErrorKind::Limit),
    ("network.offline", ErrorKind::Conflict),
    ("remote.not_here", ErrorKind::Usage),
    ("remote.only_chat", ErrorKind::Usage),
    ("remote.unreachable", ErrorKind::Device),
    ("remote.silent", ErrorKind::Device),
    ("remote.broken", ErrorKind::Device),
    ("remote.failing", ErrorKind::Device),
    ("remote.busy", ErrorKind::Limit),
    ("remote.too_large", ErrorKind::Limit),
    ("remote.unknown", ErrorKind::NotFound),
    ("remote.model_gone", ErrorKind::NotFound),
    ("remote.no_route", ErrorKind::NotFound),
    ("remote.disabled", ErrorKind::Conflict),
    ("remote.no_attention", ErrorKind::Conflict),
    ("endpoint.unknown", ErrorKind::NotFound),
    ("endpoint.there", ErrorKind::Conflict),
    ("plugin.unknown", ErrorKind::NotFound),
    ("tools.unknown", ErrorKind::NotFound),
    ("tools.there", ErrorKind::Conflict),
    ("tools.off", ErrorKind::Conflict),
    ("tools.stopped", ErrorKind::Conflict),
    ("tools.nothing_asked", ErrorKind::Conflict),
    ("tools.too_large", ErrorKind::Limit),
    ("tools.silent", ErrorKind::Device),
    ("tools.gone", ErrorKind::Device),
    ("tools.deaf", ErrorKind::Device),
    ("tools.unreachable", ErrorKind::Device),
    ("keys.random", ErrorKind::Device),
    ("setting.unknown", ErrorKind::NotFound),
    ("turn.unknown", ErrorKind::NotFound),
    ("request.context_full", ErrorKind::Limit),
    ("request.queue_full", ErrorKind::Limit),
    ("limit.", ErrorKind::Limit),
    ("compress.nothing", ErrorKind::Conflict),
    ("compress.no_place", ErrorKind::Limit),
    ("kv.too_many_sequences", ErrorKind::Limit),
    ("kv.memory_full", ErrorKind::Limit),
    ("kv.", ErrorKind::Bug),
    ("kernels.memory", ErrorKind::Limit),
    ("kernels.threads", ErrorKind::Limit),
    ("kernels.isa", ErrorKind::Usage),
    ("kernels.panicked", ErrorKind::Bug),
    ("kernels.", ErrorKind::Device),
    ("io.no_space", ErrorKind::Limit),
    ("hub.unreachable", ErrorKind::Limit),
    ("hub.silent", ErrorKind::Limit),
    ("hub.busy", ErrorKind::Limit),
    ("hub.broken", ErrorKind::Limit),
    ("hub.cut", ErrorKind::Limit),
    ("hub.not_found", ErrorKind::NotFound),
    ("download.no_space", ErrorKind::Limit),
    ("convert.dtype", ErrorKind::Usage),
    ("convert.too_small", ErrorKind::Limit),
    ("session.disk_full", ErrorKind::Limit),
    ("session.not_found", ErrorKind::NotFound),
    ("session.answering", ErrorKind::Conflict),
    ("session.nothing_to_retry", ErrorKind::Conflict),
    ("session.busy", ErrorKind::Conflict),
    ("session.not_the_end", ErrorKind::Conflict),
    ("session.traces", ErrorKind::Limit),
    ("chat.cannot_continue", ErrorKind::Conflict),
    ("session.disk_error", ErrorKind::Device),
];

fn kind_of(code: &str) -> ErrorKind {
    let row = KINDS.iter().find(|(key, _)| *key == code || (key.ends_with('.') && code.starts_with(key)));
    row.map_or(ErrorKind::Input, |(_, kind)| *kind)
}

/// An error that came over an edge: how severe it is follows from its code.
impl From<ErrorInfo> for Error {
    fn from(info: ErrorInfo) -> Self {
        Self { kind: kind_of(&info.code), info }
    }
}

impl<E: io::Fault> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(kind_of(error.code()), error.code(), error.to_string(), error.remedy())
    }
}
