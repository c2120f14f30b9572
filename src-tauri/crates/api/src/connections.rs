//! The one gate to the network: whoever wants to connect asks here first. Refuses where the user wants no connections,
//! and keeps a record of each: when, where to, what for, how many bytes. Never what was said.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{ConnectionInfo, ConnectionPurpose};
use crate::{App, Shared};

/// The code of what is refused because no connections are wanted.
pub(crate) const OFFLINE: &str = "network.offline";

/// How many are listed where nobody says how many.
const LISTED: u32 = 1000;

/// A connection that is allowed, and in the record from its beginning, so that a program that is killed has it too. Its
/// bytes are added when it is dropped.
pub struct Connection {
    shared: Arc<Shared>,
    id: i64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Connection {
    /// Before anything goes out, a name to be looked up included. `host`: with its port, where it isn't the usual one.
    pub(crate) fn begin(shared: &Arc<Shared>, host: &str, purpose: ConnectionPurpose) -> Result<Self> {
        if shared.setting("offline")? == true {
            return Err(offline(host));
        }
        let id = shared.state().session.begin_connection(host, &name(purpose))?;
        Ok(Self { shared: Arc::clone(shared), id, sent: AtomicU64::new(0), received: AtomicU64::new(0) })
    }

    /// So many more bytes went out.
    pub fn sent(&self, n_bytes: usize) {
        self.sent.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    /// So many more bytes came in.
    pub fn received(&self, n_bytes: usize) {
        self.received.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let bytes = |n: &AtomicU64| i64::try_from(n.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        let (sent, received) = (bytes(&self.sent), bytes(&self.received));
        let ended = self.shared.state().session.end_connection(self.id, sent, received);
        if let Err(error) = ended {
            tracing::warn!(code = error.code(), "the bytes of a connection were not recorded: {error}");
        }
    }
}

impl App {
    /// Leave to connect; see `Connection::begin`.
    pub fn connect(&self, host: &str, purpose: ConnectionPurpose) -> Result<Connection> {
        Connection::begin(&self.running.shared, host, purpose)
    }

    /// The newest first.
    pub fn connections_list(&self, limit: Option<u32>) -> Result<Vec<ConnectionInfo>> {
        let rows = self.shared().state().session.connections(limit.unwrap_or(LISTED))?;
        let bytes = |n: i64| u64::try_from(n).unwrap_or(0);
        let info = |row: session::ConnectionRow| ConnectionInfo {
            at_ms: row.at_ms,
            host: row.host,
            purpose: serde_json::from_value(row.purpose.into()).ok(),
            sent: bytes(row.sent),
            received: bytes(row.received),
        };
        Ok(rows.into_iter().map(info).collect())
    }
}

/// As it is kept.
fn name(purpose: ConnectionPurpose) -> String {
    let name = serde_json::to_value(purpose).ok();
    name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// Why nothing goes out.
pub(crate) fn offline(host: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        OFFLINE,
        format!("Nothing was sent to {host}: offline mode is on."),
        "Turn off \"Offline mode\" in the settings (nook settings set offline false), or use a model on this computer.",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::AppConfig;

    #[test]
    fn each_is_recorded_and_none_is_made_offline() {
        let folder = std::env::temp_dir().join(format!("inglenook-connections-{}", std::process::id()));
        let app = App::open(AppConfig { data_dir: Some(folder.clone()), ..AppConfig::default() }).unwrap();
        let connection = app.connect("a.example:8000", ConnectionPurpose::Answer).unwrap();
        let listed = || {
            let all = app.connections_list(None).unwrap();
            all.into_iter().map(|it| (it.host, it.purpose, it.sent, it.received)).collect::<Vec<_>>()
        };
        let purpose = Some(ConnectionPurpose::Answer);
        assert_eq!(listed(), [("a.example:8000".to_owned(), purpose, 0, 0)], "from its beginning");
        connection.sent(3);
        connection.received(5);
        connection.received(6);
        drop(connection);
        assert_eq!(listed(), [("a.example:8000".to_owned(), purpose, 3, 11)]);
        app.settings_set("offline", &json!(true)).unwrap();
        let refused = app.connect("b.example", ConnectionPurpose::Search).err().unwrap();
        assert_eq!(refused.code(), "network.offline");
        assert!(refused.message().contains("b.example"));
        assert_eq!(listed().len(), 1);
        drop(app);
        let _ = std::fs::remove_dir_all(folder);
    }
}
