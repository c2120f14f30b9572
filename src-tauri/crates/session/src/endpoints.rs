//! Remote model servers, and the log of outgoing connections.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::connection::{self, ConnectionRow};
use crate::table::endpoint::{self, EndpointRow};

impl Session {
    /// Lists remote model servers in the order in which they were added.
    pub fn endpoints(&self) -> Result<Vec<EndpointRow>> {
        endpoint::list(&self.db)
    }

    /// Inserts or replaces a server. Errors if another one has the same name and URL.
    pub fn put_endpoint(&mut self, row: &EndpointRow) -> Result<()> {
        endpoint::put(&self.db, row)
    }

    /// Removes a server; false if there was none.
    pub fn remove_endpoint(&mut self, id: &str) -> Result<bool> {
        endpoint::remove(&self.db, id)
    }

    /// Logs a connection that is about to be made and returns its id.
    pub fn begin_connection(&mut self, host: &str, purpose: &str) -> Result<i64> {
        connection::begin(&self.db, self.clock.now_utc_ms(), host, purpose)
    }

    /// Records the bytes of a connection that ended.
    pub fn end_connection(&mut self, id: i64, sent: i64, received: i64) -> Result<()> {
        connection::end(&self.db, id, sent, received)
    }

    /// Lists connections, newest first.
    pub fn connections(&self, limit: u32) -> Result<Vec<ConnectionRow>> {
        connection::list(&self.db, limit)
    }
}
