//! The record of connections, and the gate that writes it.

use std::sync::Arc;

use contract::Result;
use contract::types::{ConnectionInfo, ConnectionPurpose};
use net::{Connection, ConnectionGate, ConnectionLog, ProxyAddress};

use crate::App;
use crate::settings::{Settings, TypedSettings};
use crate::store::Store;

/// Connections that are listed unless the caller says how many.
const DEFAULT_LISTED: u32 = 1000;

/// The offline switch is a setting, and the record a table of the database.
struct StoredConnectionLog {
    store: Store,
    settings: Settings,
}

impl ConnectionLog for StoredConnectionLog {
    fn is_offline(&self) -> Result<bool> {
        self.settings.offline()
    }

    fn proxy(&self) -> Result<Option<ProxyAddress>> {
        ProxyAddress::parse(&self.settings.proxy()?)
    }

    fn begin(&self, host: &str, purpose: &str) -> Result<i64> {
        Ok(self.store.lock().begin_connection(host, purpose)?)
    }

    fn end(&self, id: i64, sent: i64, received: i64) -> Result<()> {
        Ok(self.store.lock().end_connection(id, sent, received)?)
    }
}

/// The gate that all connections of the application pass.
pub(crate) fn connection_gate(store: &Store, settings: &Settings) -> ConnectionGate {
    ConnectionGate::new(Arc::new(StoredConnectionLog { store: store.clone(), settings: settings.clone() }))
}

impl App {
    /// Permission to connect; see `ConnectionGate::connect`.
    pub fn connect(&self, host: &str, purpose: ConnectionPurpose) -> Result<Connection> {
        self.ctx().gate.connect(host, purpose)
    }

    /// Whether images are fetched that a client of the server names by their addresses.
    pub fn fetches_images(&self) -> bool {
        self.ctx().settings.allow_image_urls().is_ok_and(|allowed| allowed != "off")
    }

    /// Fetches such an image. Errors: those of `remote::fetch_image`.
    pub async fn fetch_image(&self, url: &str) -> Result<Vec<u8>> {
        let reach = match self.ctx().settings.allow_image_urls()?.as_str() {
            "any" => remote::ImageReach::Any,
            _ => remote::ImageReach::Public,
        };
        remote::fetch_image(&self.ctx().gate, url, reach).await
    }

    /// The newest first.
    pub fn connections_list(&self, limit: Option<u32>) -> Result<Vec<ConnectionInfo>> {
        let rows = self.store().connections(limit.unwrap_or(DEFAULT_LISTED))?;
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
