//! Sessions of streamable HTTP, for revisions that begin with a handshake: `rmcp`'s, but never more than a maximum.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio_util::sync::CancellationToken;

use crate::bounded_transport::BoundedTransport;

/// Most sessions; the one that was used least recently makes room.
const MAX_SESSIONS: usize = 256;

/// A session without messages ends. Longer than any answer takes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// The sessions of the transport.
pub struct BoundedSessions {
    inner: LocalSessionManager,
    /// Ids of open sessions, the one that was used least recently first.
    by_use: Mutex<VecDeque<SessionId>>,
}

impl Default for BoundedSessions {
    fn default() -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(IDLE_TIMEOUT);
        Self { inner, by_use: Mutex::default() }
    }
}

impl BoundedSessions {
    fn by_use(&self) -> MutexGuard<'_, VecDeque<SessionId>> {
        self.by_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a session as the one that was used last.
    fn mark_used(&self, id: &SessionId) {
        let mut by_use = self.by_use();
        if let Some(at) = by_use.iter().position(|other| other == id) {
            by_use.remove(at);
            by_use.push_back(id.clone());
        }
    }

    /// Adds a session. Returns the one that makes room.
    fn add(&self, id: SessionId) -> Option<SessionId> {
        let mut by_use = self.by_use();
        by_use.push_back(id);
        if by_use.len() > MAX_SESSIONS { by_use.pop_front() } else { None }
    }

    fn remove(&self, id: &SessionId) {
        self.by_use().retain(|other| other != id);
    }
}

impl SessionManager for BoundedSessions {
    type Error = LocalSessionManagerError;
    type Transport = BoundedTransport<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        if let Some(oldest) = self.add(id.clone()) {
            self.inner.close_session(&oldest).await?;
        }
        Ok((id, BoundedTransport::new(transport, CancellationToken::new())))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.mark_used(id);
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_least_recently_used_session_makes_room() {
        let sessions = BoundedSessions::default();
        let begin = async || sessions.create_session().await.unwrap();
        let mut open = Vec::new();
        for _ in 0..MAX_SESSIONS {
            open.push(begin().await);
        }
        let ids = |at: usize| open[at].0.clone();
        assert!(sessions.has_session(&ids(0)).await.unwrap());
        let newest = begin().await;
        assert!(
            sessions.has_session(&ids(0)).await.unwrap() && sessions.has_session(&newest.0).await.unwrap()
        );
        assert!(!sessions.has_session(&ids(1)).await.unwrap());
        sessions.close_session(&ids(0)).await.unwrap();
        assert!(!sessions.has_session(&ids(0)).await.unwrap());
        assert_eq!(sessions.by_use().len(), MAX_SESSIONS - 1);
    }
}
