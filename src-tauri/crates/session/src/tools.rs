//! Tool servers, and the outcomes of tool calls.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::message;
use crate::table::tool_server::{self, ToolServerRow};

impl Session {
    /// Lists tool servers in the order in which they were added.
    pub fn tool_servers(&self) -> Result<Vec<ToolServerRow>> {
        tool_server::list(self.db())
    }

    /// Inserts or replaces a server. Errors if another one has the same name.
    pub fn put_tool_server(&mut self, row: &ToolServerRow) -> Result<()> {
        tool_server::put(self.db(), row)
    }

    /// Removes a server; false if there was none.
    pub fn remove_tool_server(&mut self, id: &str) -> Result<bool> {
        tool_server::remove(self.db(), id)
    }

    /// Stores the tool calls of an answer with their outcomes: JSON of the layer above.
    pub fn set_tool_calls(&mut self, message: &str, json: &str) -> Result<()> {
        message::get(self.db(), message)?;
        message::set_tool_calls(self.db(), message, json)
    }
}
