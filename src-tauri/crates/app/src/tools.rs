//! Tools of other programs: MCP servers, the tools that a conversation is offered, and the rounds
//! of calls and results. Nothing runs that the user has not allowed. Every call gets a result that
//! the model sees, and no call exceeds its time limit. The servers end with the application.

mod approval;
mod forms;
pub mod offered_tools;
pub mod open_rounds;
pub mod plugins;
mod prompts;
mod resources;
pub mod rounds;
mod servers;
mod sign_in;

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use contract::types::{AppEvent, ToolServerState};
use contract::{Error, ErrorKind, Result};
pub use mcp::Stop as CallStop;
use mcp::authorization::{ChallengeMemory, PendingSignIns, TokenSource};
use mcp::{Client, Core, Http, connection_runtime, login_shell_path};
use session::ToolServerRow;
use tokio::runtime::{Handle, Runtime};

use crate::context::Context;
use crate::network::callers::Interface;
pub use mcp::offered_prompts::arguments as prompt_arguments;
use mcp::open_forms::OpenForms;
pub use offered_tools::OfferedTools;
use records::tool_servers::{Secrets, StoredServer, listed};

/// A server that starts is waited for no longer than its greeting and its list may take.
const STARTING: Duration = Duration::from_secs(120);

/// How long to wait on exit for servers that are still starting to end.
const ENDING: Duration = Duration::from_secs(5);

