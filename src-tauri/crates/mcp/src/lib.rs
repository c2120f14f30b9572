//! A client of the Model Context Protocol (revisions 2025-11-25 and, without sessions, 2026-07-28): JSON-RPC 2.0 with a
//! child process or over HTTP. Covers the handshake, tools, resources, prompts, forms and notifications. Plain threads
//! wait, each for one answer, with a timeout. Not the official `rmcp`: that reads lines of any
//! length, connects outside our gate, and covers far more of the protocol.
#![forbid(unsafe_code)]

pub mod authorization;
mod broken_message;
mod core;
mod descendants;
pub mod elicitation;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod http_client;
mod input_required;
mod login_path;
pub mod offered_prompts;
pub mod offered_resources;
pub mod open_forms;
mod param_headers;
pub mod pasted_config;
pub mod plugin_manifest;
mod program_path;
mod prompts;
mod redirects;
mod resources;
pub mod server_spec;
mod stateless;
mod stdio;
pub mod tool_outcome;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use contract::{Error, ErrorKind, Result};
pub use core::{Core, Stop};
use core::{Reply, RpcError};
pub use http::{Http, ServerUrl};
use io::{Clock, RealClock};
pub use login_path::login_shell_path;
pub use stdio::{Launch, Stdio};

/// What we speak.
const REVISION: &str = "2025-11-25";
/// What else a server may answer with: what we use of them is the same.
const REVISIONS: &[&str] = &[REVISION, "2025-06-18", "2025-03-26", "2024-11-05"];

/// A server that is fetched over the network at its first start takes a while.
const GREET_WITHIN: Duration = Duration::from_secs(60);
const LIST_WITHIN: Duration = Duration::from_secs(30);

/// With progress a call may take this many times its timeout.
const MAX_TIMEOUTS: u32 = 20;

/// What a server answers that knows no such request.
const NO_METHOD: i64 = -32601;

/// Connections wait most of the time.
const RUNTIME_THREADS: usize = 1;

/// Far beyond any server.
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 512;

/// How a server is reached.
enum Transport {
    Stdio(Stdio),
    Http(Arc<Http>),
}

/// A server that was greeted.
pub struct Client {
    core: Arc<Core>,
    transport: Transport,
    /// By what it said when it was greeted.
    has_resources: bool,
    has_prompts: bool,
    /// Every request says all about itself.
    is_stateless: bool,
}

impl Client {
    /// Starts a process and greets it.
    pub fn launch(launch: &Launch, core: Arc<Core>) -> Result<Self> {
        let transport = Transport::Stdio(Stdio::start(launch, &core)?);
        let mut client = Self::ungreeted(core, transport);
        client.greet()?;
        Ok(client)
    }

    /// Greets a server behind an address.
    pub fn reach(http: Http, core: Arc<Core>) -> Result<Self> {
        let mut client = Self::ungreeted(core, Transport::Http(Arc::new(http)));
        client.greet()?;
        Ok(client)
    }

    /// As `reach`, for a server that has no sessions as far as is known: the handshake comes second.
    pub fn reach_stateless(http: Http, core: Arc<Core>) -> Result<Self> {
        let mut client = Self::ungreeted(core, Transport::Http(Arc::new(http)));
        match client.discover() {
            Err(error) if stateless::may_be_meant(&error) => client.shake_hands()?,
            other => other?,
        }
        Ok(client)
    }

    /// Whether the server has no sessions, so that each request stands alone. This never changes for a server.
    pub fn is_stateless(&self) -> bool {
        self.is_stateless
    }

    fn ungreeted(core: Arc<Core>, transport: Transport) -> Self {
        Self { core, transport, has_resources: false, has_prompts: false, is_stateless: false }
    }

    /// Shakes hands, or asks a server that does not what it has.
    fn greet(&mut self) -> Result<()> {
        match self.shake_hands() {
            Err(refused) if stateless::may_be_meant(&refused) => match self.discover() {
                Err(error) if error.code() != "tools.revision" => Err(refused),
                other => other,
            },
            other => other,
        }
    }

