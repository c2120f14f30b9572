//! HTTP server: the OpenAI-compatible API, the application's calls and events, and the web interface.
//!
//! Guarantees that pages of other origins get nothing and that every error is JSON with a reason.
//! A client that disconnects stops its own answer. Knows nothing of models and files.
#![forbid(unsafe_code)]

mod anthropic;
mod app_calls;
pub mod base64;
mod batch_pace;
mod body;
mod connections;
mod embedding_vector;
mod fault;
mod file_form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guard;
mod image_urls;
mod interface_paths;
mod json_body;
mod key;
mod lingering_stream;
mod llama_cpp;
mod local_routes;
mod metrics;
mod model_time;
mod ollama;
mod openai;
mod openapi;
mod owner;
mod pages;
mod partial_json;
pub mod preview;
mod recent_requests;
mod refusal;
mod request_fields;
mod running_turn;
mod scanned_parts;
mod server_control;
mod source_check;
mod stored_files;
mod stream;
mod tunes;
mod url_parts;
mod whole_answer;
mod whole_number;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use app::App;
use app::ServerLock;
use app::{Caller, Interface};
use axum::Router;
use axum::routing::{get, post};
use connections::ConnectionLimits;
use contract::Error;
use contract::ErrorKind;
use platform::EventLog;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub use key::stored_key;
pub use local_routes::LocalRoutes;
pub use server_control::ServerControl;
pub use source_check::AllowedSources;

/// Default port of `nook serve` and of the window's server.
pub const DEFAULT_PORT: u16 = contract::settings::DEFAULT_SERVER_PORT;

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
    /// Hosts and origins beside the server's own.
    pub sources: AllowedSources,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: DEFAULT_PORT,
            api_key: None,
            sources: AllowedSources::default(),
        }
    }
}

/// A running server. Stops when dropped.
pub struct RunningServer {
    /// Address, such as `http://127.0.0.1:8642`.
    pub url: String,
    /// Key that clients send as `Authorization: Bearer KEY`.
    pub key: String,
    address: SocketAddr,
    /// Tells other windows about this server. `None` if the lock failed, which does not prevent serving.
    serving: Option<ServerLock>,
    recent: Arc<recent_requests::RecentRequests>,
    stopping: Arc<EventLog<()>>,
    task: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// State that all routes share.
#[derive(Clone)]
pub(crate) struct RouteState {
    pub app: App,
    pub key: Arc<str>,
    pub sources: Arc<AllowedSources>,
    /// Closed when the server stops.
    pub stopping: Arc<EventLog<()>>,
    pub failures: Arc<guard::RecentEvents>,
    /// Refused sources that were recorded.
    pub foreign: Arc<guard::RecentEvents>,
    pub responses: Arc<openai::Responses>,
    pub message_batches: Arc<anthropic::MessageBatches>,
    pub batches: Arc<openai::Batches>,
    pub pace: Arc<batch_pace::BatchPace>,
    pub requests: Arc<metrics::RequestCounts>,
    pub recent: Arc<recent_requests::RecentRequests>,
    pub expiries: Arc<ollama::ModelExpiries>,
}

/// Starts the server and returns once it listens.
pub fn serve(app: App, options: Options) -> contract::Result<RunningServer> {
    let mut running = start(app.clone(), options, routes)?;
    match app.serving(running.address.port()) {
        Ok(serving) => running.serving = Some(serving),
        Err(error) => tracing::warn!("a window beside this server will not see it: {error}"),
    }
    Ok(running)
}

/// As `serve`, with the routes of another protocol, whose paths begin with `/mcp`, behind the same checks and limits.
pub fn serve_router(app: App, options: Options, routes: Router) -> contract::Result<RunningServer> {
    start(app, options, |shared| guarded(routes, shared))
}

fn start(
    app: App,
    options: Options,
    make_routes: impl FnOnce(RouteState) -> Router,
) -> contract::Result<RunningServer> {
    let key = match options.api_key {
        Some(key) => key::check(key)?,
        None => key::load_or_create(&app.dirs().data)?,
    };
    let runtime = io_runtime()?;
    let address = SocketAddr::new(options.host, options.port);
    let listener = runtime.block_on(TcpListener::bind(address)).map_err(|error| in_use(address, &error))?;
    let bound = listener.local_addr().unwrap_or(address);
    let stopping = EventLog::new(1);
    let recent = Arc::default();
    let shared = RouteState {
        app: app.as_caller(Caller { interface: Interface::Http, ..Caller::default() }),
        key: key.as_str().into(),
        sources: Arc::new(options.sources),
        stopping: Arc::clone(&stopping),
        failures: Arc::default(),
        foreign: Arc::default(),
        responses: Arc::default(),
        message_batches: Arc::default(),
        batches: Arc::default(),
        pace: Arc::default(),
        requests: Arc::default(),
        recent: Arc::clone(&recent),
        expiries: Arc::default(),
    };
    let stop = Arc::clone(&stopping);
    let routes = make_routes(shared);
    let task = runtime.spawn(connections::serve(listener, routes, ConnectionLimits::default(), stop));
    tracing::info!(url = %bound, "listening");
    Ok(RunningServer {
        url: format!("http://{bound}"),
        key,
        address: bound,
        serving: None,
        recent,
        stopping,
        task: Some(task),
        runtime: Some(runtime),
    })
}

fn io_runtime() -> contract::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(IO_THREADS)
        .thread_name("inglenook-http")
        .enable_all()
        .build();
    runtime.map_err(|error| {
        Error::new(
            ErrorKind::Limit,
            "server.threads",
            format!("The system could not start a thread: {error}."),
            "Close other programs and try again.",
        )
    })
}

