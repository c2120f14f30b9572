//! The database of the application.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use contract::Error;
use io::Io;
use session::Session;

use crate::events::Events;

/// Repairs of one run. More say that the disk goes on damaging the file, and each reads all of it.
const MAX_REPAIRS: u32 = 3;

/// The database: one writer, behind one lock.
#[derive(Clone)]
pub(crate) struct Store {
    session: Arc<Mutex<Session>>,
    events: Events,
    io: Arc<dyn Io>,
    n_repairs: Arc<AtomicU32>,
}

impl Store {
    pub fn new(session: Session, events: Events, io: Arc<dyn Io>) -> Self {
        Self { session: Arc::new(Mutex::new(session)), events, io, n_repairs: Arc::default() }
    }

    /// The session, for as long as the guard lives. Take no other lock before it.
    pub fn lock(&self) -> StoreGuard<'_> {
        // The truth is in the database, which is whole after every statement.
        let session = self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        StoreGuard { session, store: self }
    }
}

/// The session, locked. If SQLite told of damage meanwhile, the database is repaired when this is dropped.
pub(crate) struct StoreGuard<'a> {
    session: MutexGuard<'a, Session>,
    store: &'a Store,
}

impl Deref for StoreGuard<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for StoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Drop for StoreGuard<'_> {
    fn drop(&mut self) {
        if !io::take_damage_report() || std::thread::panicking() {
            return;
        }
        let Store { events, io, n_repairs, .. } = self.store;
        if n_repairs.fetch_add(1, Ordering::Relaxed) >= MAX_REPAIRS {
            return;
        }
        match self.session.repair(&**io) {
            Ok(None) => {}
            Ok(Some(notice)) => events.notice(Error::from(notice).info),
            Err(error) => {
                // Trying again would read the whole file for nothing.
                n_repairs.store(MAX_REPAIRS, Ordering::Relaxed);
                events.notice(Error::from(error).info);
            }
        }
    }
}
