//! Models of remote servers, behind the same requests and events as the worker. One thread with a
//! small runtime, started by the first request, asleep while idle. Every turn ends with exactly one
//! `Done` or `Failed`, and cancelling closes the connection at once. A request that failed before
//! its first word goes to the next server without loss or duplication.
#![forbid(unsafe_code)]

mod address;
mod answer_piece;
mod content;
mod count;
mod delta;
mod dialect;
mod directory;
mod fault;
mod finish_reason;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod image_fetch;
mod list_models;
mod omitted_fields;
mod pool;
mod progress;
mod reading;
mod reasoning;
mod refusal;
mod remote_memory;
mod request;
mod server_words;
mod tool_fragments;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::protocol::{GenerateRequest, Location, ModelRef, Step, TurnResult, WorkerEvent, WorkerRequest};
use contract::types::{ErrorInfo, ServerKind};
use contract::{Error, Result};
use io::Clock;
use net::ConnectionGate;
use secrets::Secret;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub use address::Address;
pub use directory::{Endpoint, EndpointDirectory};
use fault::{Fault, RetryAdvice};
use http::Http;
pub use image_fetch::{ImageReach, fetch_image};
use pool::Health;
use remote_memory::RemoteMemory;

/// Answers at once where no limit says otherwise.
const MAX_AT_ONCE: usize = 256;

/// Threads that look up names.
const LOOKUP_THREADS: usize = 4;

/// Everything about other servers that outlives a request.
pub struct Remote {
    directory: Weak<dyn EndpointDirectory>,
    gate: ConnectionGate,
    clock: Arc<dyn Clock>,
    known: Arc<RemoteMemory>,
    thread: Mutex<RemoteThread>,
}

#[derive(Default)]
struct RemoteThread {
    /// Where events go. None: the program ends.
    events: Option<SyncSender<WorkerEvent>>,
    running: Option<(UnboundedSender<RemoteRequest>, JoinHandle<()>)>,
}

/// What the thread hears.
enum RemoteRequest {
    Work(Box<WorkerRequest>),
    /// What models does this endpoint have?
    Look {
        endpoint: String,
        reply: Sender<Result<()>>,
    },
    /// A turn's last word has been said.
    TurnGuard {
        turn: String,
        number: u64,
    },
    Stop,
}

/// A server as it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub address: Address,
    pub key: Option<Secret>,
    pub kind: ServerKind,
}

impl Remote {
    /// Nothing runs until the first request. `directory` is asked for endpoints and told of their health.
    pub fn new(directory: Weak<dyn EndpointDirectory>, gate: ConnectionGate, clock: Arc<dyn Clock>) -> Self {
        Self { directory, gate, clock, known: Arc::default(), thread: Mutex::default() }
    }

    /// Where events go from now on.
    pub fn connect(&self, events: SyncSender<WorkerEvent>) {
        self.thread().events = Some(events);
    }

    /// Active turns end without an event: their listener marks them as interrupted.
    pub fn stop(&self) {
        let RemoteThread { events, running } = std::mem::take(&mut *self.thread());
        drop(events);
        if let Some((asks, thread)) = running {
            // A thread that has ended hears nothing.
            let _ = asks.send(RemoteRequest::Stop);
            if thread.join().is_err() {
                tracing::error!("the thread of other servers ended by a panic");
            }
        }
    }

    pub fn ask(&self, request: WorkerRequest) -> Result<()> {
        self.send(RemoteRequest::Work(Box::new(request)))
    }

    /// As `ask`, if anything is being answered at all.
    pub fn cancel(&self, turn: &str) {
        let thread = self.thread();
        if let Some((asks, _)) = &thread.running {
            // As above.
            let _ = asks.send(RemoteRequest::Work(Box::new(WorkerRequest::Cancel { turn: turn.into() })));
        }
    }

    /// Asks an endpoint what it has; its row has it then.
    pub fn look(&self, endpoint: &str) -> Result<()> {
        let (reply, answer) = std::sync::mpsc::channel();
        self.send(RemoteRequest::Look { endpoint: endpoint.into(), reply })?;
        answer.recv().map_err(|_| Error::bug("the thread of other servers ended while it looked"))?
    }

    fn send(&self, ask: RemoteRequest) -> Result<()> {
        let mut thread = self.thread();
        if thread.running.is_none() {
            thread.running = Some(self.start(&thread)?);
        }
        let sent = thread.running.as_ref().is_some_and(|(asks, _)| asks.send(ask).is_ok());
        if sent { Ok(()) } else { Err(Error::bug("the thread of other servers has ended")) }
    }

