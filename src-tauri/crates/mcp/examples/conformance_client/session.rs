//! A connection to the suite's server, which signs in where the server demands it.

use std::path::PathBuf;
use std::sync::Arc;

use contract::{Error, Result};
use io::RealIo;
use mcp::authorization::{
    ChallengeMemory, CredentialStore, OauthClient, SignIn, SignInSite, TokenSource, is_sign_in_error,
};
use mcp::elicitation::{ElicitationAnswer, ElicitationForm, FieldKind};
use mcp::{Client, Core, Http, ServerUrl};
use net::{ConnectionGate, ConnectionLog, ProxyAddress};
use secrets::Keys;
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use crate::browser;

/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";

/// Sign-ins of one run. A server that is never content must not have the user sign in for ever.
const MAX_SIGN_INS: usize = 3;

/// Allows every connection, and records none.
struct OpenLog;

impl ConnectionLog for OpenLog {
    fn is_offline(&self) -> Result<bool> {
        Ok(false)
    }

    fn proxy(&self) -> Result<Option<ProxyAddress>> {
        Ok(None)
    }

    fn begin(&self, _: &str, _: &str) -> Result<i64> {
        Ok(0)
    }

    fn end(&self, _: i64, _: i64, _: i64) -> Result<()> {
        Ok(())
    }
}

/// A connection that lasts for one scenario.
pub struct Session {
    site: SignInSite,
    runtime: Runtime,
    /// A client that is registered at the authorization server, or the address of its metadata.
    given: OauthClient,
    n_sign_ins: usize,
    client: Option<Client>,
    /// Holds the tokens.
    folder: PathBuf,
}

impl Session {
    /// Nothing is sent yet.
    pub fn new(address: &str, given: OauthClient) -> Result<Self> {
        let runtime = mcp::connection_runtime()?;
        let folder = std::env::temp_dir().join(format!("inglenook-conformance-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(Error::bug)?;
        let keys = Arc::new(Keys::new(&folder, Arc::new(RealIo), false));
        let site = SignInSite {
            gate: ConnectionGate::new(Arc::new(OpenLog)),
            runtime: runtime.handle().clone(),
            name: "suite".into(),
            server: ServerUrl::parse(address)?,
            store: CredentialStore::new(keys, "suite", true),
            challenges: ChallengeMemory::default(),
        };
        Ok(Self { site, runtime, given, n_sign_ins: 0, client: None, folder })
    }

    /// Does something with the client, and signs in as often as that takes.
    pub fn with_client<T>(&mut self, work: impl Fn(&Client) -> Result<T>) -> Result<T> {
        loop {
            let done = self.connected().and_then(&work);
            match done {
                Err(error) if is_sign_in_error(error.code()) && self.n_sign_ins < MAX_SIGN_INS => {
                    eprintln!("signing in: {error}");
                    self.sign_in()?;
                }
                other => return other,
            }
        }
    }

    fn connected(&mut self) -> Result<&Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        Ok(self.client.insert(client))
    }

    fn connect(&self) -> Result<Client> {
        let (gate, server) = (self.site.gate.clone(), self.site.server.clone());
        let http = Http::new(gate, self.runtime.handle().clone(), server, &[])?;
        let http = http.with_tokens(TokenSource::signed_in(&self.site)?);
        let core = Core::new("suite", || {}).with_elicitation(Arc::new(fill_in));
        match std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
            Ok(STATELESS) => Client::reach_stateless(http, Arc::new(core)),
            _ => Client::reach(http, Arc::new(core)),
        }
    }

    fn sign_in(&mut self) -> Result<()> {
        self.n_sign_ins += 1;
        self.client = None;
        let sign_in = SignIn::begin(&self.site, Some(self.given.clone()))?;
        browser::open(self.runtime.handle(), sign_in.address())?;
        sign_in.finish()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {error}", self.folder.display());
        }
    }
}

/// Agrees to everything, and leaves the rest to the defaults.
fn fill_in(form: &ElicitationForm, _: &dyn Fn() -> bool) -> ElicitationAnswer {
    let undecided = form.fields.iter().filter(|field| field.default.is_none());
    let flags = undecided.filter(|field| field.kind == FieldKind::Flag);
    let values: Map<String, Value> = flags.map(|field| (field.name.clone(), Value::Bool(true))).collect();
    ElicitationAnswer::Accepted(values)
}
