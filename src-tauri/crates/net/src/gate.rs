//! The one gate for outgoing connections: code that wants to connect asks here first. Refuses every
//! connection in offline mode, and records each: time, destination, purpose, bytes. Never the
//! content.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::types::ConnectionPurpose;
use contract::{Error, ErrorKind, Result};

use crate::proxy::ProxyAddress;

/// The error code of a connection that is refused because the user wants to stay offline.
pub const OFFLINE: &str = "network.offline";

/// Where the offline switch and the record of connections are kept.
pub trait ConnectionLog: Send + Sync {
    /// Whether the user wants no connections.
    fn is_offline(&self) -> Result<bool>;

    /// The proxy that the user has chosen. None: the system's, if it has one.
    fn proxy(&self) -> Result<Option<ProxyAddress>>;

    /// Records a connection that begins; returns its row.
    fn begin(&self, host: &str, purpose: &str) -> Result<i64>;

    /// Adds the bytes of a connection that has ended.
    fn end(&self, id: i64, sent: i64, received: i64) -> Result<()>;
}

/// The gate. Cheap to clone.
#[derive(Clone)]
pub struct ConnectionGate {
    log: Arc<dyn ConnectionLog>,
}

impl ConnectionGate {
    /// A gate that records in `log`.
    pub fn new(log: Arc<dyn ConnectionLog>) -> Self {
        Self { log }
    }

    /// The proxy that the user has chosen for connections beyond this computer. None: the system's, if it has one.
    pub fn proxy(&self) -> Result<Option<ProxyAddress>> {
        self.log.proxy()
    }

    /// Permission to connect. Call it before anything goes out, a name lookup included. `host` has its port where that
    /// is not the usual one. Error `network.offline`: the user wants no connections.
    pub fn connect(&self, host: &str, purpose: ConnectionPurpose) -> Result<Connection> {
        if self.log.is_offline()? {
            return Err(offline_error(host));
        }
        let id = self.log.begin(host, &purpose_name(purpose))?;
        Ok(Connection {
            log: Arc::clone(&self.log),
            id,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        })
    }
}

/// A permitted connection. It is recorded from its beginning, so that the record survives a killed program; its bytes
/// are added when it is dropped.
pub struct Connection {
    log: Arc<dyn ConnectionLog>,
    id: i64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Connection {
    /// Counts bytes that went out.
    pub fn sent(&self, n_bytes: usize) {
        self.sent.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that came in.
    pub fn received(&self, n_bytes: usize) {
        self.received.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let bytes = |n: &AtomicU64| i64::try_from(n.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        if let Err(error) = self.log.end(self.id, bytes(&self.sent), bytes(&self.received)) {
            tracing::warn!(code = error.code(), "the bytes of a connection were not recorded: {error}");
        }
    }
}

/// The purpose as it is stored.
fn purpose_name(purpose: ConnectionPurpose) -> String {
    let name = serde_json::to_value(purpose).ok();
    name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// Why nothing was sent to `host`.
pub fn offline_error(host: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        OFFLINE,
        format!("Nothing was sent to {host}: offline mode is on."),
        "Turn off \"Offline mode\" in the settings (nook settings set offline false), or use a model on this computer.",
    )
}