    fn start(&self, thread: &RemoteThread) -> Result<(UnboundedSender<RemoteRequest>, JoinHandle<()>)> {
        let gone = || Error::bug("an answer was asked for while the program ends");
        let directory = self.directory.upgrade().ok_or_else(gone)?;
        let events = thread.events.clone().ok_or_else(gone)?;
        let (asks, heard) = unbounded_channel();
        let back = asks.clone();
        let context = RemoteContext {
            directory,
            gate: self.gate.clone(),
            clock: Arc::clone(&self.clock),
            remote: Arc::clone(&self.known),
            http: Http::new().map(Arc::new),
            events,
        };
        let handle = platform::spawn("remote", move || run(context, back, heard))?;
        Ok((asks, handle))
    }

    fn thread(&self) -> MutexGuard<'_, RemoteThread> {
        self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How an endpoint did when it was last asked. None: it has not been asked since the program began.
    pub fn health(&self, id: &str) -> Option<Result<(), ErrorInfo>> {
        match self.known.known().pool.health(id)? {
            Health::Up => Some(Ok(())),
            Health::Down { error, .. } => Some(Err(error.clone())),
        }
    }

    /// Forgets how an endpoint did, and what it refused.
    pub fn forget_health(&self, id: &str) {
        self.known.known().forget(id);
    }
}

/// What every task of the thread sees.
#[derive(Clone)]
pub(crate) struct RemoteContext {
    directory: Arc<dyn EndpointDirectory>,
    gate: ConnectionGate,
    clock: Arc<dyn Clock>,
    remote: Arc<RemoteMemory>,
    http: Result<Arc<Http>>,
    events: SyncSender<WorkerEvent>,
}

impl RemoteContext {
    fn http(&self) -> Result<&Http, Fault> {
        self.http.as_deref().map_err(|error| Fault::from_error(RetryAdvice::Never, error.clone()))
    }

    /// The longest that a server may say nothing.
    fn silence(&self) -> Duration {
        self.directory.silence_timeout()
    }

    /// The server behind an endpoint. Error: its key is not where it should be.
    fn server_of(&self, endpoint: &Endpoint) -> Result<Server> {
        let key = self.directory.key(endpoint)?;
        Ok(Server { address: Address::parse(&endpoint.url)?, key, kind: endpoint.kind })
    }

    /// Tokens that a model holds; the fewest of its servers. 0: none of them says.
    fn context_of(&self, model: &ModelRef) -> usize {
        let Location::Remote { name, model } = &model.location else { return 0 };
        let endpoints = self.directory.candidates(name, model).unwrap_or_default();
        let models = endpoints.iter().flat_map(|endpoint| &endpoint.models).filter(|it| it.id == *model);
        models.map(|it| it.context_length as usize).filter(|&n| n > 0).min().unwrap_or(0)
    }

    /// The software that answers for a model. None: no endpoint has it.
    fn kind_of(&self, model: &ModelRef) -> Option<ServerKind> {
        let Location::Remote { name, model } = &model.location else { return None };
        self.directory.candidates(name, model).ok()?.first().map(|endpoint| endpoint.kind)
    }

    fn tell(&self, turn: &str, step: Step) {
        self.say(WorkerEvent::Turn { turn: turn.into(), step });
    }

    fn say(&self, event: WorkerEvent) {
        // the listener has gone while the program ends
        let _ = self.events.send(event);
    }
}

/// A turn in the queue.
struct WaitingTurn {
    request: Box<GenerateRequest>,
    arrived: Duration,
    /// The position that was reported last.
    position: usize,
}

/// Who is being answered, and who waits.
struct AnswerQueue {
    context: Arc<RemoteContext>,
    back: UnboundedSender<RemoteRequest>,
    /// By turn, with a number that tells it from an earlier one of the same name.
    running: HashMap<String, (u64, oneshot::Sender<()>)>,
    waiting: VecDeque<WaitingTurn>,
    n_started: u64,
}

/// Runs until it should stop, or until all senders have gone.
fn run(
    context: RemoteContext,
    back: UnboundedSender<RemoteRequest>,
    mut heard: UnboundedReceiver<RemoteRequest>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(LOOKUP_THREADS)
        .thread_name("inglenook-lookup")
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("other servers can't be asked: {error}");
            return;
        }
    };
    let context = Arc::new(context);
    let (running, waiting) = (HashMap::new(), VecDeque::new());
    let mut answering = AnswerQueue { context, back, running, waiting, n_started: 0 };
    runtime.block_on(async move {
        loop {
            let ask = match answering.next_deadline() {
                None => heard.recv().await,
                Some(left) => match tokio::time::timeout(left, heard.recv()).await {
                    Ok(ask) => ask,
                    Err(_) => {
                        answering.admit();
                        continue;
                    }
                },
            };
            match ask {
                Some(RemoteRequest::Stop) | None => return,
                Some(ask) => answering.hear(ask),
            }
        }
    });
    runtime.shutdown_background();
}

