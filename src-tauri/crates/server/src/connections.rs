//! Accepts connections, in bounded number and time. Where too many are open, the one that has waited
//! longest without a whole request makes room: silent connections do not keep others out.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use io::OperatingSystem;
use platform::{EventLog, Watch};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::lingering_stream::LingeringStream;

/// Most connections; a browser opens six, a client with its own pool some dozens.
const MAX_CONNECTIONS: usize = 512;
/// Descriptors of a process where the system does not say: what macOS gives.
const ASSUMED_DESCRIPTORS: usize = 256;
/// Connections may take one descriptor in two: the others belong to models, databases and logs.
const DESCRIPTOR_SHARE: usize = 2;

/// For the head of a request; also what an idle connection stays open for.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// After a failed accept: descriptors are freed by others.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Sent where every connection has a request running. Written at once or not at all.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\n\
    content-length: 121\r\nconnection: close\r\n\r\n\
    {\"error\":{\"message\":\"Too many connections are open. Try again later.\",\"type\":\"server_error\",\"code\":\"server.connections\"}}";

/// Bounds of the connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub max_connections: usize,
    pub header_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        let max_connections = (descriptor_limit() / DESCRIPTOR_SHARE).clamp(1, MAX_CONNECTIONS);
        Self { max_connections, header_timeout: HEADER_TIMEOUT }
    }
}

/// Descriptors that this process may have open.
fn descriptor_limit() -> usize {
    let limits = || std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    descriptors_on(OperatingSystem::HERE, &limits)
}

/// Windows has no limit for sockets. Only Linux tells it in a file.
fn descriptors_on(system: OperatingSystem, limits: &dyn Fn() -> String) -> usize {
    match system {
        OperatingSystem::Windows => usize::MAX,
        OperatingSystem::MacOs => ASSUMED_DESCRIPTORS,
        OperatingSystem::Linux => soft_descriptors(&limits()).unwrap_or(ASSUMED_DESCRIPTORS),
    }
}

fn soft_descriptors(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    }
}

