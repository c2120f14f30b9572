//! Current states of the models, and what has been asked of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use contract::ModelFacts;
use contract::protocol::LoadState;
use contract::types::ModelState;

/// Current states of the models, and the requests made of them.
#[derive(Default)]
pub(crate) struct ModelStates {
    /// What the worker last said about each model.
    loaded: Mutex<HashMap<String, LoadState>>,
    /// Facts about the starter model, once somebody asked.
    pub(super) starter: OnceLock<ModelFacts>,
    /// Imports that the user has cancelled, by the path that was asked for.
    cancelled_imports: Mutex<HashSet<String>>,
    /// Held while folders are scanned.
    pub scanning: Mutex<()>,
    /// What is wrong with the data folder's list of models, as the user was last told.
    catalog_fault: Mutex<String>,
}

impl ModelStates {
    fn loaded(&self) -> MutexGuard<'_, HashMap<String, LoadState>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, id: &str, state: LoadState) {
        self.loaded().insert(id.to_owned(), state);
    }

    pub fn state(&self, id: &str) -> ModelState {
        match self.loaded().get(id) {
            Some(LoadState::Loading { fraction }) => ModelState::Loading { fraction: *fraction },
            Some(LoadState::Ready) => ModelState::Ready,
            Some(LoadState::Failed { error }) => ModelState::Unusable { error: error.info.clone() },
            Some(LoadState::Unloaded) | None => ModelState::Unloaded,
        }
    }

    /// Whether the user was last told something else of the data folder's list of models.
    pub fn is_new_catalog_fault(&self, message: &str) -> bool {
        let mut told = self.catalog_fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *told != message;
        message.clone_into(&mut told);
        is_new
    }

    /// Imports that the user has cancelled.
    pub fn cancelled_imports(&self) -> MutexGuard<'_, HashSet<String>> {
        self.cancelled_imports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
