//! The server of a window: started, stopped and described at the request of its page.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

use app::{App, Caller, Interface, ServerAction};
use contract::types::{ListeningServer, LocalServer};
use contract::{Error, Result};

use crate::{Options, RunningServer, key, serve};

/// Holds at most one running server.
#[derive(Default)]
pub struct ServerControl(Mutex<Option<RunningServer>>);

impl ServerControl {
    fn running(&self) -> MutexGuard<'_, Option<RunningServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out an action for the window's page.
    ///
    /// Errors: `server.port_in_use`, `server.bind`, and those of the key's file.
    pub fn run(&self, app: &App, action: ServerAction) -> Result<LocalServer> {
        let mut running = self.running();
        match action {
            ServerAction::Look => {}
            ServerAction::Stop => *running = None,
            ServerAction::Start => {
                *running = None;
                *running = Some(start(app)?);
            }
            ServerAction::RenewKey => {
                let was_running = running.take().is_some();
                key::renew(&app.dirs().data)?;
                if was_running {
                    *running = Some(start(app)?);
                }
            }
        }
        let listening = running.as_ref().map(description);
        Ok(LocalServer { can_control: true, listening })
    }

    /// Ends the server, and with it its hold on the application.
    pub fn stop(&self) {
        *self.running() = None;
    }
}

/// Starts a server as the settings say.
fn start(app: &App) -> Result<RunningServer> {
    let (port, for_devices) = app.server_place()?;
    let host = if for_devices { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let options = Options { host: host.into(), port, ..Options::default() };
    let app = app.as_caller(Caller { interface: Interface::Http, ..Caller::default() });
    serve(app, options).map_err(in_the_window)
}

/// A window has a setting where a terminal has `--port`.
fn in_the_window(error: Error) -> Error {
    match error.code() {
        "server.port_in_use" => Error::input(
            "server.port_in_use",
            error.message().to_owned(),
            "Choose another port in the settings of the local server.",
        ),
        _ => error,
    }
}

fn description(server: &RunningServer) -> ListeningServer {
    let (address, port) = (server.address.ip(), server.address.port());
    let for_devices = !address.is_loopback();
    let device_url = network_address().filter(|_| for_devices).map(|ip| format!("http://{ip}:{port}"));
    ListeningServer {
        port,
        for_devices,
        url: format!("http://{}:{port}", Ipv4Addr::LOCALHOST),
        device_url,
        key: server.key.clone(),
        requests: server.recent.latest(),
    }
}

/// This computer's address in its network: the one that a packet to elsewhere would leave from. None is sent.
fn network_address() -> Option<IpAddr> {
    // Of a range that is reserved for documentation (RFC 5737).
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 9));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(elsewhere).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_explained_with_the_setting() {
        let error = in_the_window(Error::input("server.port_in_use", "It is taken.", "Use --port."));
        assert!(error.remedy().contains("settings") && error.message() == "It is taken.");
        assert_eq!(in_the_window(Error::input("server.bind", "m", "r")).remedy(), "r");
    }
}