/// The servers that run.
pub(crate) struct ToolServers {
    ctx: Context,
    live: Mutex<Live>,
    /// Somebody's start has ended.
    started: Condvar,
    runtime: Mutex<Option<Runtime>>,
    /// See `program_path`.
    path: OnceLock<String>,
    /// Removed since the program began, with what was sealed of them: they can be had back.
    removed: Mutex<HashMap<String, (ToolServerRow, Secrets)>>,
    sign_ins: PendingSignIns,
    forms: Arc<OpenForms>,
    challenges: ChallengeMemory,
    /// Ids of servers that turned out to have no sessions. They need no handshake the next time.
    stateless: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct Live {
    servers: HashMap<String, ToolServer>,
    /// Starts that have not ended, whether they are still wanted or not.
    n_starting: usize,
    /// The program ends: nothing starts any more.
    is_over: bool,
}

enum ToolServer {
    /// With those waiting for its greeting, if any.
    Starting(Option<Arc<Core>>),
    Ready(Arc<Client>),
    Failed(Error),
}

impl ToolServers {
    pub fn new(ctx: Context) -> Self {
        let events = ctx.events.clone();
        let forms = OpenForms::new(move |event| events.publish(event));
        Self {
            ctx,
            forms,
            live: Mutex::default(),
            started: Condvar::new(),
            runtime: Mutex::default(),
            path: OnceLock::new(),
            removed: Mutex::default(),
            sign_ins: PendingSignIns::default(),
            challenges: ChallengeMemory::default(),
            stateless: Mutex::default(),
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every server, all at once.
    pub fn stop(&self) {
        let servers = {
            let mut live = self.live();
            live.is_over = true;
            std::mem::take(&mut live.servers)
        };
        self.forms.close_forms_of(None);
        let clients: Vec<_> = servers.into_values().filter_map(ToolServer::left).collect();
        clients.iter().for_each(|client| client.hang_up());
        // Each of them has been told, so that the slowest alone is waited for.
        clients.iter().for_each(|client| client.end());
        // Those that had not been greeted end with their start.
        let waited = self.started.wait_timeout_while(self.live(), ENDING, |live| live.n_starting > 0);
        drop(waited);
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }

    /// Ends one server, if it runs.
    pub fn end(&self, id: &str) {
        let server = self.live().servers.remove(id);
        self.forms.close_forms_of(Some(id));
        if let Some(client) = server.and_then(ToolServer::left) {
            client.hang_up();
        }
    }

    pub fn state(&self, id: &str) -> ToolServerState {
        match self.live().servers.get(id) {
            None => ToolServerState::Idle,
            Some(ToolServer::Starting(_)) => ToolServerState::Starting,
            Some(ToolServer::Ready(client)) => match client.over().or_else(|| client.sign_in_fault()) {
                None => ToolServerState::Ready,
                Some(error) => ToolServerState::Failed { error: error.info },
            },
            Some(ToolServer::Failed(error)) => ToolServerState::Failed { error: error.info.clone() },
        }
    }

    /// The server, started if it doesn't run. Waits until it does.
    pub fn client(self: &Arc<Self>, id: &str) -> Result<Arc<Client>> {
        let mut live = self.live();
        loop {
            if live.is_over {
                return Err(Error::bug("a tool was asked for while the program ends"));
            }
            match live.servers.get(id) {
                Some(ToolServer::Ready(client)) if client.over().is_none() => return Ok(Arc::clone(client)),
                Some(ToolServer::Starting(_)) => {
                    let waited = self.started.wait_timeout(live, STARTING);
                    let (now, out) = waited.unwrap_or_else(PoisonError::into_inner);
                    if out.timed_out() {
                        return Err(slow(id));
                    }
                    live = now;
                    if let Some(ToolServer::Failed(error)) = live.servers.get(id) {
                        return Err(error.clone());
                    }
                }
                Some(ToolServer::Ready(_) | ToolServer::Failed(_)) | None => break,
            }
        }
        let gone = live.servers.insert(id.to_owned(), ToolServer::Starting(None));
        live.n_starting += 1;
        drop(live);
        drop(gone);
        self.announce(id);
        let mut started = self.start(id);
        if self.live().is_over {
            // It ends here and now.
            started = Err(started.err().unwrap_or_else(|| left(id)));
        }
        let mut live = self.live();
        live.n_starting = live.n_starting.saturating_sub(1);
        // It may have been switched off, or the program may end, meanwhile.
        let is_wanted = !live.is_over && matches!(live.servers.get(id), Some(ToolServer::Starting(_)));
        if is_wanted {
            let server = match &started {
                Ok(client) => ToolServer::Ready(Arc::clone(client)),
                Err(error) => ToolServer::Failed(error.clone()),
            };
            live.servers.insert(id.to_owned(), server);
        }
        drop(live);
        self.started.notify_all();
        self.announce(id);
        started.inspect_err(|error| tracing::warn!(code = error.code(), "a server of tools: {error}"))
    }

    fn start(self: &Arc<Self>, id: &str) -> Result<Arc<Client>> {
        let row = self.row(id)?;
        let kept = StoredServer::of(&row);
        let secrets = Secrets::read(&self.ctx.keys, id)?;
        let (weak, of) = (Arc::downgrade(self), id.to_owned());
        let core = Core::new(&row.name, move || relist(&weak, &of));
        let core = match self.ctx.caller.interface {
            Interface::Window => Arc::new(core.with_elicitation(self.forms.handler(id))),
            Interface::Http | Interface::Terminal => Arc::new(core),
        };
        match self.live().servers.get_mut(id) {
            Some(ToolServer::Starting(waiting)) => *waiting = Some(Arc::clone(&core)),
            Some(ToolServer::Ready(_) | ToolServer::Failed(_)) | None => return Err(left(&row.name)),
        }
        // The shell is not asked for a server that no command starts.
        let path = kept.spec.command.as_ref().and_then(|_| self.program_path());
        let client = match (kept.launch(&secrets, self.ctx.environment.0, path), &kept.spec.url) {
            (Some(launch), _) => Client::launch(&launch, core)?,
            (None, Some(_)) => {
                let (site, headers) = (self.sign_in_site(&row)?, secrets.headers());
                let http = Http::new(site.gate.clone(), site.runtime.clone(), site.server.clone(), &headers)?;
                let tokens = match kept.signed_in {
                    true => TokenSource::signed_in(&site)?,
                    false => TokenSource::signed_out(&site),
                };
                self.reach(id, http.with_tokens(tokens), core)?
            }
            (None, None) => return Err(Error::bug("a server of tools is nowhere")),
        };
        self.keep_tools(id, &client)?;
        Ok(Arc::new(client))
    }

    /// Greets a server the way that worked the last time.
    fn reach(&self, id: &str, http: Http, core: Arc<Core>) -> Result<Client> {
        let known = || self.stateless.lock().unwrap_or_else(PoisonError::into_inner);
        let was_stateless = known().contains(id);
        let client =
            if was_stateless { Client::reach_stateless(http, core) } else { Client::reach(http, core) }?;
        match client.is_stateless() {
            true => known().insert(id.to_owned()),
            false => known().remove(id),
        };
        Ok(client)
    }

    /// The folders of programs: the inherited ones, and those that the login shell adds. The shell is asked once. None:
    /// the inherited ones do, as in a terminal.
    fn program_path(&self) -> Option<String> {
        if std::io::stderr().is_terminal() {
            return None;
        }
        let shell = (self.ctx.environment.0)("SHELL");
        let asked =
            || login_shell_path(shell.as_deref(), &(self.ctx.environment.0)("PATH").unwrap_or_default());
        Some(self.path.get_or_init(asked).clone()).filter(|path| !path.is_empty())
    }

    /// Runs the connections. It has this one owner: its own threads must not drop it.
    fn runtime(&self) -> Result<Handle> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let made = connection_runtime()?;
        let handle = made.handle().clone();
        *runtime = Some(made);
        Ok(handle)
    }
}

impl Drop for ToolServers {
    /// Never waits: the last owner may be a thread of the runtime.
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

impl ToolServer {
    /// Gives up the server: returns its client if it has one; a start in progress ends.
    fn left(self) -> Option<Arc<Client>> {
        match self {
            Self::Ready(client) => return Some(client),
            Self::Starting(Some(core)) => core.end(left(core.name())),
            Self::Starting(None) | Self::Failed(_) => {}
        }
        None
    }
}

fn left(name: &str) -> Error {
    let message = format!("{name} was turned off while it was starting.");
    Error::new(ErrorKind::Conflict, "tools.off", message, "Turn it on again.")
}

/// A server says that its tools have changed: it is asked for them, away from the thread that heard it.
fn relist(servers: &Weak<ToolServers>, id: &str) {
    let (servers, of) = (servers.clone(), id.to_owned());
    let listing = platform::spawn("tools-list", move || {
        let Some(servers) = servers.upgrade() else { return };
        let client = match servers.live().servers.get(&of) {
            Some(ToolServer::Ready(client)) => Arc::clone(client),
            // What it lists at its start is new enough.
            Some(ToolServer::Starting(_) | ToolServer::Failed(_)) | None => return,
        };
        if let Err(error) = servers.keep_tools(&of, &client) {
            tracing::warn!(code = error.code(), "a list of tools was not renewed: {error}");
        }
        servers.announce(&of);
    });
    if let Err(error) = listing {
        tracing::warn!(code = error.code(), "a list of tools was not renewed: {error}");
    }
}

fn slow(id: &str) -> Error {
    Error::new(
        ErrorKind::Device,
        "tools.silent",
        format!("The tool server {id} is taking too long to start."),
        "See its status under Settings > Tools.",
    )
}

impl ToolServers {
    pub(crate) fn row(&self, id: &str) -> Result<ToolServerRow> {
        let mut rows = self.ctx.store.lock().tool_servers()?;
        // A name does as well.
        let at = rows.iter().position(|row| row.id == id || row.name == id);
        at.map(|at| rows.swap_remove(at)).ok_or_else(|| {
            let message = format!("There is no tool server \"{id}\".");
            Error::not_found("tools.unknown", message, "See `nook tools list`.")
        })
    }

