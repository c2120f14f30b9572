//! Errors of this crate: what went wrong with the stored conversations, and what a person can do.

use io::Fault;

/// Result with a [`SessionError`].
pub type Result<T, E = SessionError> = std::result::Result<T, E>;

/// A failed operation on the stored conversations. `Display` writes the message: cause and place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SessionError {
    code: &'static str,
    message: String,
    remedy: String,
}

impl SessionError {
    /// An error with a stable code, a sentence, and a remedy (which may be empty).
    pub fn new(code: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: remedy.into() }
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        self.remedy.clone()
    }

    pub(crate) fn damaged(cause: &str) -> Self {
        Self::new(
            "session.damaged",
            format!("The chat database is damaged: {cause}."),
            "Try again: Inglenook recovers what is readable. If that does not help, restart it.",
        )
    }

    pub(crate) fn missing(what: &str, id: &str) -> Self {
        Self::new(
            "session.not_found",
            format!("There is no {what} {id}."),
            "It may have been deleted. Refresh the list.",
        )
    }

    /// Whether the database file itself is damaged, not just this request.
    pub(crate) fn is_damage(&self) -> bool {
        self.code == "session.damaged"
    }

    /// Whether stored rows are wrong, not the disk, its permissions or another program.
    pub(crate) fn is_about_rows(&self) -> bool {
        self.is_damage() || matches!(self.code, "session.row" | "session.database")
    }
}

impl Fault for SessionError {
    fn code(&self) -> &str {
        self.code()
    }

    fn remedy(&self) -> String {
        self.remedy()
    }
}

impl From<io::IoError> for SessionError {
    fn from(error: io::IoError) -> Self {
        Self::new(error.code(), format!("The data folder can't be used: {error}."), error.remedy())
    }
}

impl From<rusqlite::Error> for SessionError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let Some(code) = error.sqlite_error_code() else {
            return Self::new(
                "session.row",
                format!("A row of the database can't be read: {error}."),
                "Other chats are not affected.",
            );
        };
        match code {
            ErrorCode::DiskFull => Self::new(
                "session.disk_full",
                "The disk is full, so this was not saved.",
                "Free up disk space and try again.",
            ),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::new(
                "session.busy",
                "Another program is using the chat database, so this was not saved.",
                "Close other Inglenook windows or backup programs and try again.",
            ),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                io::report_damage();
                Self::damaged(&error.to_string())
            }
            // Only a limit of steps interrupts.
            ErrorCode::OperationInterrupted => {
                Self::damaged("reading it takes more steps than a file of its size needs")
            }
            ErrorCode::OutOfMemory => Self::new(
                "session.out_of_memory",
                "There is not enough memory to use the chat database.",
                "Close other programs or unload the model, and try again.",
            ),
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Self::new(
                "session.file",
                format!("The chat database can't be written: {error}."),
                "Free up disk space and check the permissions of the data folder, then restart Inglenook.",
            ),
            ErrorCode::SystemIoFailure => Self::new(
                "session.disk_error",
                format!("The disk reported an error: {error}."),
                "Check the disk. Data saved before is not affected.",
            ),
            _ => Self::new(
                "session.database",
                format!("The chat database reported an error: {error}."),
                "Try again.",
            ),
        }
    }
}