fn routes(shared: RouteState) -> Router {
    let interfaces = Router::new()
        .merge(anthropic::routes())
        .merge(ollama::routes())
        .merge(llama_cpp::routes())
        .merge(openai::routes());
    let interfaces = with_contents(interfaces, &shared);
    let routes = Router::new()
        .route("/v1/models", get(anthropic::models))
        .route("/v1/models/{*id}", get(anthropic::model).delete(openai::delete_model))
        .route("/v1/files", post(anthropic::files::create).get(anthropic::files::list))
        .route("/v1/files/{id}", get(anthropic::files::one).delete(anthropic::files::delete))
        .route("/v1/files/{id}/content", get(anthropic::files::content))
        .merge(interfaces)
        .merge(tunes::routes())
        .route("/api/{name}", post(app_calls::call))
        .route("/api/v1/{name}", post(app_calls::call))
        .route("/api/turns/{turn}/events", get(app_calls::turn_events))
        .route("/api/events", get(app_calls::app_events))
        .route("/api/v1/stats", get(metrics::stats))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::document))
        .route("/health", get(pages::health))
        .route("/v1/health", get(pages::health))
        .route("/", get(pages::index))
        .route("/preview/{frame}", get(preview::frame))
        .fallback(pages::file)
        .method_not_allowed_fallback(refusal::method_not_allowed)
        .with_state(shared.clone());
    guarded(routes, shared)
}

/// Puts in front of routes what requests only name: stored files, images at addresses, scanned pages.
fn with_contents(routes: Router<RouteState>, shared: &RouteState) -> Router<RouteState> {
    let images = axum::middleware::from_fn_with_state(shared.clone(), image_urls::fetch);
    let scanned = axum::middleware::from_fn_with_state(shared.clone(), scanned_parts::fill_in);
    let files = axum::middleware::from_fn_with_state(shared.clone(), stored_files::fill_in);
    routes.layer(scanned).layer(images).layer(files)
}

/// The OpenAI-compatible routes without access control, for requests of batches.
pub(crate) fn answer_routes(shared: RouteState) -> Router {
    with_contents(openai::routes(), &shared).with_state(shared)
}

/// Puts the access control in front of routes.
fn guarded(routes: Router, shared: RouteState) -> Router {
    routes.layer(axum::middleware::from_fn_with_state(shared, guard::check))
}

/// Ports that are tried for a suggestion.
const MAX_TRIED_PORTS: u16 = 20;

/// The next free port.
fn free_port_after(address: SocketAddr) -> Option<u16> {
    let ports = (1..=MAX_TRIED_PORTS).filter_map(|n| address.port().checked_add(n));
    ports.into_iter().find(|port| std::net::TcpListener::bind((address.ip(), *port)).is_ok())
}

fn in_use(address: SocketAddr, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let owner = platform::port_owner(address.port());
            let owner = owner.map_or_else(|| "Another program".into(), |name| format!("The program {name}"));
            let free = free_port_after(address).map(|port| format!("such as --port {port}, or "));
            Error::input(
                "server.port_in_use",
                format!("{owner} is already listening on {address}."),
                format!("Choose another port, {}--port 0 for any free port.", free.unwrap_or_default()),
            )
        }
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

/// Waits for Ctrl+C or SIGTERM.
pub async fn signalled() {
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
