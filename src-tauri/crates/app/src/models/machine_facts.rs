//! What is known about this computer, and how models are loaded by default.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use inference::estimate::{LoadDefaults, MeasuredSpeeds};

/// What is known about this computer, and how models are loaded unless the caller says otherwise.
#[derive(Default)]
pub(crate) struct MachineFacts {
    known: Mutex<KnownFacts>,
    /// The GPU, once drivers were looked for. None: there is none.
    pub(super) gpu: OnceLock<Option<kernels::gpu::AdapterInfo>>,
    /// Held while the speed is measured. When it was last measured beside other programs that computed, which is not
    /// kept.
    pub(super) measuring: Mutex<Option<Duration>>,
}

#[derive(Default)]
pub(super) struct KnownFacts {
    pub(super) defaults: LoadDefaults,
    /// Of models that are loaded with settings of their own, by id.
    pub(super) own: HashMap<String, LoadDefaults>,
    /// The best that is known, for estimates.
    pub(super) speeds: MeasuredSpeeds,
    /// Those of them that were measured while no other program computed.
    pub(super) kept: MeasuredSpeeds,
    pub(super) n_cores: usize,
}

impl KnownFacts {
    /// How a model of the library is loaded.
    pub(super) fn load_of(&self, id: &str) -> LoadDefaults {
        self.own.get(id).unwrap_or(&self.defaults).clone()
    }
}

impl MachineFacts {
    pub(super) fn known(&self) -> MutexGuard<'_, KnownFacts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
