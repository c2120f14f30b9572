//! Models of other servers, behind the same requests and events as the worker: a conversation doesn't know who answers.
//!
//! One thread with a small runtime of its own, started by the first request, asleep while nothing is asked. Guarantees
//! that every turn ends with exactly one `Done` or `Failed`, that cancelling closes the connection at once, and that a
//! request that failed before its first word is asked of the next server with nothing lost or doubled.

mod address;
mod attempt;
mod count;
mod delta;
mod dialect;
mod endpoints;
mod http;
mod look;
mod pool;
pub(crate) mod sse;
mod thinking;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::keys::{Keys, Secret};
use crate::types::ServerKind;
use crate::worker::never_started;
use crate::worker::protocol::{GenerateRequest, Location, Step, WorkerEvent, WorkerRequest};
use crate::{Environment, Shared};
use address::Address;
use http::{Again, Fault, Http};
use pool::Pool;

/// Answers at once where no limit says otherwise.
const MOST_AT_ONCE: usize = 256;

/// Threads that look up names.
const LOOKUP_THREADS: usize = 4;

/// Everything about other servers that outlives a request.
pub(crate) struct Remote {
    shared: Weak<Shared>,
    pub keys: Keys,
    pub environment: Environment,
    known: Mutex<Known>,
    thread: Mutex<Thread>,
}

/// What has been learned since the program began.
#[derive(Default)]
struct Known {
    pool: Pool,
    /// Tokens that a model's server counted for each that was estimated, by the model's id.
    ratios: HashMap<String, f64>,
}

#[derive(Default)]
struct Thread {
    /// Where events go. None: the program ends.
    events: Option<SyncSender<WorkerEvent>>,
    running: Option<(UnboundedSender<Ask>, JoinHandle<()>)>,
}

