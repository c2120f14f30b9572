//! The tool servers' use cases: add, list, import, test, change, allow, remove, restore.

use std::sync::PoisonError;

use session::ToolServerRow;

use super::ToolServers;
use crate::App;
use contract::types::{
    AppEvent, ToolPermitArgs, ToolServerAddArgs, ToolServerInfo, ToolServerSpec, ToolServerUpdateArgs,
    ToolServersImported,
};
use contract::{Error, ErrorKind, Result};
use mcp::pasted_config::{PastedServer, pasted};
use records::tool_servers::{Secrets, StoredServer, checked_name, sealed};

impl App {
    /// In the order in which they were added.
    pub fn tool_servers_list(&self) -> Result<Vec<ToolServerInfo>> {
        let rows = self.store().tool_servers()?;
        Ok(rows.iter().map(|row| self.services().tools.info(row)).collect())
    }

    /// Stored and switched on, whether it starts or not: `state` says which.
    pub fn tool_server_add(&self, args: ToolServerAddArgs) -> Result<ToolServerInfo> {
        let row = self.put_tool_server(&args.name, args.spec, None, true)?;
        self.tried(&row.id)
    }

    /// Starts it if it doesn't run, and asks for its tools. The error says why it can't be used.
    pub fn tool_server_test(&self, id: &str) -> Result<ToolServerInfo> {
        let (_, client) = self.server_in_use(id)?;
        let row = self.services().tools.row(id)?;
        self.services().tools.keep_tools(&row.id, &client)?;
        self.told_tool_server(&row.id)
    }

    pub fn tool_server_update(&self, args: ToolServerUpdateArgs) -> Result<ToolServerInfo> {
        let services = self.services();
        let mut row = services.tools.row(&args.id)?;
        let mut kept = StoredServer::of(&row);
        if let Some(name) = &args.name {
            row.name = self.free_name(name, Some(&row.id))?;
        }
        if let Some(enabled) = args.enabled {
            row.enabled = enabled;
        }
        if let Some(spec) = args.spec {
            let before = Secrets::read(&services.ctx.keys, &row.id)?;
            let (spec, secrets) = sealed(spec, &before)?;
            secrets.write(&services.ctx.keys, &row.id)?;
            // Another program is not what was allowed.
            if (&spec.command, &spec.args, &spec.url) != (&kept.spec.command, &kept.spec.args, &kept.spec.url)
            {
                services.tools.forget_sign_in(&row)?;
                kept = StoredServer { spec, plugin: kept.plugin, ..StoredServer::default() };
            } else {
                kept.spec = spec;
            }
        }
        row.body = kept.written()?;
        services.store().put_tool_server(&row)?;
        services.tools.end(&row.id);
        if row.enabled { self.tried(&row.id) } else { self.told_tool_server(&row.id) }
    }

    /// Sets what runs without asking, and which tools the model is offered.
    pub fn tool_permit(&self, args: &ToolPermitArgs) -> Result<ToolServerInfo> {
        let row = self.services().tools.row(&args.id)?;
        self.services().tools.permit(&row.id, args)?;
        self.told_tool_server(&row.id)
    }

    /// It ends. `tool_server_restore` brings it back while the program runs.
    pub fn tool_server_remove(&self, id: &str) -> Result<()> {
        let services = self.services();
        let row = services.tools.row(id)?;
        // What can't be read can't be had back either; it goes all the same.
        let secrets = Secrets::read(&services.ctx.keys, &row.id).unwrap_or_default();
        services.tools.end(&row.id);
        Secrets::remove(&services.ctx.keys, &row.id)?;
        services.tools.forget_sign_in(&row)?;
        services.store().remove_tool_server(&row.id)?;
        services.ctx.events.publish(AppEvent::ToolServerRemoved { id: row.id.clone() });
        let mut removed = services.tools.removed.lock().unwrap_or_else(PoisonError::into_inner);
        removed.insert(row.id.clone(), (row, secrets));
        Ok(())
    }

