//! Why a file can't be used, and the limit that every reader shares.

/// Longest text that is kept of a file. Bytes of UTF-8.
pub const TEXT_MOST: usize = 8 << 20;

/// Why a file can't be used, as the end of a sentence that begins with its name; and what can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractError {
    pub why: String,
    pub remedy: String,
}

impl ExtractError {
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }

    /// It can only be opened with a password.
    pub fn locked() -> Self {
        Self::new("it is protected by a password", "Save it without the password and attach that.")
    }

    /// Its pages are images, and nothing else.
    pub fn no_text() -> Self {
        Self::new(
            "it contains no text: its pages are images",
            "Run text recognition (OCR) on it first, then attach the result.",
        )
    }

    pub fn too_long(n_bytes: usize) -> Self {
        Self::new(
            format!("its text has {n_bytes} bytes or more, and the maximum is {TEXT_MOST}"),
            "Attach only the part you need.",
        )
    }
}
