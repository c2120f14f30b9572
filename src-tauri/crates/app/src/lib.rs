//! Everything the application can do, once. Doors (window, HTTP, terminal) call `App` and nothing below it.
//!
//! `App` is cheap to clone. It owns one session (behind one lock: one writer), one worker with the models (a
//! thread, or a process that a thread supervises), and one thread that turns the worker's events into saved text and told events.
#![forbid(unsafe_code)]

mod answer;
pub mod asked;
mod attachments;
mod backups;
pub mod bindings;
mod branches;
mod cached;
pub mod calls;
pub mod catalog;
mod chat;
mod checkpoints;
pub mod civil;
mod compress;
pub mod connections;
pub mod conversion;
mod convert;
mod dirs;
mod downloads;
mod draft;
mod embed;
pub mod error;
pub mod estimate;
mod exchange;
pub mod feed;
mod finding;
mod fits;
mod folders;
mod generate;
pub mod guard;
mod hub_access;
mod import;
mod keys;
mod library;
pub mod limits;
mod logging;
mod look;
pub mod machine;
mod mcp;
pub mod messages;
mod once;
mod one_window;
mod own_settings;
mod place;
pub mod places;
mod plugins;
mod preferences;
mod presets;
pub mod process;
pub mod profile;
mod profiled;
mod pump;
pub mod quantized;
mod remote;
mod removal;
pub mod resident;
mod running_turn;
mod scan;
mod served;
mod serving;
pub mod settings;
mod spawn;
pub mod starter;
mod summaries;
mod temporary;
mod title;
mod titles;
mod tools;
mod trash;
pub mod types;
mod verify;
pub mod worker;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;

use io::{Clock, Io, RealClock, RealIo};
use session::{CheckpointFolder, Session};

pub use attachments::AttachedPrompt;
pub use chat::Responder;
pub use dirs::{DATA_DIR_VARIABLE, Dirs};
pub use error::{Error, ErrorKind, Result};
pub use feed::{Feed, Watch};
pub use generate::{GenerateArgs, SamplingArgs};
pub use hub_access::{HubAccess, download_args};
pub use keys::has_keychain;
use logging::Logging;
pub use one_window::{OneWindow, Taken};
pub use place::WindowPlace;
pub use preferences::{Overrides, template_file};
use running_turn::{Had, Place, Turn};
pub use served::Served;
pub use serving::Serving;
pub use compaction as strategies;
use spawn::spawn;
pub use tools::{CallStop, Offer, prompt_arguments};
use types::{AppEvent, AppInfo, ConversationSummary, ErrorInfo, MemoryInfo, TurnEventKind};
use worker::protocol::{Counted, Embedded, Facts, KvStats, Loaded, WorkerEvent, WorkerRequest};

/// Events that a slow watcher of the application may fall behind before it has to look anew.
const APP_EVENTS_KEPT: usize = 1024;

/// Ended turns whose events can still be replayed.
const ENDED_TURNS_KEPT: usize = 64;

/// Worker events that wait to be saved and told; a full queue slows the worker down.
const WORKER_EVENTS_WAITING: usize = 4096;

/// How to open.
#[derive(Debug, Clone, Default)]
pub struct AppConfig {
    /// A flag's or the environment's folder for everything; None: the system's own folders.
    pub data_dir: Option<PathBuf>,
    /// What a door's flags say instead of the settings.
    pub overrides: Overrides,
    pub log: LogTo,
    pub worker: process::Place,
    /// What the environment says of the hub.
    pub hub: HubAccess,
    /// Folders of other programs that may hold models: `places::known`.
    pub others: Vec<places::Root>,
    pub environment: Environment,
    /// The system's keychain may be looked for: `has_keychain`.
    pub keychain: bool,
}

/// How the environment is read, which only edges may: nothing of it, unless one says how.
#[derive(Debug, Clone, Copy)]
pub struct Environment(pub fn(&str) -> Option<String>);

impl Default for Environment {
    fn default() -> Self {
        Self(|_| None)
    }
}