    /// Keeps what a server lists.
    fn keep_tools(&self, id: &str, client: &Client) -> Result<()> {
        let tools = listed(&client.tools()?);
        let mut asking = Vec::new();
        self.change(id, |kept| asking = kept.relist(tools))?;
        if !asking.is_empty() {
            let name = self.row(id)?.name;
            let tools = asking.join(", ");
            self.ctx.events.notice(
                Error::input(
                    "tools.changed",
                    format!("The tool server \"{name}\" has changed what it offers: {tools}."),
                    "These tools ask for permission again before they run.",
                )
                .info,
            );
        }
        Ok(())
    }

    /// Changes what is kept of a server.
    fn change(&self, id: &str, change: impl FnOnce(&mut StoredServer)) -> Result<()> {
        let mut row = self.row(id)?;
        let before = StoredServer::of(&row);
        let mut kept = before.clone();
        change(&mut kept);
        if kept == before {
            return Ok(());
        }
        row.body = kept.written()?;
        Ok(self.ctx.store.lock().put_tool_server(&row)?)
    }

    /// Says how a server is.
    pub(crate) fn announce(&self, id: &str) {
        // It may have been removed meanwhile.
        let Ok(row) = self.row(id) else { return };
        self.ctx.events.publish(AppEvent::ToolServerChanged { server: self.info(&row) });
    }
}
