//! The last challenge of each server, until the next sign-in: some servers greet everyone and challenge later requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Url;

use super::challenge::BearerChallenge;

/// Servers whose challenges are remembered; a user has far fewer.
const MAX_SERVERS: usize = 256;

/// Challenges by the address of their server. Clones share them.
#[derive(Clone, Default)]
pub struct ChallengeMemory(Arc<Mutex<HashMap<Url, BearerChallenge>>>);

impl ChallengeMemory {
    fn table(&self) -> MutexGuard<'_, HashMap<Url, BearerChallenge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a challenge. A full memory keeps what it has.
    pub(crate) fn keep(&self, server: &Url, challenge: &BearerChallenge) {
        let mut table = self.table();
        if table.len() < MAX_SERVERS || table.contains_key(server) {
            table.insert(server.clone(), challenge.clone());
        }
    }

    /// The last challenge of a server.
    pub(crate) fn last(&self, server: &Url) -> Option<BearerChallenge> {
        self.table().get(server).cloned()
    }

    /// Forgets the challenge of a server, which a sign-in has met.
    pub(crate) fn forget(&self, server: &Url) {
        self.table().remove(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_challenge_of_a_server_is_kept() {
        let memory = ChallengeMemory::default();
        let (server, other) =
            (Url::parse("https://a.example/mcp").unwrap(), Url::parse("https://b.example").unwrap());
        let challenge =
            |scope: &str| BearerChallenge { scopes: vec![scope.into()], ..BearerChallenge::default() };
        memory.keep(&server, &challenge("read"));
        memory.keep(&server, &challenge("write"));
        assert_eq!(memory.last(&server), Some(challenge("write")));
        assert_eq!(memory.last(&other), None);
        memory.forget(&server);
        assert_eq!(memory.last(&server), None);
    }
}
