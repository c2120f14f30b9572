//! The server of a window: started, asked, given another key and stopped through the window's calls.
#![allow(clippy::unwrap_used)] // a test

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use app::{App, AppConfig, Caller, Interface};
use contract::types::LocalServer;
use serde_json::{Value, json};
use server::ServerControl;

/// A temporary data folder, removed at the end.
struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn window(name: &str) -> (App, Arc<ServerControl>, Home) {
    let path = std::env::temp_dir().join(format!("inglenook-window-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let config =
        AppConfig { data_dir: Some(path.clone()), interface: Interface::Window, ..AppConfig::default() };
    let app = App::open(config).unwrap();
    let control = Arc::new(ServerControl::default());
    let runner = Arc::clone(&control);
    app.control_server_by(Box::new(move |app, action| runner.run(app, action)));
    (app, control, Home(path))
}

fn call(app: &App, name: &str) -> contract::Result<LocalServer> {
    Ok(serde_json::from_value(app.call(name, Value::Null)?).unwrap())
}

/// The status of a request with a key.
fn status(port: u16, key: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!(
        "GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn the_window_starts_renews_and_stops_its_server() {
    let (app, control, _home) = window("control");
    assert_eq!(call(&app, "local_server").unwrap(), LocalServer { can_control: true, listening: None });
    let port = free_port();
    app.settings_set("server_port", &json!(port)).unwrap();
    let first = call(&app, "local_server_start").unwrap().listening.unwrap();
    assert_eq!((first.port, first.for_devices, first.device_url), (port, false, None));
    assert_eq!(status(port, &first.key), 200);

    let second = call(&app, "local_server_renew_key").unwrap().listening.unwrap();
    assert_ne!(second.key, first.key);
    assert_eq!((status(port, &first.key), status(port, &second.key)), (401, 200));
    let requests = call(&app, "local_server").unwrap().listening.unwrap().requests;
    let seen: Vec<_> = requests.iter().map(|it| (it.path.as_str(), it.status)).collect();
    assert_eq!(seen, [("/v1/models", Some(200)), ("/v1/models", Some(401))], "the latest first");

    assert_eq!(call(&app, "local_server_stop").unwrap().listening, None);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nothing listens any more");
    control.stop();
}

#[test]
fn a_page_that_a_server_shows_has_no_control() {
    let (app, control, _home) = window("foreign");
    let served = app.as_caller(Caller { interface: Interface::Http, ..Caller::default() });
    assert_eq!(call(&served, "local_server").unwrap(), LocalServer::default());
    for name in ["local_server_start", "local_server_stop", "local_server_renew_key"] {
        assert_eq!(call(&served, name).unwrap_err().code(), "server.not_here", "{name}");
    }
    control.stop();
}

#[test]
fn f62_a_port_in_use_is_explained_with_the_setting() {
    let (app, control, _home) = window("taken");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    app.settings_set("server_port", &json!(taken.local_addr().unwrap().port())).unwrap();
    let error = call(&app, "local_server_start").unwrap_err();
    assert_eq!(error.code(), "server.port_in_use");
    assert!(error.remedy().contains("settings"), "{}", error.remedy());
    control.stop();
}
