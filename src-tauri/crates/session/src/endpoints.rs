//! What concerns other machines: the servers that answer, and the record of every connection.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::connection::{self, ConnectionRow};
use crate::table::endpoint::{self, EndpointRow};

impl Session {
    pub fn endpoints(&self) -> Result<Vec<EndpointRow>> {
        endpoint::list(&self.db)
    }

    pub fn put_endpoint(&mut self, row: &EndpointRow) -> Result<()> {
        endpoint::put(&self.db, row)
    }

    /// Whether there was one.
    pub fn remove_endpoint(&mut self, id: &str) -> Result<bool> {
        endpoint::remove(&self.db, id)
    }

    /// A connection is about to be made; its number.
    pub fn begin_connection(&mut self, host: &str, purpose: &str) -> Result<i64> {
        connection::begin(&self.db, self.clock.now_utc_ms(), host, purpose)
    }

    /// It has ended, after so many bytes.
    pub fn end_connection(&mut self, id: i64, sent: i64, received: i64) -> Result<()> {
        connection::end(&self.db, id, sent, received)
    }

    /// The newest first.
    pub fn connections(&self, limit: u32) -> Result<Vec<ConnectionRow>> {
        connection::list(&self.db, limit)
    }
}