/// Where the log of this process goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogTo {
    #[default]
    Nowhere,
    /// Warnings to stderr; what the setting says to a file in the log folder.
    StderrAndFile,
}

/// The application.
#[derive(Clone)]
pub struct App {
    running: Arc<Running>,
}

/// What ends with the last clone of `App`.
struct Running {
    shared: Arc<Shared>,
    dirs: Dirs,
    overrides: Overrides,
    access: HubAccess,
    reach: hub_access::Reach,
    others: Vec<places::Root>,
    logging: Option<Logging>,
    requests: worker::Requests,
    threads: Vec<JoinHandle<()>>,
    /// The thread of the daily backup ends when its channel does.
    backup: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What the threads share.
struct Shared {
    io: Arc<dyn Io>,
    clock: Arc<dyn Clock>,
    /// What has been found out about this computer lies there.
    data: std::path::PathBuf,
    /// Stored contexts.
    contexts: CheckpointFolder,
    events: Arc<Feed<AppEvent>>,
    state: Mutex<State>,
    /// Held while the database is copied, and while what was deleted is wiped: no copy may keep it.
    copying: Mutex<()>,
    /// Held while folders are looked through.
    scanning: Mutex<()>,
    /// Held while this computer's speed is measured.
    measuring: Mutex<()>,
    requests: worker::Requests,
    downloads: downloads::Downloads,
    /// Files of messages that were searched last.
    searching: Mutex<attachments::Searching>,
    /// What their passages mean.
    meanings: Mutex<attachments::Meanings>,
    /// Models of other servers.
    remote: remote::Remote,
    /// The graphics card, once it was looked for. None: there is none.
    card: OnceLock<Option<kernels::gpu::AdapterInfo>>,
    /// Servers of tools.
    tools: tools::Tools,
}

struct State {
    session: Session,
    turns: HashMap<String, Arc<Turn>>,
    /// Turns that ended, oldest first.
    ended: VecDeque<String>,
    /// Ends of answers that could not be saved yet, by message.
    owed: HashMap<String, pump::Owed>,
    /// What the worker last said about each model.
    models: HashMap<String, Loaded>,
    /// Who waits for what a file is.
    inspections: HashMap<u64, Sender<Result<Facts>>>,
    /// Who waits for a count.
    counts: HashMap<u64, Sender<Result<Counted>>>,
    /// Who waits for an answer's tokens.
    looks: HashMap<u64, Sender<Result<Vec<types::Looked>>>>,
    /// Who waits for vectors of texts.
    embeds: HashMap<u64, Sender<Result<Embedded>>>,
    /// Who waits for a conversation to be made to fit.
    fits: HashMap<u64, compress::Asker>,
    /// Who waits for a context to be stored.
    stores: HashMap<u64, Sender<Result<Option<Vec<String>>>>>,
    /// Who waits for figures of contexts.
    kv_stats: HashMap<u64, Sender<KvStats>>,
    /// Where the time of answers went.
    profiles: profiled::Profiles,
    /// Bytes that stored contexts may take.
    disk_budget: u64,
    /// A context could not be stored, and the user knows.
    store_failed: bool,
    /// Names for all who wait.
    n_asked: u64,
    /// Summaries that are being written, by their turn.
    jobs: HashMap<String, summaries::Job>,
    /// What to make summaries with after a turn, by turn.
    setups: HashMap<String, Box<summaries::Setup>>,
    /// Titles that are being written, by the name of their turn.
    titles: HashMap<String, titles::Job>,
    /// Calls that have not all ended, by the message that they stand in.
    rounds: HashMap<String, tools::Round>,
    /// Somebody has followed the application's events.
    is_watched: bool,
    /// Facts about the starter model, once asked for.
    starter: Option<Facts>,
    /// Files that were read for messages that have not been sent.
    pending: attachments::Pending,
    /// Imports that were told to end, by what was asked for.
    stopped_imports: HashSet<String>,
    /// How models are loaded where nobody says otherwise.
    asked: estimate::Asked,
    /// What is known of this computer's speed.
    speeds: estimate::Speeds,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The session's truth is in the database; the maps are whole after every statement.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn ask(&self, request: WorkerRequest) -> Result<()> {
        if request.is_remote() {
            return self.remote.ask(request);
        }
        if let WorkerRequest::Cancel { turn } = &request {
            self.remote.cancel(turn);
        }
        self.requests.send(request).map_err(|_| Error::bug("the worker has ended"))
    }

