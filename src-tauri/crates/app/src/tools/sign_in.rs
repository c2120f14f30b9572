//! Signing in to tool servers and out of them. `mcp::authorization` does the work.

use std::sync::mpsc::sync_channel;

use mcp::ServerUrl;
use mcp::authorization::{self, CredentialStore, OauthClient, SignInSite, is_sign_in_error};
use records::tool_servers::StoredServer;
use session::ToolServerRow;

use super::{ToolServer, ToolServers};
use crate::App;
use crate::settings::TypedSettings;
use contract::types::{ToolServerInfo, ToolServerState, ToolSignInArgs, ToolSignInStart, ToolSignInState};
use contract::{Error, Result};

impl App {
    /// Signs in to a server and waits for the browser. `show` gets the address for it, once.
    pub fn tool_sign_in(&self, args: ToolSignInArgs, show: impl FnOnce(&str)) -> Result<ToolServerInfo> {
        let tools = &self.services().tools;
        let id = tools.row(&args.id)?.id;
        let site = tools.sign_in_site(&tools.row(&id)?)?;
        let given = args.client_id.map(|client| OauthClient::given(&client, args.client_secret));
        let outcome = tools.sign_ins.run(&id, &site, given, |address| {
            show(address);
            tools.announce(&id);
        });
        if let Err(error) = outcome {
            if !authorization::was_canceled(&error) {
                tools.live().servers.insert(id.clone(), ToolServer::Failed(error.clone()));
            }
            tools.announce(&id);
            return Err(error);
        }
        tools.change(&id, |kept| kept.signed_in = true)?;
        tools.end(&id);
        self.tried(&id)
    }

    /// Begins a sign-in; the server's state says what comes of it.
    pub fn tool_sign_in_start(&self, args: ToolSignInArgs) -> Result<ToolSignInStart> {
        let (app, (send, begun)) = (self.clone(), sync_channel(2));
        platform::spawn("tools-sign-in", move || {
            // Once the address has come, nothing listens any more.
            let shown = |address: &str| _ = send.send(Ok(ToolSignInStart { address: address.to_owned() }));
            if let Err(error) = app.tool_sign_in(args, shown) {
                let _ = send.send(Err(error));
            }
        })?;
        begun.recv().map_err(Error::bug)?
    }

    pub fn tool_sign_in_cancel(&self, id: &str) -> Result<()> {
        let tools = &self.services().tools;
        tools.sign_ins.cancel(&tools.row(id)?.id);
        Ok(())
    }

    /// Revokes the tokens if the server offers that, and forgets them.
    pub fn tool_sign_out(&self, id: &str) -> Result<ToolServerInfo> {
        let tools = &self.services().tools;
        let row = tools.row(id)?;
        authorization::sign_out(&tools.sign_in_site(&row)?)?;
        tools.change(&row.id, |kept| kept.signed_in = false)?;
        tools.end(&row.id);
        self.told_tool_server(&row.id)
    }
}

impl ToolServers {
    pub(super) fn sign_in_site(&self, row: &ToolServerRow) -> Result<SignInSite> {
        let url = StoredServer::of(row).spec.url.unwrap_or_default();
        let (server, runtime) = (ServerUrl::parse(&url)?, self.runtime()?);
        let (gate, store) = (self.ctx.gate.clone(), self.credentials(row)?);
        let (name, challenges) = (row.name.clone(), self.challenges.clone());
        Ok(SignInSite { gate, runtime, name, server, store, challenges })
    }

    fn credentials(&self, row: &ToolServerRow) -> Result<CredentialStore> {
        Ok(CredentialStore::new(self.ctx.keys.clone(), &row.id, self.ctx.settings.key_place()? == "file"))
    }

    /// Forgets a sign-in without a word to the server.
    pub(super) fn forget_sign_in(&self, row: &ToolServerRow) -> Result<()> {
        self.sign_ins.cancel(&row.id);
        if StoredServer::of(row).signed_in { self.credentials(row)?.remove() } else { Ok(()) }
    }

    pub(super) fn sign_in_state(&self, row: &ToolServerRow, signed_in: bool) -> ToolSignInState {
        match self.state(&row.id) {
            _ if self.sign_ins.is_waiting(&row.id) => ToolSignInState::Waiting,
            ToolServerState::Failed { error } if is_sign_in_error(&error.code) => ToolSignInState::Needed,
            _ if signed_in => ToolSignInState::SignedIn,
            _ => ToolSignInState::None,
        }
    }
}
