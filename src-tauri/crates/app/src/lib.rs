//! The application: everything it can do, once. Frontends (window, terminal, HTTP) call `App` and nothing below it.
//!
//! `App` is cheap to clone. Each noun has a folder with its use cases and a service that owns their state; `Context` is
//! what services share. Threads: the worker (or the supervisor of its process), the event pump, the daily backup.
#![forbid(unsafe_code)]

mod backups;
pub mod calls;
mod context;
pub mod conversations;
mod downloads;
mod environment;
mod events;
pub mod models;
mod network;
mod retrieval;
mod services;
mod settings;
mod store;
mod tools;
mod tunes;
mod turns;
mod updates;
pub mod window_state;

use std::path::PathBuf;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use contract::protocol::{WorkerEvent, WorkerRequest};
use contract::types::{AppEvent, AppInfo, MemoryInfo};
use contract::{Error, Result};
use inference::{supervisor, worker};
use io::{Clock, Io, RealClock, RealIo};
use platform::{DataDirs, Logging, Watch, memory, spawn};
use session::Session;

pub use ::updates::{UpdateAccess, UpdateDownloadEnd, UpdateInstaller, UpdatePlan};
pub use api_keys::{
    ApiKeyArgs, ApiKeyInfo, CallerKey, KeyLimits, KeyScope, NewApiKey, VerifiedKey, check_key, new_key,
};
pub use audit::{BrokenLine, Verification};
pub use conversations::generate::{GenerateArgs, SamplingArgs};
pub use environment::Environment;
pub use inference::constraints::gbnf_constraint;
pub use models::hub_client::{HubAccess, download_args};
pub use network::api_files::ApiFile;
pub use network::api_objects::{ApiObject, ApiObjectKind};
pub use network::callers::{Caller, Interface};
pub use network::external_requests::ServedModel;
pub use network::server_control::{ServerAction, ServerRunner};
pub use network::server_status::ServerLock;
pub use retrieval::AttachedPrompt;
pub use secrets::has_keychain;
pub use settings::own_prompts::OwnPrompt;
pub use settings::{Overrides, template_file};
pub use tools::{CallStop, OfferedTools, prompt_arguments};
pub use turns::latency_histogram::LatencyHistogram;
pub use turns::turn_metrics::{AnswerTotals, RuntimeStats};

use context::Context;
use models::hub_client::HubConnection;
pub(crate) use services::Services;
use store::StoreGuard;

/// Where is kept for which data folder the user was warned of a program that synchronizes it.
const SYNC_WARNED: &str = "sync_warned";

/// Worker events that wait for the event pump; a full queue slows the worker down.
const MAX_WAITING_EVENTS: usize = 512;

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
    /// Folders of other programs that may hold models: `model_dirs::known`.
    pub others: Vec<model_dirs::ModelRoot>,
    pub environment: Environment,
    /// The system's keychain may be looked for: `has_keychain`.
    pub keychain: bool,
    /// Where requests come from, unless `App::as_caller` says otherwise.
    pub interface: Interface,
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
    /// On whose behalf this clone is used.
    caller: Arc<Caller>,
}

/// What ends with the last clone of `App`.
struct RunningApp {
    services: Arc<Services>,
    hub_access: HubAccess,
    hub: HubConnection,
    /// Folders of other programs that may hold models.
    model_roots: Vec<model_dirs::ModelRoot>,
    logging: Option<Logging>,
    /// Runs the window's HTTP server, where the edge can.
    server_runner: OnceLock<ServerRunner>,
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
        let AppConfig {
            data_dir,
            overrides,
            log,
            worker: placement,
            hub,
            environment,
            others,
            keychain,
            interface,
        } = config;
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
        let caller = Arc::new(Caller { interface, ..Caller::default() });
        let services =
            Services::new(session, overrides, dirs, keys, environment, requests, io, clock, &caller);
        services.tunes.run_as(&placement);
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
            server_runner: OnceLock::new(),
            threads,
            backup: Some((keep_on, backup)),
        };
        let app = Self { running: Arc::new(running), caller };
        app.apply_log_level()?;
        app.notice_of(app.tidy_contexts());
        app.apply_load_defaults();
        app.tidy_imports();
        app.warn_of_synced_folder()?;
        if !app.store().is_read_only() {
            app.set_damaged_settings_aside()?;
            app.notice_of(app.tidy_models());
        }
        tracing::info!(data = %app.dirs().data.display(), "opened");
        Ok(app)
    }

    /// Reports a failure of what can wait for the next start.
    fn notice_of(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            tracing::warn!(code = error.code(), "{error}");
            self.ctx().events.notice(error.info);
        }
    }

    /// Other programs that copy files of the data folder while they are written damage the database, or fork it. Said once
    /// for each place; copies of the database that came of it are named at every start.
    fn warn_of_synced_folder(&self) -> Result<()> {
        let folder = self.dirs().data.clone();
        let copies = platform::conflict_copies(&folder, session::FILE_NAME);
        if let Some(copy) = copies.first() {
            let message = format!(
                "A program that synchronizes files has made a second chat database: {}. Chats may differ between them.",
                copy.display()
            );
            let remedy = "Keep the data folder on one computer. Import missing chats from that file's backup, then move it away.";
            self.ctx().events.notice(Error::input("data.conflict_copy", message, remedy).info);
        }
        let Some(risk) = platform::sync_risk(&folder) else { return Ok(()) };
        let place = serde_json::Value::String(folder.display().to_string()).to_string();
        if self.store().setting(SYNC_WARNED)?.as_ref() == Some(&place) {
            return Ok(());
        }
        let message = format!(
            "The data folder {} lies in {risk}. Chats can be damaged when it copies the database while it is written.",
            folder.display()
        );
        let remedy = "Move the data folder to a local disk, and start Inglenook with --data-dir or INGLENOOK_DATA_DIR.";
        self.ctx().events.notice(Error::input("data.synced_folder", message, remedy).info);
        if !self.store().is_read_only() {
            self.store().set_setting(SYNC_WARNED, &place)?;
        }
        Ok(())
    }

    /// The application as this process itself uses it.
    fn of(running: Arc<RunningApp>) -> Self {
        let caller = Arc::clone(&running.services.ctx.caller);
        Self { running, caller }
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
    fn store(&self) -> StoreGuard<'_> {
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
        services.tunes.close();
        services.api_keys.usages.flush();
        self.hub.end();
        services.end_tools();
        // Both threads end by this; one that is gone already has nothing left to end.
        let _ = services.ctx.backends.worker.send(WorkerRequest::Stop);
        services.ctx.backends.endpoints.remote().stop();
        services.ctx.backends.guide.stop();
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
    services.ctx.backends.guide.connect(send.clone());
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
