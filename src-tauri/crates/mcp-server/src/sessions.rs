//! Sessions of streamable HTTP, for revisions that begin with a handshake.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use io::{Clock, RealClock};
use rand::RngCore;

use crate::client_state::ClientState;
use crate::connection::RunningRequests;
use crate::revision::Revision;

/// Most sessions; the one that was used least recently makes room.
const MAX_SESSIONS: usize = 256;

/// A session without messages ends. Longer than any answer takes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// Random bytes of an id; 128 bits can't be guessed.
const ID_BYTES: usize = 16;

/// What the server knows of a client between its requests.
#[derive(Clone)]
pub struct HttpSession {
    pub revision: Revision,
    pub running: Arc<RunningRequests>,
    pub client: Arc<ClientState>,
}

/// The sessions of the transport.
pub struct HttpSessions {
    clock: RealClock,
    /// By id, with the moment of their last use.
    table: Mutex<SessionTable>,
}

type SessionTable = HashMap<String, (HttpSession, Duration)>;

impl Default for HttpSessions {
    fn default() -> Self {
        Self { clock: RealClock::new(), table: Mutex::default() }
    }
}

impl HttpSessions {
    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session. Returns its id.
    pub fn begin(&self, revision: Revision) -> String {
        let mut bytes = [0_u8; ID_BYTES];
        rand::rng().fill_bytes(&mut bytes);
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut table = self.table();
        let now = self.clock.monotonic();
        table.retain(|_, (_, used)| now.saturating_sub(*used) < IDLE_TIMEOUT);
        if table.len() >= MAX_SESSIONS {
            let oldest = table.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| id.clone());
            oldest.and_then(|oldest| table.remove(&oldest));
        }
        let session = HttpSession { revision, running: Arc::default(), client: Arc::default() };
        table.insert(id.clone(), (session, now));
        id
    }

    /// The session of an id, which is used now.
    pub fn get(&self, id: &str) -> Option<HttpSession> {
        let mut table = self.table();
        let (session, used) = table.get_mut(id)?;
        *used = self.clock.monotonic();
        Some(session.clone())
    }

    /// Ends a session and cancels its requests. Returns whether there was one.
    pub fn end(&self, id: &str) -> bool {
        self.table().remove(id).is_some_and(|(session, _)| {
            session.running.cancel_all();
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_session_makes_room() {
        let sessions = HttpSessions::default();
        let first = sessions.begin(Revision::V2025_11_25);
        let second = sessions.begin(Revision::V2025_03_26);
        for _ in 2..MAX_SESSIONS {
            sessions.begin(Revision::V2025_11_25);
        }
        assert_eq!(sessions.get(&first).unwrap().revision, Revision::V2025_11_25);
        sessions.begin(Revision::V2025_11_25);
        assert!(sessions.get(&first).is_some() && sessions.get(&second).is_none());
        assert!(sessions.end(&first) && !sessions.end(&first));
    }
}