impl AnswerQueue {
    fn hear(&mut self, ask: RemoteRequest) {
        match ask {
            RemoteRequest::Work(request) => self.work(*request),
            RemoteRequest::Look { endpoint, reply } => {
                let context = Arc::clone(&self.context);
                tokio::spawn(async move {
                    let looked = list_models::list_models(&context, &endpoint).await;
                    // the caller may have gone
                    let _ = reply.send(looked.map_err(|fault| *fault.error));
                });
            }
            RemoteRequest::TurnGuard { turn, number } => {
                if self.running.get(&turn).is_some_and(|(of, _)| *of == number) {
                    self.running.remove(&turn);
                }
                self.admit();
            }
            RemoteRequest::Stop => {}
        }
    }

    fn work(&mut self, request: WorkerRequest) {
        let context = &self.context;
        match request {
            WorkerRequest::Generate(request) => {
                let arrived = context.clock.monotonic();
                self.waiting.push_back(WaitingTurn { request, arrived, position: 0 });
                self.admit();
            }
            WorkerRequest::Cancel { turn } => self.cancel(&turn),
            WorkerRequest::Count { request, count } => {
                let outcome = Ok(count::draft(context, &count));
                self.context.say(WorkerEvent::TokenCounts { request, outcome });
            }
            WorkerRequest::Fit { request, fit } => {
                let outcome = count::fit(context, &fit);
                self.context.say(WorkerEvent::FitOutcome { request, outcome });
            }
            // There is nothing here that these could be about.
            WorkerRequest::Unload { .. }
            | WorkerRequest::Forget { .. }
            | WorkerRequest::Store { .. }
            | WorkerRequest::Prefetch(_)
            | WorkerRequest::KvStats { .. }
            | WorkerRequest::Inspect { .. }
            | WorkerRequest::Logprobs { .. }
            | WorkerRequest::Vocabulary { .. }
            | WorkerRequest::Embed { .. }
            | WorkerRequest::Rank { .. }
            | WorkerRequest::RenderPages { .. }
            | WorkerRequest::ReadImage { .. }
            | WorkerRequest::Stop => {}
        }
    }

    fn cancel(&mut self, turn: &str) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.request.turn == turn) {
            self.waiting.remove(at);
            self.context.tell(turn, Step::Done(Box::new(TurnResult::never_started())));
        } else if let Some((_, cancel)) = self.running.remove(turn) {
            // One that has just ended hears nothing.
            let _ = cancel.send(());
        }
    }

    /// How long until a waiting turn's time is up.
    fn next_deadline(&self) -> Option<Duration> {
        let now = self.context.clock.monotonic();
        let deadlines =
            self.waiting.iter().filter_map(|waiting| waiting.request.bounds.deadline(waiting.arrived));
        deadlines.min().map(|deadline| deadline.saturating_sub(now))
    }

    /// First come, first served; those whose time is up go, the others hear how many are before them.
    fn admit(&mut self) {
        let now = self.context.clock.monotonic();
        let mut left = VecDeque::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            let bounds = &waiting.request.bounds;
            let most = bounds.concurrent.unwrap_or(MAX_AT_ONCE);
            if bounds.deadline(waiting.arrived).is_some_and(|deadline| deadline <= now) {
                let error = bounds.time_up();
                self.context.tell(&waiting.request.turn, Step::Failed { error });
            } else if left.is_empty() && self.running.len() < most {
                self.begin(waiting);
            } else {
                let position = left.len() + 1;
                if std::mem::replace(&mut waiting.position, position) != position {
                    let position = u32::try_from(position).unwrap_or(u32::MAX);
                    self.context.tell(&waiting.request.turn, Step::Queued { position });
                }
                left.push_back(waiting);
            }
        }
        self.waiting = left;
    }

    fn begin(&mut self, waiting: WaitingTurn) {
        let WaitingTurn { request, arrived, .. } = waiting;
        let (turn, number) = (request.turn.clone(), self.n_started);
        self.n_started += 1;
        let (cancel, cancelled) = oneshot::channel();
        self.running.insert(turn.clone(), (number, cancel));
        let (context, back) = (Arc::clone(&self.context), self.back.clone());
        tokio::spawn(async move {
            // Reports the end of the turn however it ends, by a panic too.
            let ended = TurnGuard { context: Arc::clone(&context), back, turn, number, is_told: false };
            turn::answer(&context, request, arrived, cancelled).await;
            ended.well();
        });
    }
}

/// Says that a task is over. One that ends by a panic fails its turn alone.
struct TurnGuard {
    context: Arc<RemoteContext>,
    back: UnboundedSender<RemoteRequest>,
    turn: String,
    number: u64,
    is_told: bool,
}

impl TurnGuard {
    fn well(mut self) {
        self.is_told = true;
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        if !self.is_told && std::thread::panicking() {
            let error = Error::bug("an answer of another server could not be read");
            self.context.tell(&self.turn, Step::Failed { error });
        }
        // the receiver has gone while the program ends
        let _ = self.back.send(RemoteRequest::TurnGuard { turn: self.turn.clone(), number: self.number });
    }
}
