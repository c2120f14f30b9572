//! Tools of the session: the servers that have them, and what became of the calls of an answer.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::message;
use crate::table::tool_server::{self, ToolServerRow};

impl Session {
    /// In the order in which they were added.
    pub fn tool_servers(&self) -> Result<Vec<ToolServerRow>> {
        tool_server::list(self.db())
    }

    pub fn put_tool_server(&mut self, row: &ToolServerRow) -> Result<()> {
        tool_server::put(self.db(), row)
    }

    /// Whether there was one.
    pub fn remove_tool_server(&mut self, id: &str) -> Result<bool> {
        tool_server::remove(self.db(), id)
    }

    /// Calls of an answer, with what has become of them: JSON of the layer above.
    pub fn set_tool_calls(&mut self, message: &str, json: &str) -> Result<()> {
        message::get(self.db(), message)?;
        message::set_tool_calls(self.db(), message, json)
    }
}