    fn tell(&self, event: AppEvent) {
        self.events.push(|_| event);
    }

    fn notice(&self, error: ErrorInfo) {
        tracing::warn!(code = error.code, "{}", error.message);
        self.tell(AppEvent::Notice { error });
    }
}

impl State {
    /// Nothing asked yet, nothing under way.
    fn over(session: Session) -> Self {
        Self {
            session,
            turns: HashMap::new(),
            ended: VecDeque::new(),
            owed: HashMap::new(),
            models: HashMap::new(),
            inspections: HashMap::new(),
            counts: HashMap::new(),
            looks: HashMap::new(),
            embeds: HashMap::new(),
            fits: HashMap::new(),
            stores: HashMap::new(),
            kv_stats: HashMap::new(),
            profiles: profiled::Profiles::default(),
            disk_budget: 0,
            store_failed: false,
            n_asked: 0,
            jobs: HashMap::new(),
            setups: HashMap::new(),
            titles: HashMap::new(),
            rounds: HashMap::new(),
            is_watched: false,
            starter: None,
            pending: attachments::Pending::default(),
            stopped_imports: HashSet::new(),
            asked: estimate::Asked::default(),
            speeds: estimate::Speeds::default(),
        }
    }

    fn summary(&self, row: session::ConversationRow) -> Result<ConversationSummary> {
        let active = self.session.active_turn(&row.id)?;
        Ok(convert::summary(row, active))
    }

    fn add_turn(&mut self, id: String, place: Option<Place>, had: Option<Had>) -> Arc<Turn> {
        let turn = Arc::new(Turn { id: id.clone(), feed: Feed::new(usize::MAX), place, had });
        turn.tell(TurnEventKind::Queued { position: 0 });
        self.turns.insert(id, Arc::clone(&turn));
        turn
    }

    /// Turns that have not ended.
    fn n_open(&self) -> usize {
        self.turns.values().filter(|turn| !turn.feed.is_closed()).count()
    }

    /// A turn's last event has been told.
    fn end_turn(&mut self, id: &str) {
        self.ended.push_back(id.to_owned());
        if self.ended.len() > ENDED_TURNS_KEPT
            && let Some(oldest) = self.ended.pop_front()
        {
            self.turns.remove(&oldest);
        }
    }
}

impl App {
    pub fn open(config: AppConfig) -> Result<Self> {
        Self::open_with(config, Arc::new(RealIo), Arc::new(RealClock::new()))
    }

    /// As `open`, with a disk and a clock of the caller's.
    pub fn open_with(config: AppConfig, io: Arc<dyn Io>, clock: Arc<dyn Clock>) -> Result<Self> {
        let AppConfig { data_dir, overrides, log, worker, hub: access, environment, others, keychain } =
            config;
        let dirs = Dirs::resolve(data_dir)?;
        serving::forget_dead(&dirs.data, &*io);
        let (session, notices) = Session::open(&dirs.data, &*io, Arc::clone(&clock))?;
        let logging = match log {
            LogTo::Nowhere => None,
            LogTo::StderrAndFile => {
                // Without the folder there is no file; stderr is told by the log itself.
                let _ = io.create_dir_all(&dirs.logs);
                Some(Logging::start(&dirs.logs))
            }
        };
        let events = Feed::new(APP_EVENTS_KEPT);
        let (requests, worker_requests) = worker::channel();
        let contexts = checkpoints::folder(&dirs, Arc::clone(&io));
        let keys = keys::Keys::new(&dirs.data, Arc::clone(&io), keychain);
        let shared = Arc::new_cyclic(|shared| Shared {
            io,
            clock,
            data: dirs.data.clone(),
            contexts,
            events,
            state: Mutex::new(State::over(session)),
            copying: Mutex::new(()),
            scanning: Mutex::new(()),
            measuring: Mutex::new(()),
            requests: requests.clone(),
            downloads: downloads::Downloads::default(),
            searching: Mutex::default(),
            meanings: Mutex::default(),
            remote: remote::Remote::new(shared.clone(), keys, environment),
            card: OnceLock::new(),
            tools: tools::Tools::new(shared.clone(), environment),
        });
        for notice in notices {
            shared.notice(Error::from(notice).info);
        }
        let threads = start_threads(&shared, worker_requests, worker)?;
        let (keep_on, backups) = mpsc::channel();
        let backed_up = Arc::clone(&shared);
        let backup = spawn("backup", move || backups::run(&backed_up, &backups))?;
        let (threads, backup) = (threads, Some((keep_on, backup)));
        let reach = hub_access::Reach::default();
        let running =
            Running { shared, dirs, overrides, access, reach, others, logging, requests, threads, backup };
        let app = Self { running: Arc::new(running) };
        app.apply_log_level()?;
        app.tidy_contexts()?;
        app.apply_asked();
        app.tidy_imports();
        app.tidy_models()?;
        tracing::info!(data = %app.running.dirs.data.display(), "opened");
        Ok(app)
    }

