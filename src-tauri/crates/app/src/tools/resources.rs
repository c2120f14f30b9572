//! Resources that tool servers offer: listed, read, attached to a message like files. Only the user requests one, never
//! a model.

use std::sync::Arc;
use std::time::Duration;

use contract::types::{Attachment, ToolResources};
use contract::{Error, ErrorKind, Result};
use mcp::Client;
use mcp::offered_resources::{MAX_URI_CHARS, ReadResource, file_name, read, resource, template};

use crate::App;
use crate::settings::TypedSettings;

impl App {
    /// What a server offers to be read. It is started if it doesn't run.
    pub fn tool_resources(&self, id: &str) -> Result<ToolResources> {
        let (_, client) = self.server_in_use(id)?;
        let resources = client.resources()?.iter().filter_map(resource).collect();
        let templates = client.resource_templates()?.iter().filter_map(template).collect();
        Ok(ToolResources { resources, templates })
    }

    /// The text of a resource.
    pub fn tool_resource_text(&self, id: &str, uri: &str) -> Result<String> {
        Ok(self.read_resource(id, uri)?.text)
    }

    /// A resource for a message that will be sent, as a file with its text.
    pub fn tool_resource_attach(&self, id: &str, uri: &str) -> Result<Attachment> {
        let read = self.read_resource(id, uri)?;
        self.attach(&file_name(uri, &read.kind), read.text.as_bytes())
    }

    fn read_resource(&self, id: &str, uri: &str) -> Result<ReadResource> {
        let (name, client) = self.server_in_use(id)?;
        let uri = uri.trim();
        if uri.is_empty() || uri.chars().count() > MAX_URI_CHARS {
            let message = "This is not a valid resource address.";
            return Err(Error::input(
                "tools.resource",
                message,
                "Use the address exactly as the server lists it.",
            ));
        }
        let seconds = self.ctx().settings.tool_seconds()?.unwrap_or(60);
        read(&name, uri, &client.read(uri, Duration::from_secs(seconds))?)
    }

    /// A server that is switched on: its name, and its client.
    pub(super) fn server_in_use(&self, id: &str) -> Result<(String, Arc<Client>)> {
        let row = self.services().tools.row(id)?;
        if !row.enabled {
            let message = format!("{} is turned off.", row.name);
            return Err(Error::new(ErrorKind::Conflict, "tools.off", message, "Turn it on first."));
        }
        let client = self.services().tools.client(&row.id)?;
        Ok((row.name, client))
    }
}
