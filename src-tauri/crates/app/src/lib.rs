//! The application: everything it can do, once. Frontends (window, terminal, HTTP) call `App` and nothing below it.
//!
//! `App` is cheap to clone. Each noun has a folder with its use cases and a service that owns their state; `Context` is
//! what services share. Threads: the worker (or the supervisor of its process), the event pump, the daily backup.
#![forbid(unsafe_code)]

mod backups;
pub mod bindings;
pub mod calls;
mod context;
pub mod conversations;
pub mod desktop;
mod downloads;
mod environment;
mod events;
mod help;
pub mod models;
mod network;
mod retrieval;
mod services;
mod settings;
mod store;
mod tools;
mod turns;

use std::path::PathBuf;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;

use contract::protocol::{WorkerEvent, WorkerRequest};
use contract::types::{AppEvent, AppInfo, MemoryInfo};
use contract::{Error, Result};
use inference::{supervisor, worker};
use io::{Clock, Io, RealClock, RealIo};
use platform::{DataDirs, Logging, Watch, memory, spawn};
use session::Session;

pub use conversations::generate::{GenerateArgs, SamplingArgs};
pub use environment::Environment;
pub use models::hub_client::{HubAccess, download_args};
pub use network::external_requests::ServedModel;
pub use network::server_status::ServerLock;
pub use retrieval::AttachedPrompt;
pub use secrets::has_keychain;
pub use settings::{Overrides, template_file};
pub use tools::{CallStop, OfferedTools, prompt_arguments};

use context::Context;
use models::hub_client::HubConnection;
pub(crate) use services::Services;

/// Worker events that wait for the event pump; a full queue slows the worker down.
const MAX_WAITING_EVENTS: usize = 4096;

/// How to open.
#[derive(Debug, Clone, Default)]
pub struct AppConfig {
    /// One folder for everything, from a flag or the environment. None: the system's own folders.
    pub data_dir: Option<PathBuf>,
    /// What a frontend's flags say instead of the settings.
    pub overrides: Overrides,
    pub log: LogTo,
    pub worker: supervisor::WorkerPlacement,
    /// What the environment says about the hub.
    pub hub: HubAccess,
    /// Folders of other programs that may hold models: `models::model_dirs::known`.
    pub others: Vec<models::model_dirs::ModelRoot>,
    pub environment: Environment,
    /// The system's keychain may be looked for: `has_keychain`.
    pub keychain: bool,
}

/// Where the log of this process goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogTo {
    #[default]
    Nowhere,
    /// Warnings to stderr, and what the setting says to a file in the log folder.
    StderrAndFile,
}

/// The application.
#[derive(Clone)]
pub struct App {
    running: Arc<RunningApp>,
}