    pub fn dirs(&self) -> &Dirs {
        &self.running.dirs
    }

    /// Whether an answer is being written.
    pub fn is_answering(&self) -> bool {
        self.shared().state().n_open() > 0
    }

    /// How much memory there is, and how much of it is ours.
    pub fn machine_memory(&self) -> MemoryInfo {
        MemoryInfo {
            ours_bytes: resident::program_bytes(),
            free_bytes: resident::free_bytes(),
            total_bytes: resident::total_bytes(),
        }
    }

    pub fn app_info(&self) -> AppInfo {
        AppInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            data_dir: self.running.dirs.data.display().to_string(),
            log_dir: self.running.dirs.logs.display().to_string(),
            cores: sysinfo::System::physical_core_count().map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            isa: kernels::cpu::isa::IsaLevel::from_env().map_or("", |level| level.name()).into(),
        }
    }

    /// Follows what happens beside turns, from now on. The first watcher also hears what came before it:
    /// the notices of the opening.
    pub fn watch_app(&self) -> Watch<AppEvent> {
        let events = &self.running.shared.events;
        let is_first = !std::mem::replace(&mut self.shared().state().is_watched, true);
        Watch::new(events, if is_first { 0 } else { events.count() })
    }

    fn shared(&self) -> &Shared {
        &self.running.shared
    }

    fn ask(&self, request: WorkerRequest) -> Result<()> {
        self.shared().ask(request)
    }
}

impl Drop for Running {
    /// Turns that are being answered end as `Interrupted`, with what there is of them on disk.
    fn drop(&mut self) {
        self.shared.downloads.close();
        self.reach.end();
        self.shared.end_tools();
        // Both threads end by this; one that is gone already has nothing left to end.
        let _ = self.requests.send(WorkerRequest::Stop);
        self.shared.remote.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread ended by a panic");
            }
        }
        if let Some((keep_on, backup)) = self.backup.take() {
            drop(keep_on);
            if backup.join().is_err() {
                tracing::error!("the backup ended by a panic");
            }
        }
        self.shared.events.close();
    }
}

fn start_threads(
    shared: &Arc<Shared>,
    requests: worker::Inbox,
    place: process::Place,
) -> Result<Vec<JoinHandle<()>>> {
    let (send, events) = mpsc::sync_channel::<WorkerEvent>(WORKER_EVENTS_WAITING);
    shared.remote.connect(send.clone());
    let clock = Arc::clone(&shared.clock);
    let worker = move || {
        let emit = &mut |event| send.send(event).is_ok();
        match place {
            process::Place::Thread => worker::run(&requests, clock, emit),
            process::Place::Process(program) => {
                process::run(requests.into_receiver(), &program, &*clock, emit)
            }
        };
    };
    let pumped = Arc::clone(shared);
    let pump = move || pump::run(&pumped, &events);
    Ok(vec![spawn("worker", worker)?, spawn("pump", pump)?])
}
