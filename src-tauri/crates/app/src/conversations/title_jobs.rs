//! Titles that are being written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A title that is being written.
#[derive(Default)]
pub(super) struct TitleJob {
    pub conversation: String,
    /// What there is of it.
    pub text: String,
}

/// Titles that are being written, by the turn that writes them.
#[derive(Default)]
pub(crate) struct Titles {
    jobs: Mutex<HashMap<String, TitleJob>>,
}

impl Titles {
    pub(super) fn jobs(&self) -> MutexGuard<'_, HashMap<String, TitleJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Their turns; no user waits for these.
    pub fn turns(&self) -> Vec<String> {
        self.jobs().keys().cloned().collect()
    }

    /// Gives up the titles of a conversation that are being written: their turns, which are to be cancelled.
    pub fn give_up(&self, conversation: &str) -> Vec<String> {
        self.jobs().extract_if(|_, job| job.conversation == conversation).map(|(id, _)| id).collect()
    }
}
