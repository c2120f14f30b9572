//! What every crate's error says of itself, so that one conversion carries all of them over an edge.
//!
//! Errors cross a process boundary as code, message and remedy: the kind always follows from the code alone.

use serde::{Deserialize, Serialize};

/// An error that a person may read: a stable code, a sentence that names cause and place, and the next step.
pub trait Fault: std::error::Error {
    /// Stable identifier such as `hub.not_found`. Never translated, never changed.
    fn code(&self) -> &str;

    /// Cause and place, as a sentence. By default what `Display` writes.
    fn message(&self) -> String {
        self.to_string()
    }

    /// What a person can do about it; may be empty.
    fn remedy(&self) -> String;

    /// Who can do something about it.
    fn kind(&self) -> ErrorKind {
        ErrorKind::of_code(self.code())
    }
}

/// Who can do something about an error. Frontends map it to exit codes and HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The call itself is wrong: an unknown use case, an option that is not built.
    Usage,
    /// A file, prompt or request that cannot be used.
    Input,
    /// No such conversation, turn, model or setting.
    NotFound,
    /// It exists, but its state does not allow this.
    Conflict,
    /// Memory, disk, context or another limit.
    Limit,
    /// A device fault that no fallback could mend.
    Device,
    /// A defect of Inglenook.
    Bug,
}

impl ErrorKind {
    /// Kind of the errors with this code; [`ErrorKind::Input`] for codes that are not listed.
    pub fn of_code(code: &str) -> Self {
        let row = KINDS.iter().find(|(key, _)| *key == code || (key.ends_with('.') && code.starts_with(key)));
        row.map_or(Self::Input, |(_, kind)| *kind)
    }

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

    /// Status of an HTTP response that reports this.
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

/// Kinds by code; the first match counts. A key that ends with a dot stands for every code that begins with it.
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
    ("remote.no_grammar", ErrorKind::Usage),
    ("remote.no_logprobs", ErrorKind::Conflict),
    ("remote.unreachable", ErrorKind::Device),
    ("remote.silent", ErrorKind::Device),
    ("remote.broken", ErrorKind::Device),
    ("remote.failing", ErrorKind::Device),
    ("remote.busy", ErrorKind::Limit),
    ("remote.too_large", ErrorKind::Limit),
    ("remote.unknown", ErrorKind::NotFound),
    ("remote.model_gone", ErrorKind::NotFound),
    ("remote.no_route", ErrorKind::NotFound),
    ("remote.no_list", ErrorKind::NotFound),
    ("remote.field_omitted", ErrorKind::Conflict),
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
    ("tools.form_closed", ErrorKind::Conflict),
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
    ("io.too_large", ErrorKind::Limit),
    ("vision.too_large", ErrorKind::Limit),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_codes() {
        let cases = [
            ("kv.memory_full", ErrorKind::Limit),
            ("kv.page", ErrorKind::Bug),
            ("worker.file_gone", ErrorKind::Input),
            ("worker.died", ErrorKind::Device),
            ("weights.truncated", ErrorKind::Input),
            ("", ErrorKind::Input),
        ];
        for (code, expected) in cases {
            assert_eq!(ErrorKind::of_code(code), expected, "{code}");
        }
    }
}
