//! HTTP server: the OpenAI-compatible API, the application's calls and events, and the web interface.
//!
//! Guarantees that pages of other origins get nothing and that every error is JSON with a reason.
//! A client that disconnects stops its own answer. Knows nothing of models and files.
#![forbid(unsafe_code)]

mod app_calls;
mod body;
mod connections;
mod fault;
mod guard;
mod json_body;
mod key;
mod openai;
mod pages;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use app::App;
use app::ServerLock;
use axum::Router;
use axum::routing::{get, post};
use connections::ConnectionLimits;
use contract::Error;
use contract::ErrorKind;
use platform::EventLog;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Default port of `nook serve`.
pub const DEFAULT_PORT: u16 = 8642;

/// Time that running answers get to finish after a stop request.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Threads for network I/O; models compute on other threads.
const IO_THREADS: usize = 2;

/// Options of the server.
#[derive(Debug, Clone)]
pub struct Options {
    pub host: IpAddr,
    /// 0 chooses a free port.
    pub port: u16,
    /// `None` uses the key in the data folder, created at the first start.
    pub api_key: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { host: IpAddr::from([127, 0, 0, 1]), port: DEFAULT_PORT, api_key: None }
    }
}

/// A running server. Stops when dropped.
pub struct RunningServer {
    /// Address, such as `http://127.0.0.1:8642`.
    pub url: String,
    /// Key that clients send as `Authorization: Bearer KEY`.
    pub key: String,
    /// Tells other windows about this server. `None` if the lock failed, which does not prevent serving.
    serving: Option<ServerLock>,
    stopping: Arc<EventLog<()>>,
    task: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// State that all routes share.
#[derive(Clone)]
pub(crate) struct RouteState {
    pub app: App,
    pub key: Arc<str>,
    /// Closed when the server stops.
    pub stopping: Arc<EventLog<()>>,
    pub failures: Arc<guard::Failures>,
}

/// Starts the server and returns once it listens.
pub fn serve(app: App, options: Options) -> contract::Result<RunningServer> {
    let key = match options.api_key {
        Some(key) => key::check(key)?,
        None => key::load_or_create(&app.dirs().data)?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(IO_THREADS)
        .thread_name("inglenook-http")
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(
                ErrorKind::Limit,
                "server.threads",
                format!("The system could not start a thread: {error}."),
                "Close other programs and try again.",
            )
        })?;
    let address = SocketAddr::new(options.host, options.port);
    let listener = runtime.block_on(TcpListener::bind(address)).map_err(|error| in_use(address, &error))?;
    let bound = listener.local_addr().unwrap_or(address);
    let serving = app.serving(bound.port());
    if let Err(error) = &serving {
        tracing::warn!("a window beside this server will not see it: {error}");
    }
    let stopping = EventLog::new(1);
    let shared = RouteState {
        app,
        key: key.as_str().into(),
        stopping: Arc::clone(&stopping),
        failures: Arc::default(),
    };
    let stop = Arc::clone(&stopping);
    let task = runtime.spawn(connections::serve(listener, routes(shared), ConnectionLimits::default(), stop));
    tracing::info!(url = %bound, "listening");
    Ok(RunningServer {
        url: format!("http://{bound}"),
        key,
        serving: serving.ok(),
        stopping,
        task: Some(task),
        runtime: Some(runtime),
    })
}

fn routes(shared: RouteState) -> Router {
    Router::new()
        .route("/v1/models", get(openai::models))
        .route("/v1/models/{*id}", get(openai::model))
        .route("/v1/chat/completions", post(openai::chat_completions))
        .route("/v1/embeddings", post(openai::embeddings))
        .route("/tokenize", post(openai::tokenize))
        .route("/api/{name}", post(app_calls::call))
        .route("/api/turns/{turn}/events", get(app_calls::turn_events))
        .route("/api/events", get(app_calls::app_events))
        .route("/health", get(pages::health))
        .route("/", get(pages::index))
        .fallback(pages::file)
        .method_not_allowed_fallback(fault::method_not_allowed)
        .layer(axum::middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

fn in_use(address: SocketAddr, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => Error::input(
            "server.port_in_use",
            format!("Another program is already listening on {address}."),
            format!(
                "Choose another port, such as --port {}, or --port 0 for any free port.",
                address.port().saturating_add(1)
            ),
        ),
        _ => Error::input(
            "server.bind",
            format!("Listening on {address} failed: {error}."),
            "Choose another --host or --port.",
        ),
    }
}

impl RunningServer {
    /// Blocks until Ctrl+C or SIGTERM, then stops.
    pub fn run_until_signalled(mut self) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(signalled());
        }
        self.stop();
    }

    /// Accepts no new connections and gives running answers `DRAIN_TIMEOUT` to finish.
    pub fn stop(&mut self) {
        self.stopping.close();
        let (Some(runtime), Some(task)) = (self.runtime.take(), self.task.take()) else { return };
        // Connections that don't end in time are closed.
        let _ = runtime.block_on(async { tokio::time::timeout(DRAIN_TIMEOUT, task).await });
        runtime.shutdown_background();
        self.serving = None;
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn signalled() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    {
        // Without a handler there is nothing to wait for.
        let _ = tokio::signal::ctrl_c().await;
    }
}