    fn shake_hands(&mut self) -> Result<()> {
        let capabilities = self.core.capabilities();
        let params =
            json!({ "protocolVersion": REVISION, "capabilities": capabilities, "clientInfo": client_info() });
        let said = self.ask("initialize", params, GREET_WITHIN, None)?;
        let revision = said["protocolVersion"].as_str().unwrap_or_default();
        if !REVISIONS.contains(&revision) {
            let message = format!(
                "{} uses protocol revision \"{revision}\", which is not supported.",
                self.core.name()
            );
            let remedy = format!("Install a version of it that supports {REVISION}.");
            return Err(Error::input("tools.revision", message, remedy));
        }
        self.take_capabilities(&said);
        if let Transport::Http(http) = &self.transport {
            http.agreed(Some(revision));
        }
        self.transport.send(&self.core, note("notifications/initialized", json!({})), None)?;
        if let Transport::Http(http) = &self.transport {
            http::follow(http, &self.core);
        }
        Ok(())
    }

    /// What a server has, as it said.
    fn take_capabilities(&mut self, said: &Value) {
        self.has_resources = said["capabilities"]["resources"].is_object();
        self.has_prompts = said["capabilities"]["prompts"].is_object();
    }

    /// What a tool says. `arguments` is an object. Error: it can't be asked, said no, took too long, or was stopped.
    pub fn call(&self, tool: &str, arguments: Value, within: Duration, stop: &Stop) -> Result<Value> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }), within, Some(stop))
    }

    /// Why it answers no more; None: it does.
    pub fn over(&self) -> Option<Error> {
        self.core.over()
    }

    /// Why the user has to sign in. None: nothing is known of that.
    pub fn sign_in_fault(&self) -> Option<Error> {
        match &self.transport {
            Transport::Stdio(_) => None,
            Transport::Http(http) => http.sign_in_fault(),
        }
    }

    /// Says that nothing more will be asked, without waiting for its end; dropping it does.
    pub fn hang_up(&self) {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.hang_up(),
            Transport::Http(http) => http.end_session(),
        }
    }

    /// Waits for the server's end: another holder may still be about to drop it.
    pub fn end(&self) {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.end(),
            Transport::Http(http) => http.end_session(),
        }
    }

    /// Asks, and gives the server what it requires in return.
    fn ask(&self, method: &str, params: Value, within: Duration, stop: Option<&Stop>) -> Result<Value> {
        let name = self.core.name();
        let is_withdrawn = || self.core.over().is_some() || stop.is_some_and(Stop::is_pressed);
        let mut round = params.clone();
        for _ in 0..input_required::MAX_ROUNDS {
            let said = self.request(method, round, within, stop)?;
            let said = said.map_err(|error| refused(name, method, &error))?;
            match input_required::next_round(name, method, &said, self.core.elicitation(), &is_withdrawn)? {
                None => return Ok(said),
                Some(next) => round = next.params(&params),
            }
        }
        let message = format!("{name} did not complete {method}: it keeps asking back.");
        Err(Error::input("tools.incomplete", message, "See the documentation of the server."))
    }

    /// Sends one request and waits for its answer.
    fn request(
        &self,
        method: &str,
        mut params: Value,
        within: Duration,
        stop: Option<&Stop>,
    ) -> Result<Result<Value, RpcError>> {
        let (id, sender, replies) = self.core.expect()?;
        if self.is_stateless {
            params["_meta"] = stateless::meta(self.core.capabilities());
        }
        if method == "tools/call" {
            params["_meta"]["progressToken"] = json!(id);
        }
        if let Some(stop) = stop {
            stop.watch(sender);
        }
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let sent = self.transport.send(&self.core, request, Some(id));
        let reply = match sent {
            Ok(()) => wait_for(&replies, within, || self.core.is_asking_user()),
            Err(error) => Ok(Reply::Failed(error)),
        };
        self.core.forget(id);
        match reply {
            Ok(Reply::Said(said)) => Ok(said),
            Ok(Reply::Failed(error)) => Err(error),
            Ok(Reply::Progress) => Err(Error::bug("progress was taken for an answer")),
            Ok(Reply::Stopped) => {
                self.withdraw(id, "the user stopped it");
                Err(stopped())
            }
            Err(RecvTimeoutError::Timeout) => {
                self.withdraw(id, "it took too long");
                Err(silent(&self.core, within))
            }
            Err(RecvTimeoutError::Disconnected) => Err(Error::bug("a call of a tool was forgotten")),
        }
    }

    /// Withdraws a request whose caller has gone.
    fn withdraw(&self, id: u64, why: &str) {
        if let Transport::Http(http) = &self.transport {
            http.abort(id);
            if self.is_stateless {
                // Without sessions, a closed connection says that.
                return;
            }
        }
        let note = note("notifications/cancelled", json!({ "requestId": id, "reason": why }));
        if let Err(error) = self.transport.send(&self.core, note, None) {
            tracing::debug!("{} was not told that a call is withdrawn: {error}", self.core.name());
        }
    }
}