/// What the thread hears.
enum Ask {
    Work(Box<WorkerRequest>),
    /// What models does this endpoint have?
    Look {
        endpoint: String,
        reply: Sender<Result<()>>,
    },
    /// A turn's last word has been said.
    Ended {
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

impl WorkerRequest {
    /// Whether a model of another server is asked.
    pub(crate) fn is_remote(&self) -> bool {
        let model = match self {
            Self::Generate(request) => &request.model,
            Self::Count { count, .. } => &count.model,
            Self::Fit { fit, .. } => &fit.count.model,
            Self::Prefetch(request) => &request.model,
            Self::Cancel { .. }
            | Self::Unload { .. }
            | Self::Forget { .. }
            | Self::Store { .. }
            | Self::KvStats { .. }
            | Self::Inspect { .. }
            | Self::Look { .. }
            | Self::Embed { .. }
            | Self::Stop => return false,
        };
        matches!(model.location, Location::Remote { .. })
    }
}

impl Remote {
    pub fn new(shared: Weak<Shared>, keys: Keys, environment: Environment) -> Self {
        Self { shared, keys, environment, known: Mutex::default(), thread: Mutex::default() }
    }

    /// Where events go from now on.
    pub fn connect(&self, events: SyncSender<WorkerEvent>) {
        self.thread().events = Some(events);
    }

    /// Turns that are being answered end without a word: whoever listens interrupts them.
    pub fn stop(&self) {
        let Thread { events, running } = std::mem::take(&mut *self.thread());
        drop(events);
        if let Some((asks, thread)) = running {
            // A thread that has ended hears nothing.
            let _ = asks.send(Ask::Stop);
            if thread.join().is_err() {
                tracing::error!("the thread of other servers ended by a panic");
            }
        }
    }

    pub fn ask(&self, request: WorkerRequest) -> Result<()> {
        self.send(Ask::Work(Box::new(request)))
    }

    /// As `ask`, if anything is being answered at all.
    pub fn cancel(&self, turn: &str) {
        let thread = self.thread();
        if let Some((asks, _)) = &thread.running {
            // As above.
            let _ = asks.send(Ask::Work(Box::new(WorkerRequest::Cancel { turn: turn.into() })));
        }
    }

    /// Asks an endpoint what it has; its row has it then.
    pub fn look(&self, endpoint: &str) -> Result<()> {
        let (reply, answer) = std::sync::mpsc::channel();
        self.send(Ask::Look { endpoint: endpoint.into(), reply })?;
        answer.recv().map_err(|_| Error::bug("the thread of other servers ended while it looked"))?
    }

    fn send(&self, ask: Ask) -> Result<()> {
        let mut thread = self.thread();
        if thread.running.is_none() {
            thread.running = Some(self.start(&thread)?);
        }
        let sent = thread.running.as_ref().is_some_and(|(asks, _)| asks.send(ask).is_ok());
        if sent { Ok(()) } else { Err(Error::bug("the thread of other servers has ended")) }
    }

    fn start(&self, thread: &Thread) -> Result<(UnboundedSender<Ask>, JoinHandle<()>)> {
        let gone = || Error::bug("an answer was asked for while the program ends");
        let shared = self.shared.upgrade().ok_or_else(gone)?;
        let events = thread.events.clone().ok_or_else(gone)?;
        let (asks, heard) = unbounded_channel();
        let back = asks.clone();
        let handle = crate::spawn("remote", move || run(shared, events, back, heard))?;
        Ok((asks, handle))
    }

    fn thread(&self) -> MutexGuard<'_, Thread> {
        self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tokens of a model for each that is estimated.
    fn ratio(&self, model: &str) -> f64 {
        self.known().ratios.get(model).copied().unwrap_or(1.0)
    }

    /// A server has counted `n_tokens` of what was estimated as `estimate`.
    fn learn(&self, model: &str, estimate: f64, n_tokens: usize) {
        // Short prompts are markup mostly: they teach nothing of the text.
        if estimate >= 32.0 && n_tokens > 0 {
            let ratio = (n_tokens as f64 / estimate).clamp(0.1, 10.0);
            self.known().ratios.insert(model.to_owned(), ratio);
        }
    }
}

/// What every task of the thread sees.
pub(crate) struct Desk {
    pub shared: Arc<Shared>,
    http: Result<Arc<Http>>,
    events: SyncSender<WorkerEvent>,
}

impl Desk {
    fn http(&self) -> Result<&Http, Fault> {
        self.http.as_deref().map_err(|error| Fault { error: error.clone(), again: Again::Never })
    }

    /// The longest that a server may say nothing.
    fn silence(&self) -> Duration {
        let setting = self.shared.setting("endpoint_silence").ok().and_then(|value| value.as_u64());
        Duration::from_secs(setting.unwrap_or(120))
    }

    fn tell(&self, turn: &str, step: Step) {
        self.say(WorkerEvent::Turn { turn: turn.into(), step });
    }

    fn say(&self, event: WorkerEvent) {
        // Nobody listens while the program ends.
        let _ = self.events.send(event);
    }
}

/// A turn in the queue.
struct Waiting {
    request: Box<GenerateRequest>,
    arrived: Duration,
    /// The place that was told last.
    position: usize,
}

/// Who is being answered, and who waits.
struct Answering {
    desk: Arc<Desk>,
    back: UnboundedSender<Ask>,
    /// By turn, with a number that tells it from an earlier one of the same name.
    running: HashMap<String, (u64, oneshot::Sender<()>)>,
    waiting: VecDeque<Waiting>,
    n_started: u64,
}

/// Runs until it is told to stop, or nobody can ask any more.
fn run(
    shared: Arc<Shared>,
    events: SyncSender<WorkerEvent>,
    back: UnboundedSender<Ask>,
    mut heard: UnboundedReceiver<Ask>,
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
    let desk = Arc::new(Desk { shared, http: Http::new().map(Arc::new), events });
    let (running, waiting) = (HashMap::new(), VecDeque::new());
    let mut answering = Answering { desk, back, running, waiting, n_started: 0 };
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
                Some(Ask::Stop) | None => return,
                Some(ask) => answering.hear(ask),
            }
        }
    });
    runtime.shutdown_background();
}

impl Answering {
    fn hear(&mut self, ask: Ask) {
        match ask {
            Ask::Work(request) => self.work(*request),
            Ask::Look { endpoint, reply } => {
                let desk = Arc::clone(&self.desk);
                tokio::spawn(async move {
                    let looked = look::look(&desk, &endpoint).await;
                    // Whoever asked may have gone.
                    let _ = reply.send(looked.map_err(|fault| fault.error));
                });
            }
            Ask::Ended { turn, number } => {
                if self.running.get(&turn).is_some_and(|(of, _)| *of == number) {
                    self.running.remove(&turn);
                }
                self.admit();
            }
            Ask::Stop => {}
        }
    }

