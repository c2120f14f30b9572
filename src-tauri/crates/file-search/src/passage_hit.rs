//! Files that are searched, and the passages found in them.

use std::sync::Arc;

use contract::types::AttachmentKind;
use documents::chunking::Passage;

/// A file that is searched.
#[derive(Debug, Clone)]
pub struct SearchedFile {
    /// Of the attachment.
    pub id: String,
    pub name: String,
    pub kind: AttachmentKind,
    pub sha256: String,
    pub text: Arc<str>,
    /// It comes with the question; else it was attached earlier.
    pub is_new: bool,
    /// It is a file of the conversation's project: its indexes are stored.
    pub from_project: bool,
}

/// A passage that a question may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageHit {
    /// Index of the file.
    pub file: usize,
    pub passage: Passage,
}
