//! The HTTP server of the window: the edge that can run one says how, and the window's page asks for it here.

use contract::settings::DEFAULT_SERVER_PORT;
use contract::types::LocalServer;
use contract::{Error, ErrorKind, Result};

use crate::App;
use crate::network::callers::Interface;
use crate::settings::TypedSettings;

/// What the window's server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAction {
    Look,
    /// Again if it runs already, so that changed settings take effect.
    Start,
    Stop,
    /// The old key stops working at once.
    RenewKey,
}

/// Carries out an action and says what the server is then.
pub type ServerRunner = Box<dyn Fn(&App, ServerAction) -> Result<LocalServer> + Send + Sync>;

impl App {
    /// Lets this application's window control a server. Only the first runner counts.
    pub fn control_server_by(&self, runner: ServerRunner) {
        let _ = self.running.server_runner.set(runner);
    }

    /// The port of the window's server, and whether other devices may connect.
    pub fn server_place(&self) -> Result<(u16, bool)> {
        let settings = &self.ctx().settings;
        let port = settings.server_port()?.and_then(|port| u16::try_from(port).ok());
        Ok((port.unwrap_or(DEFAULT_SERVER_PORT), settings.server_devices()?))
    }

    /// Starts it where the setting says so. A failure is reported as a notice.
    pub fn start_server_if_set(&self) {
        let is_set = self.ctx().settings.server_start();
        if let Err(error) = is_set.and_then(|is_set| match is_set {
            true => self.local_server(ServerAction::Start).map(drop),
            false => Ok(()),
        }) {
            self.ctx().events.notice(error.info);
        }
    }

    /// Only for the window: a page that a server shows must neither stop it nor learn its key.
    pub fn local_server(&self, action: ServerAction) -> Result<LocalServer> {
        let is_window = self.caller.interface == Interface::Window;
        match self.running.server_runner.get().filter(|_| is_window) {
            Some(run) => run(self, action),
            None if action == ServerAction::Look => Ok(LocalServer::default()),
            None => Err(Error::new(
                ErrorKind::Conflict,
                "server.not_here",
                "The server can only be controlled in the window.",
                "Open Inglenook's window, or use `nook serve`.",
            )),
        }
    }
}