    fn work(&mut self, request: WorkerRequest) {
        let shared = &self.desk.shared;
        match request {
            WorkerRequest::Generate(request) => {
                let arrived = shared.clock.monotonic();
                self.waiting.push_back(Waiting { request, arrived, position: 0 });
                self.admit();
            }
            WorkerRequest::Cancel { turn } => self.cancel(&turn),
            WorkerRequest::Count { request, count } => {
                let outcome = Ok(count::draft(shared, &count));
                self.desk.say(WorkerEvent::Counted { request, outcome });
            }
            WorkerRequest::Fit { request, fit } => {
                let outcome = count::fit(shared, &fit);
                self.desk.say(WorkerEvent::Fitted { request, outcome });
            }
            // There is nothing here that these could be about.
            WorkerRequest::Unload { .. }
            | WorkerRequest::Forget { .. }
            | WorkerRequest::Store { .. }
            | WorkerRequest::Prefetch(_)
            | WorkerRequest::KvStats { .. }
            | WorkerRequest::Inspect { .. }
            | WorkerRequest::Look { .. }
            | WorkerRequest::Embed { .. }
            | WorkerRequest::Stop => {}
        }
    }

    fn cancel(&mut self, turn: &str) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.request.turn == turn) {
            self.waiting.remove(at);
            self.desk.tell(turn, Step::Done(Box::new(never_started())));
        } else if let Some((_, cancel)) = self.running.remove(turn) {
            // One that has just ended hears nothing.
            let _ = cancel.send(());
        }
    }

    /// How long until a waiting turn's time is up.
    fn next_deadline(&self) -> Option<Duration> {
        let now = self.desk.shared.clock.monotonic();
        let deadlines =
            self.waiting.iter().filter_map(|waiting| waiting.request.bounds.deadline(waiting.arrived));
        deadlines.min().map(|deadline| deadline.saturating_sub(now))
    }

    /// First come, first served; those whose time is up go, the others hear how many are before them.
    fn admit(&mut self) {
        let now = self.desk.shared.clock.monotonic();
        let mut left = VecDeque::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            let bounds = &waiting.request.bounds;
            let most = bounds.concurrent.unwrap_or(MOST_AT_ONCE);
            if bounds.deadline(waiting.arrived).is_some_and(|deadline| deadline <= now) {
                let error = bounds.time_up();
                self.desk.tell(&waiting.request.turn, Step::Failed { error });
            } else if left.is_empty() && self.running.len() < most {
                self.begin(waiting);
            } else {
                let position = left.len() + 1;
                if std::mem::replace(&mut waiting.position, position) != position {
                    let position = u32::try_from(position).unwrap_or(u32::MAX);
                    self.desk.tell(&waiting.request.turn, Step::Queued { position });
                }
                left.push_back(waiting);
            }
        }
        self.waiting = left;
    }

    fn begin(&mut self, waiting: Waiting) {
        let Waiting { request, arrived, .. } = waiting;
        let (turn, number) = (request.turn.clone(), self.n_started);
        self.n_started += 1;
        let (cancel, cancelled) = oneshot::channel();
        self.running.insert(turn.clone(), (number, cancel));
        let (desk, back) = (Arc::clone(&self.desk), self.back.clone());
        tokio::spawn(async move {
            // Told however it ends, by a panic too.
            let ended = Ended { desk: Arc::clone(&desk), back, turn, number, is_told: false };
            turn::answer(&desk, request, arrived, cancelled).await;
            ended.well();
        });
    }
}

/// Says that a task is over. One that ends by a panic fails its turn alone.
struct Ended {
    desk: Arc<Desk>,
    back: UnboundedSender<Ask>,
    turn: String,
    number: u64,
    is_told: bool,
}

impl Ended {
    fn well(mut self) {
        self.is_told = true;
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if !self.is_told && std::thread::panicking() {
            let error = Error::bug("an answer of another server could not be read");
            self.desk.tell(&self.turn, Step::Failed { error });
        }
        // Nobody waits for it while the program ends.
        let _ = self.back.send(Ask::Ended { turn: self.turn.clone(), number: self.number });
    }
}