    pub fn tool_server_restore(&self, id: &str) -> Result<ToolServerInfo> {
        let services = self.services();
        let removed = services.tools.removed.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let Some((row, secrets)) = removed else {
            let message = "This server was not removed in this session.";
            return Err(Error::not_found("tools.unknown", message, "Add it again."));
        };
        secrets.write(&services.ctx.keys, &row.id)?;
        services.store().put_tool_server(&row)?;
        self.told_tool_server(&row.id)
    }

    /// Adds what a pasted configuration names. Names that are taken get a number; what is switched off there stays
    /// off.
    pub fn tool_servers_import(&self, text: &str) -> Result<ToolServersImported> {
        let (mut added, mut refused) = (Vec::new(), Vec::new());
        for PastedServer { name, is_enabled, spec } in pasted(text)? {
            let put =
                spec.and_then(|spec| self.put_tool_server(&self.unused_name(&name)?, spec, None, is_enabled));
            match put {
                Ok(row) => added.push((row.id, is_enabled)),
                Err(error) => refused.push(error.info),
            }
        }
        let told = |(id, is_enabled): &(String, bool)| match is_enabled {
            true => self.tried(id),
            false => self.told_tool_server(id),
        };
        let added = added.iter().map(told).collect::<Result<Vec<_>>>()?;
        Ok(ToolServersImported { added, refused })
    }

    pub(crate) fn put_tool_server(
        &self,
        name: &str,
        spec: ToolServerSpec,
        plugin: Option<&str>,
        enabled: bool,
    ) -> Result<ToolServerRow> {
        let services = self.services();
        let name = self.free_name(name, None)?;
        let (spec, secrets) = sealed(spec, &Secrets::default())?;
        let kept = StoredServer { spec, plugin: plugin.map(str::to_owned), ..StoredServer::default() };
        let row = ToolServerRow {
            id: services.store().new_id(),
            name,
            body: kept.written()?,
            enabled,
            added_ms: services.ctx.clock.now_utc_ms(),
        };
        secrets.write(&services.ctx.keys, &row.id)?;
        services.store().put_tool_server(&row)?;
        Ok(row)
    }

    fn free_name(&self, name: &str, own: Option<&str>) -> Result<String> {
        let name = checked_name(name)?;
        let rows = self.store().tool_servers()?;
        if rows.iter().any(|row| Some(row.id.as_str()) != own && row.name.eq_ignore_ascii_case(&name)) {
            let message = format!("A tool server named {name} already exists.");
            return Err(Error::new(ErrorKind::Conflict, "tools.there", message, "Choose another name."));
        }
        Ok(name)
    }

    pub(crate) fn unused_name(&self, name: &str) -> Result<String> {
        let numbered = (2..100).map(|n| format!("{name} {n}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find_map(|name| self.free_name(&name, None).ok());
        free.map_or_else(|| self.free_name(name, None), Ok)
    }

    /// A server that doesn't start is no reason to forget what the user typed.
    pub(super) fn tried(&self, id: &str) -> Result<ToolServerInfo> {
        // Its state says it.
        let _ = self.services().tools.client(id);
        self.told_tool_server(id)
    }

    pub(super) fn told_tool_server(&self, id: &str) -> Result<ToolServerInfo> {
        self.services().tools.announce(id);
        Ok(self.services().tools.info(&self.services().tools.row(id)?))
    }
}

impl ToolServers {
    pub(super) fn info(&self, row: &ToolServerRow) -> ToolServerInfo {
        let kept = StoredServer::of(row);
        let sign_in = self.sign_in_state(row, kept.signed_in);
        kept.info(row, self.state(&row.id), sign_in)
    }

    pub(super) fn permit(&self, id: &str, args: &ToolPermitArgs) -> Result<()> {
        self.change(id, |kept| kept.permit(args))
    }
}