/// Serves until `stopping` closes and the last running request has ended.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    limits: ConnectionLimits,
    stopping: Arc<EventLog<()>>,
) {
    let open = Arc::<OpenConnections>::default();
    let mut tasks = JoinSet::new();
    let mut stop = pin!(closed(&stopping));
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if open.make_room(limits.max_connections) => {
                let connection = open.add();
                let (routes, stopping) = (routes.clone(), Arc::clone(&stopping));
                tasks.spawn(run(stream, connection, routes, limits.header_timeout, stopping));
            }
            // One that can't be told is closed all the same.
            Ok((stream, _)) => _ = stream.try_write(BUSY),
            Err(error) => {
                tracing::warn!("a connection was not accepted: {error}");
                open.make_room(0);
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

async fn closed(stopping: &Arc<EventLog<()>>) {
    let mut watch = Watch::new(stopping, 0);
    std::future::poll_fn(move |context| watch.poll_next(context).map(drop)).await;
}

async fn run(
    stream: TcpStream,
    connection: OpenConnection,
    routes: Router,
    header_timeout: Duration,
    stopping: Arc<EventLog<()>>,
) {
    let activity = Arc::clone(&connection.activity);
    let stream = LingeringStream::new(stream, Arc::clone(&activity.has_unread_body));
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let (activity, routes) = (Arc::clone(&activity), routes.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(routes, request, activity).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_timeout);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let (mut stop, mut is_stopping) = (pin!(closed(&stopping)), false);
    loop {
        tokio::select! {
            served = &mut serving => {
                if let Err(error) = served {
                    tracing::debug!("a connection ended: {error}");
                }
                return;
            }
            () = connection.activity.evicted.notified() => return,
            () = &mut stop, if !is_stopping => {
                is_stopping = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(routes: Router, request: hyper::Request<Incoming>, activity: Arc<Activity>) -> Response {
    let (head, body) = request.into_parts();
    let running = Arc::new(RunningRequest::new(activity));
    let body = match body.is_end_stream() {
        true => {
            running.has_arrived();
            Body::new(body)
        }
        false => {
            let (body, running) = (Body::new(body), Arc::clone(&running));
            Body::new(WatchedBody { body, running, is_request: true, is_over: false })
        }
    };
    let request = Request::from_parts(head, body);
    let answered = match tower_service::Service::call(&mut { routes }, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    answered.map(|body| Body::new(WatchedBody { body, running, is_request: false, is_over: false }))
}

/// What a connection does.
#[derive(Debug, Default)]
struct Activity {
    /// Requests that have arrived wholly and are being answered.
    n_running: AtomicUsize,
    /// Whether a request was answered before its body had arrived.
    has_unread_body: Arc<AtomicBool>,
    evicted: Notify,
}

/// A request from its arrival to the end of its answer.
#[derive(Debug)]
struct RunningRequest {
    activity: Arc<Activity>,
    has_arrived: std::sync::OnceLock<()>,
}

impl RunningRequest {
    fn new(activity: Arc<Activity>) -> Self {
        Self { activity, has_arrived: std::sync::OnceLock::new() }
    }

    fn has_arrived(&self) {
        if self.has_arrived.set(()).is_ok() {
            self.activity.n_running.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        if self.has_arrived.get().is_some() {
            self.activity.n_running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The body of a request, which has arrived at its end, or of an answer, which has begun.
struct WatchedBody {
    body: Body,
    running: Arc<RunningRequest>,
    is_request: bool,
    /// Whether its last frame was read.
    is_over: bool,
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        if self.is_request && !self.is_over && !self.body.is_end_stream() {
            self.running.activity.has_unread_body.store(true, Ordering::Relaxed);
        }
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.is_over = matches!(polled, Poll::Ready(None));
        if !self.is_request || self.is_over || self.body.is_end_stream() {
            self.running.has_arrived();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The connections that are open, oldest first.
#[derive(Debug, Default)]
struct OpenConnections(Mutex<VecDeque<Arc<Activity>>>);

impl OpenConnections {
    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Activity>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the oldest connection without a running request if `max` are open. Returns whether one more fits.
    fn make_room(&self, max: usize) -> bool {
        let mut list = self.list();
        if list.len() < max {
            return true;
        }
        let idle = list.iter().position(|activity| activity.n_running.load(Ordering::Relaxed) == 0);
        let evicted = idle.and_then(|at| list.remove(at));
        evicted.inspect(|activity| activity.evicted.notify_one()).is_some()
    }

    fn add(self: &Arc<Self>) -> OpenConnection {
        let activity = Arc::<Activity>::default();
        self.list().push_back(Arc::clone(&activity));
        OpenConnection { activity, open: Arc::clone(self) }
    }
}

/// Leaves the list when it ends.
struct OpenConnection {
    activity: Arc<Activity>,
    open: Arc<OpenConnections>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.list().retain(|other| !Arc::ptr_eq(other, &self.activity));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;

    use axum::routing::{get, post};

    use super::*;

    #[test]
    fn each_system_has_its_limit_of_descriptors() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let limits = || "Max cpu time unlimited unlimited s\nMax open files 1024 524288 files\n".to_owned();
        assert_eq!(descriptors_on(Linux, &limits), 1024);
        assert_eq!(descriptors_on(Linux, &String::new), ASSUMED_DESCRIPTORS);
        assert_eq!(descriptors_on(MacOs, &limits), ASSUMED_DESCRIPTORS);
        assert_eq!(descriptors_on(Windows, &limits), usize::MAX);
    }

    /// A server with short limits, on a thread.
    struct Fixture {
        port: u16,
        stopping: Arc<EventLog<()>>,
        thread: Option<std::thread::JoinHandle<()>>,
        /// Requests of `/wait`.
        n_waiting: Arc<AtomicUsize>,
    }

    impl Fixture {
        fn new(max_connections: usize, header_timeout: Duration) -> Self {
            let limits = ConnectionLimits { max_connections, header_timeout };
            let runtime =
                tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().unwrap();
            let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
            let port = listener.local_addr().unwrap().port();
            let stopping = EventLog::new(1);
            let stop = Arc::clone(&stopping);
            let n_waiting = Arc::<AtomicUsize>::default();
            let counted = Arc::clone(&n_waiting);
            let wait = move || {
                counted.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<String>()
            };
            let routes = Router::new()
                .route("/", get(|| async { "hello" }))
                .route("/size", post(|body: Bytes| async move { body.len().to_string() }))
                .route("/refuse", post(|| async { "no" }))
                .route("/wait", get(wait));
            let thread = std::thread::spawn(move || runtime.block_on(serve(listener, routes, limits, stop)));
            Self { port, stopping, thread: Some(thread), n_waiting }
        }

        fn open(&self, request: &str) -> Client {
            let mut client = Client::connect(("127.0.0.1", self.port)).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            client
        }

        fn ask(&self, request: &str) -> String {
            read(self.open(request))
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            self.stopping.close();
            let _ = self.thread.take().map(std::thread::JoinHandle::join);
        }
    }

    fn read(mut client: Client) -> String {
        let mut bytes = Vec::new();
        // a reset is an end too
        let _ = client.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    const HELLO: &str = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

    #[test]
    fn f67_connections_that_say_nothing_keep_nobody_out() {
        let server = Fixture::new(4, Duration::from_secs(600));
        let beginnings =
            ["", "GET / HT", "POST /size HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nabc"];
        let open: Vec<Client> = (0..30).map(|at| server.open(beginnings[at % 3])).collect();
        for _ in 0..3 {
            assert!(server.ask(HELLO).ends_with("hello"));
        }
        assert!(read(open.into_iter().next().unwrap()).is_empty(), "the oldest was closed");
    }

    #[test]
    fn running_requests_are_not_evicted() {
        let server = Fixture::new(2, Duration::from_secs(600));
        let waiting = "GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let mut running = vec![server.open(waiting), server.open(waiting)];
        while server.n_waiting.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            // The refusal arrives, unless the request is still on the way: then the connection is reset.
            let answer = server.ask(HELLO);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");
        }
        running[0].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let quiet = running[0].read(&mut [0; 1]).unwrap_err();
        assert!(matches!(quiet.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut));
        drop(running);
        assert!((0..5000).any(|_| server.ask(HELLO).ends_with("hello")), "there is room again");
    }

    #[test]
    fn a_client_that_is_still_sending_gets_its_answer() {
        let server = Fixture::new(4, Duration::from_secs(600));
        for _ in 0..20 {
            let mut client =
                server.open("POST /refuse HTTP/1.1\r\nhost: localhost\r\ncontent-length: 40000000\r\n\r\n");
            for _ in 0..64 {
                client.write_all(&[0; 1 << 16]).unwrap();
            }
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let answer = read(client);
            assert!(answer.ends_with("no"), "{answer}");
        }
    }

    #[test]
    fn a_whole_body_ends_its_connection_at_once() {
        let server = Fixture::new(4, Duration::from_secs(600));
        let began = std::time::Instant::now();
        let chunked = "POST /size HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
                       3\r\nabc\r\n0\r\n\r\n";
        assert!(server.ask(chunked).ends_with('3'));
        assert!(began.elapsed() < Duration::from_secs(3), "it lingers");
    }

    #[test]
    fn the_refusal_is_a_whole_response() {
        let text = std::str::from_utf8(BUSY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{} bytes", body.len());
        let said: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(said["error"]["code"], "server.connections");
    }

    #[test]
    fn a_head_that_does_not_come_ends_the_connection() {
        let server = Fixture::new(8, Duration::from_millis(200));
        for beginning in ["", "GET / HTTP/1.1\r\nhost:", "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
            let answer = read(server.open(beginning));
            let is_answered = beginning.ends_with("\r\n\r\n");
            assert_eq!(answer.ends_with("hello"), is_answered, "{answer}");
        }
    }

    #[test]
    fn limits_of_the_system_are_read() {
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024                 4096  files\n";
        assert_eq!(soft_descriptors(limits), Some(1024));
        assert_eq!(soft_descriptors("Max open files   unlimited  unlimited files"), Some(usize::MAX));
        assert_eq!(soft_descriptors(""), None);
        assert!((1..=MAX_CONNECTIONS).contains(&ConnectionLimits::default().max_connections));
    }
}
