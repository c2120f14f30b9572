//! The database of the application.

use std::sync::{Arc, Mutex, MutexGuard};

use session::Session;

/// The database: one writer, behind one lock.
#[derive(Clone)]
pub(crate) struct Store {
    session: Arc<Mutex<Session>>,
}

impl Store {
    pub fn new(session: Session) -> Self {
        Self { session: Arc::new(Mutex::new(session)) }
    }

    /// The session, for as long as the guard lives. Take no other lock before it.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        // The truth is in the database, which is whole after every statement.
        self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