/// What ends with the last clone of `App`.
struct RunningApp {
    services: Arc<Services>,
    hub_access: HubAccess,
    hub: HubConnection,
    /// Folders of other programs that may hold models.
    model_roots: Vec<models::model_dirs::ModelRoot>,
    logging: Option<Logging>,
    threads: Vec<JoinHandle<()>>,
    /// The thread of the daily backup ends when its channel does.
    backup: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl App {
    pub fn open(config: AppConfig) -> Result<Self> {
        Self::open_with(config, Arc::new(RealIo), Arc::new(RealClock::new()))
    }

    /// As `open`, with the caller's disk and clock.
    pub fn open_with(config: AppConfig, io: Arc<dyn Io>, clock: Arc<dyn Clock>) -> Result<Self> {
        let AppConfig { data_dir, overrides, log, worker: placement, hub, environment, others, keychain } =
            config;
        let dirs = DataDirs::resolve(data_dir)?;
        // Where it fails, opening the database says why.
        let _ = dirs.make_private();
        network::server_status::forget_dead(&dirs.data, &*io);
        let (session, notices) = Session::open(&dirs.data, &*io, Arc::clone(&clock))?;
        let logging = match log {
            LogTo::Nowhere => None,
            LogTo::StderrAndFile => Some(Logging::start(&dirs.logs)),
        };
        let (requests, inbox) = worker::channel();
        let keys = secrets::Keys::new(&dirs.data, Arc::clone(&io), keychain);
        let services = Services::new(session, overrides, dirs, keys, environment, requests, io, clock);
        for notice in notices {
            services.ctx.events.notice(Error::from(notice).info);
        }
        let threads = start_threads(&services, inbox, placement)?;
        // Nothing is ever sent: the thread ends when this end is dropped.
        let (keep_on, stopped) = mpsc::sync_channel(1);
        let backed_up = services.ctx.clone();
        let alone = Arc::clone(&services.copying);
        let backup = spawn("backup", move || backups::run(&backed_up, &alone, &stopped))?;
        let running = RunningApp {
            services,
            hub_access: hub,
            hub: HubConnection::default(),
            model_roots: others,
            logging,
            threads,
            backup: Some((keep_on, backup)),
        };
        let app = Self { running: Arc::new(running) };
        app.apply_log_level()?;
        app.tidy_contexts()?;
        app.apply_load_defaults();
        app.tidy_imports();
        if !app.store().is_read_only() {
            app.tidy_models()?;
        }
        tracing::info!(data = %app.dirs().data.display(), "opened");
        Ok(app)
    }

    pub fn dirs(&self) -> &DataDirs {
        &self.ctx().dirs
    }

    /// Whether an answer is being written.
    pub fn is_answering(&self) -> bool {
        self.services().turns.n_open() > 0
    }

    /// How much memory there is, and how much of it is ours.
    pub fn machine_memory(&self) -> MemoryInfo {
        MemoryInfo {
            ours_bytes: memory::program_bytes(),
            free_bytes: memory::free_bytes(),
            total_bytes: memory::total_bytes(),
        }
    }

    pub fn app_info(&self) -> AppInfo {
        AppInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            data_dir: self.dirs().data.display().to_string(),
            log_dir: self.dirs().logs.display().to_string(),
            cores: sysinfo::System::physical_core_count().map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            isa: inference::machine::isa_name().into(),
        }
    }

    /// Follows application events from now on. The first watcher also gets earlier ones: the
    /// notices of the opening.
    pub fn watch_app(&self) -> Watch<AppEvent> {
        self.ctx().events.watch()
    }

    fn services(&self) -> &Arc<Services> {
        &self.running.services
    }

    fn ctx(&self) -> &Context {
        &self.running.services.ctx
    }

    /// The database, for as long as the guard lives.
    fn store(&self) -> MutexGuard<'_, Session> {
        self.running.services.ctx.store.lock()
    }

    fn ask(&self, request: WorkerRequest) -> Result<()> {
        self.ctx().backends.ask(request)
    }
}

impl Drop for RunningApp {
    /// Turns that are being answered end as `Interrupted`, with what there is of them on disk.
    fn drop(&mut self) {
        let services = &self.services;
        services.downloads.close();
        self.hub.end();
        services.end_tools();
        // Both threads end by this; one that is gone already has nothing left to end.
        let _ = services.ctx.backends.worker.send(WorkerRequest::Stop);
        services.ctx.backends.endpoints.remote().stop();
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
        self.services.ctx.events.close();
    }
}

fn start_threads(
    services: &Arc<Services>,
    inbox: worker::Inbox,
    placement: supervisor::WorkerPlacement,
) -> Result<Vec<JoinHandle<()>>> {
    let (send, events) = mpsc::sync_channel::<WorkerEvent>(MAX_WAITING_EVENTS);
    services.ctx.backends.endpoints.remote().connect(send.clone());
    let clock = Arc::clone(&services.ctx.clock);
    let worker = move || {
        let emit = &mut |event| send.send(event).is_ok();
        match placement {
            supervisor::WorkerPlacement::Thread => worker::run(&inbox, clock, emit),
            supervisor::WorkerPlacement::Process(program) => {
                supervisor::run(inbox.into_receiver(), &program, &*clock, emit)
            }
        };
    };
    let pumped = Arc::clone(services);
    let pump = move || turns::event_pump::run(&pumped, &events);
    Ok(vec![spawn("worker", worker)?, spawn("pump", pump)?])
}