impl Transport {
    /// `id`: of a request, whose answer the core will hear.
    fn send(&self, core: &Arc<Core>, message: Value, id: Option<u64>) -> Result<()> {
        match self {
            Self::Stdio(stdio) => stdio.send(core, &message),
            Self::Http(http) => {
                Http::post(http, core, message, id);
                Ok(())
            }
        }
    }
}

/// Waits for what a request brings. Progress starts the timeout again, up to `MAX_TIMEOUTS` times as long. While the user
/// is asked something, no time passes.
fn wait_for(
    replies: &Receiver<Reply>,
    within: Duration,
    is_asking_user: impl Fn() -> bool,
) -> Result<Reply, RecvTimeoutError> {
    let clock = RealClock::new();
    let cap = within.saturating_mul(MAX_TIMEOUTS);
    let mut end = clock.monotonic() + cap;
    loop {
        let left = end.saturating_sub(clock.monotonic());
        match replies.recv_timeout(within.min(left)) {
            Ok(Reply::Progress) => {}
            Err(RecvTimeoutError::Timeout) if is_asking_user() => end = clock.monotonic() + cap,
            other => return other,
        }
    }
}

/// Starts what connections run on. None of its threads may own it.
pub fn connection_runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(RUNTIME_THREADS).enable_all().thread_name("inglenook-tools");
    builder.build().map_err(|error| {
        let message = format!("The system could not start a thread: {error}.");
        Error::new(ErrorKind::Limit, "app.thread", message, "Close other programs and restart Inglenook.")
    })
}

/// Who we are.
fn client_info() -> Value {
    json!({ "name": "inglenook", "title": "Inglenook", "version": env!("CARGO_PKG_VERSION") })
}

fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The error of a call that was stopped.
fn stopped() -> Error {
    Error::new(ErrorKind::Conflict, "tools.stopped", "The call was canceled.", "Try again.")
}

/// Whether a call ended because somebody stopped it.
pub fn was_stopped(error: &Error) -> bool {
    error.code() == "tools.stopped"
}

fn refused(name: &str, method: &str, error: &RpcError) -> Error {
    let message = format!("{name} refused {method}: {} ({}).", error.message, error.code);
    let code = if error.code == NO_METHOD { "tools.no_method" } else { "tools.refused" };
    Error::input(code, message, "See the documentation of the server.")
}

fn silent(core: &Core, within: Duration) -> Error {
    let mut message = format!("{} did not respond within {} seconds.", core.name(), within.as_secs());
    if let Some(line) = core.junk_line() {
        message.push_str(&format!(" It printed \"{line}\", which is not an MCP message."));
    }
    Error::new(
        ErrorKind::Device,
        "tools.silent",
        message,
        "Check its command, or raise \"Tool timeout\" in the settings.",
    )
}

pub fn malformed(name: &str, why: &str) -> Error {
    let message = format!("{name} sent something that is not an MCP message: {why}.");
    Error::input("tools.malformed", message, "Check that its command or address belongs to an MCP server.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_extends_the_time_of_a_call() {
        let within = Duration::from_millis(200);
        let (sender, replies) = std::sync::mpsc::sync_channel(1);
        let server = std::thread::spawn(move || {
            for _ in 0..5 {
                std::thread::sleep(within / 2);
                sender.send(Reply::Progress).unwrap();
            }
            sender.send(Reply::Said(Ok(json!(1)))).unwrap();
            sender
        });
        assert!(matches!(wait_for(&replies, within, || false), Ok(Reply::Said(Ok(value))) if value == 1));
        let _sender = server.join().unwrap();
        assert!(matches!(wait_for(&replies, within, || false), Err(RecvTimeoutError::Timeout)));
    }

    #[test]
    fn endless_progress_ends_too() {
        let (sender, replies) = std::sync::mpsc::sync_channel(1);
        let server = std::thread::spawn(move || while sender.send(Reply::Progress).is_ok() {});
        assert!(matches!(
            wait_for(&replies, Duration::from_millis(5), || false),
            Err(RecvTimeoutError::Timeout)
        ));
        drop(replies);
        server.join().unwrap();
    }
}
