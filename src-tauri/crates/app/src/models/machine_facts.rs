//! What is known about this computer, and how models are loaded by default.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use inference::estimate::{LoadDefaults, MeasuredSpeeds};

/// What is known about this computer, and how models are loaded unless the caller says otherwise.
#[derive(Default)]
pub(crate) struct MachineFacts {
    known: Mutex<KnownFacts>,
    /// The GPU, once drivers were looked for. None: there is none.
    pub(super) gpu: OnceLock<Option<kernels::gpu::AdapterInfo>>,
    /// Held while the speed is measured.
    pub(super) measuring: Mutex<()>,
}

#[derive(Default)]
pub(super) struct KnownFacts {
    pub(super) defaults: LoadDefaults,
    pub(super) speeds: MeasuredSpeeds,
}

impl MachineFacts {
    pub(super) fn known(&self) -> MutexGuard<'_, KnownFacts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
