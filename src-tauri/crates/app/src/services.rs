//! The services, each the owner of its state, and the context that they share. Built once, when the
//! application opens.

use api_keys::ApiKeys;
use std::sync::{Arc, Mutex};

use audit::AuditLog;
use inference::worker;
use io::{Clock, Io};
use platform::DataDirs;
use secrets::Keys;
use session::Session;

use crate::Environment;
use crate::context::checkpoint_files::CheckpointFiles;
use crate::context::pending_replies::Replies;
use crate::context::summary_jobs::Summaries;
use crate::context::{Backends, Context};
use crate::conversations::title_jobs::Titles;
use crate::downloads::queue::Downloads;
use crate::events::Events;
use crate::models::machine_facts::MachineFacts;
use crate::models::model_states::ModelStates;
use crate::network::callers::Caller;
use crate::network::connections::connection_gate;
use crate::network::endpoints::Endpoints;
use crate::retrieval::Attachments;
use crate::settings::profiling::Profiling;
use crate::settings::{Overrides, Settings};
use crate::store::{Store, StoreGuard};
use crate::tools::ToolServers;
use crate::tools::open_rounds::ToolRounds;
use crate::tunes::Tunes;
use crate::turns::guide_responder::GuideResponder;
use crate::turns::turn_metrics::TurnMetrics;
use crate::turns::{AUDIT_FOLDER, Turns};
use crate::updates;

/// Every service. No field of one is visible to another; they meet in methods.
pub(crate) struct Services {
    pub ctx: Context,
    pub api_keys: ApiKeys,
    pub audit: AuditLog,
    pub attachments: Attachments,
    pub checkpoints: CheckpointFiles,
    pub downloads: Downloads,
    pub machine: MachineFacts,
    pub models: ModelStates,
    pub profiling: Profiling,
    pub rounds: ToolRounds,
    pub summaries: Summaries,
    pub titles: Titles,
    pub tools: Arc<ToolServers>,
    pub tunes: Tunes,
    pub turns: Turns,
    pub turn_metrics: TurnMetrics,
    pub updates: Arc<::updates::Updates>,
    /// Held while the database is copied, and while deleted text is wiped: no copy may keep it.
    pub copying: Arc<Mutex<()>>,
}

impl Services {
    #[expect(clippy::too_many_arguments, reason = "called once, by the composition root")]
    pub fn new(
        session: Session,
        overrides: Overrides,
        dirs: DataDirs,
        keys: Keys,
        environment: Environment,
        worker: worker::Requests,
        io: Arc<dyn Io>,
        clock: Arc<dyn Clock>,
        caller: &Arc<Caller>,
    ) -> Arc<Self> {
        let (events, dirs, keys) = (Events::new(), Arc::new(dirs), Arc::new(keys));
        let store = Store::new(session, events.clone(), Arc::clone(&io));
        let settings = Settings::new(store.clone(), overrides, Arc::clone(&dirs));
        let gate = connection_gate(&store, &settings);
        let endpoints = Endpoints::new(
            store.clone(),
            events.clone(),
            settings.clone(),
            Arc::clone(&keys),
            environment,
            gate.clone(),
            Arc::clone(&clock),
        );
        let backends = Backends {
            worker,
            endpoints,
            replies: Arc::new(Replies::default()),
            guide: Arc::new(GuideResponder::default()),
        };
        let ctx = Context {
            store,
            events,
            backends,
            settings,
            io,
            clock,
            dirs,
            keys,
            gate,
            environment,
            caller: Arc::clone(caller),
        };
        let audit = AuditLog::new(ctx.dirs.data.join(AUDIT_FOLDER), Arc::clone(&ctx.io));
        let api_keys = ApiKeys::new(&ctx.dirs.data, Arc::clone(&ctx.io), Arc::clone(&ctx.clock));
        Arc::new(Self {
            api_keys,
            audit,
            attachments: Attachments::default(),
            checkpoints: CheckpointFiles::new(&ctx.dirs, Arc::clone(&ctx.io)),
            downloads: Downloads::default(),
            machine: MachineFacts::default(),
            models: ModelStates::default(),
            profiling: Profiling::default(),
            rounds: ToolRounds::default(),
            summaries: Summaries::default(),
            titles: Titles::default(),
            tools: Arc::new(ToolServers::new(ctx.clone())),
            tunes: Tunes::default(),
            turns: Turns::default(),
            turn_metrics: TurnMetrics::new(Arc::clone(&ctx.clock)),
            updates: Arc::new(::updates::Updates::new(updates::host(&ctx))),
            copying: Arc::default(),
            ctx,
        })
    }

    /// The database, for as long as the guard lives.
    pub fn store(&self) -> StoreGuard<'_> {
        self.ctx.store.lock()
    }
}
