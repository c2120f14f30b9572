//! The sign-ins that wait for the browser, at most one for each server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::registration::OauthClient;
use super::sign_in::{SignIn, SignInSite};
use contract::Result;

/// Sign-ins by the id of their server.
#[derive(Default)]
pub struct PendingSignIns(Mutex<HashMap<String, Arc<SignIn>>>);

impl PendingSignIns {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<SignIn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs in and waits for the browser. `show` gets the address once. A sign-in that waited for the same server is
    /// canceled.
    pub fn run(
        &self,
        id: &str,
        site: &SignInSite,
        given: Option<OauthClient>,
        show: impl FnOnce(&str),
    ) -> Result<()> {
        let pending = Arc::new(SignIn::begin(site, given)?);
        let before = self.lock().insert(id.to_owned(), Arc::clone(&pending));
        if let Some(before) = before {
            before.cancel();
        }
        show(pending.address());
        let outcome = pending.finish();
        let mut all = self.lock();
        if all.get(id).is_some_and(|current| Arc::ptr_eq(current, &pending)) {
            all.remove(id);
        }
        outcome
    }

    pub fn is_waiting(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Ends the waiting for one server, if there is any.
    pub fn cancel(&self, id: &str) {
        if let Some(pending) = self.lock().remove(id) {
            pending.cancel();
        }
    }
}
