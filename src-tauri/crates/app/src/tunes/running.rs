//! The run that trains now, and what is known of those that did.

use std::path::PathBuf;
use std::sync::Arc;

use contract::types::{AppEvent, TuneInfo, TuneState};
use contract::{Error, Result};
use inference::tune::process::{self, TuneInterrupt};
use inference::tune::{TuneJob, TuneProgress, run_folder};

use super::table::{BegunTune, LiveTune};
use super::{busy, check_name, models, not_found};
use crate::Services;

/// The folder of all runs, in the data folder.
const FOLDER: &str = "tunes";

impl Services {
    /// Where the runs are.
    pub(super) fn tunes_folder(&self) -> PathBuf {
        self.ctx.dirs.data.join(FOLDER)
    }

    /// Errors: `tune.not_found`.
    pub(super) fn tune_folder(&self, id: &str) -> Result<PathBuf> {
        let folder = self.tunes_folder().join(id);
        // A name that is none leads elsewhere.
        match check_name(id).is_ok() && self.ctx.io.exists(&folder)? {
            true => Ok(folder),
            false => Err(not_found(id)),
        }
    }

    /// Errors: `tune.busy`.
    pub(super) fn check_no_tune_runs(&self) -> Result<()> {
        match self.tunes.lock().live.keys().next() {
            Some(id) => Err(busy(id)),
            None => Ok(()),
        }
    }

    /// All runs, the latest first. One whose folder is damaged has failed, and says why.
    pub(super) fn tune_infos(&self) -> Result<Vec<TuneInfo>> {
        let folder = self.tunes_folder();
        if !self.ctx.io.exists(&folder)? {
            return Ok(Vec::new());
        }
        let mut infos = Vec::new();
        for path in self.ctx.io.list(&folder)? {
            let Some(id) = path.file_name().and_then(|name| name.to_str()) else { continue };
            match self.tune_info(id) {
                Ok(info) => infos.push(info),
                Err(error) if check_name(id).is_err() => {
                    tracing::warn!("{} is left out: {error}", path.display());
                }
                Err(error) => infos.push(TuneInfo {
                    id: id.into(),
                    model: String::new(),
                    data: String::new(),
                    chats: None,
                    state: TuneState::Failed { error: error.info },
                    n_steps: None,
                    last: None,
                    before: None,
                    seconds_left: None,
                    created_ms: 0,
                    folder: path.display().to_string(),
                    tuned: None,
                }),
            }
        }
        infos.sort_by_key(|info| std::cmp::Reverse(info.created_ms));
        Ok(infos)
    }

    /// Errors: `tune.not_found`; those of a damaged folder.
    pub(super) fn tune_info(&self, id: &str) -> Result<TuneInfo> {
        let (path, disk) = (self.tune_folder(id)?, &*self.ctx.io);
        let job = TuneJob::read(&path, disk)?;
        let report = run_folder::report(&path, disk)?;
        let table = self.tunes.lock();
        let (begun, live) = (table.begun.get(id).copied(), table.live.get(id));
        let is_done = report.is_some();
        let n_steps = begun.map(|it| it.n_steps).or(report.as_ref().map(|it| it.steps));
        let before = begun.and_then(|it| it.before).or(report.as_ref().and_then(|it| it.before));
        let seconds_left = live.filter(|live| live.n_steps_here > 0).and_then(|live| {
            let n_left = n_steps?.saturating_sub(begun?.last?.step);
            Some(live.seconds_here / live.n_steps_here as f64 * n_left as f64)
        });
        let state = match (live, report, table.failed.get(id)) {
            (Some(_), _, _) => TuneState::Running,
            (None, Some(report), _) => TuneState::Done { report },
            (None, None, Some(error)) => TuneState::Failed { error: error.clone() },
            (None, None, None) if TuneJob::is_running(&path)? => TuneState::Running,
            (None, None, None) => TuneState::Paused,
        };
        drop(table);
        let last = match begun.and_then(|it| it.last) {
            Some(last) => Some(last),
            None => run_folder::steps(&path, disk)?.last().copied(),
        };
        Ok(TuneInfo {
            id: id.into(),
            tuned: is_done.then(|| models::tuned_id(&job.model, id)),
            model: job.model,
            data: job.data_name,
            chats: job.chats,
            state,
            n_steps,
            last,
            before,
            seconds_left,
            created_ms: job.created_ms,
            folder: path.display().to_string(),
        })
    }

    fn publish_tune(&self, id: &str) {
        match self.tune_info(id) {
            Ok(tune) => self.ctx.events.publish(AppEvent::TuneChanged { tune }),
            Err(error) => tracing::warn!("the run {id} cannot be shown: {error}"),
        }
    }

    /// Notes what a run says, and tells it.
    fn take_progress(&self, id: &str, progress: TuneProgress) {
        let mut table = self.tunes.lock();
        match progress {
            TuneProgress::Begun { n_steps, before } => {
                table.begun.insert(id.into(), BegunTune { n_steps, before, last: None });
            }
            TuneProgress::Step { step } => {
                if let Some(begun) = table.begun.get_mut(id) {
                    begun.last = Some(step);
                }
                if let Some(live) = table.live.get_mut(id) {
                    live.n_steps_here += 1;
                    live.seconds_here += step.seconds;
                }
            }
            TuneProgress::Notice { error } => {
                drop(table);
                return self.ctx.events.notice(error.info);
            }
            // The folder has the report.
            TuneProgress::Done { .. } => return,
            TuneProgress::Failed { error } => {
                table.failed.insert(id.into(), error.info);
            }
        }
        drop(table);
        self.publish_tune(id);
    }

    fn tune_ended(&self, id: &str, outcome: Result<()>) {
        let mut table = self.tunes.lock();
        table.live.remove(id);
        if let Err(error) = outcome {
            table.failed.insert(id.into(), error.info);
        }
        drop(table);
        self.tunes.ended.notify_all();
        self.publish_tune(id);
        let tuned = self.tune_info(id).ok().and_then(|info| info.tuned);
        let entries = self.model_entries().unwrap_or_default();
        if let Some(model) = entries.into_iter().find(|entry| Some(&entry.id) == tuned.as_ref()) {
            self.ctx.events.publish(AppEvent::ModelChanged { model });
        }
    }
}

/// Starts a run from where it stands.
///
/// Errors: `tune.busy`; the system has no thread to give.
pub(super) fn start(services: &Arc<Services>, id: &str) -> Result<()> {
    let folder = services.tune_folder(id)?;
    let interrupt = Arc::new(TuneInterrupt::default());
    let live = LiveTune { interrupt: Arc::clone(&interrupt), n_steps_here: 0, seconds_here: 0.0 };
    {
        let mut table = services.tunes.lock();
        if table.is_closed {
            return Err(Error::bug("a run was started while the application ends"));
        }
        if let Some(other) = table.live.keys().next() {
            return Err(busy(other));
        }
        table.failed.remove(id);
        table.live.insert(id.into(), live);
    }
    let (of, name) = (Arc::clone(services), id.to_owned());
    let started = platform::spawn("tune", move || {
        let program = of.tunes.program.get();
        let mut take = |progress| of.take_progress(&name, progress);
        let outcome = process::run(program.map(PathBuf::as_path), &folder, &interrupt, &mut take);
        of.tune_ended(&name, outcome);
    });
    let mut table = services.tunes.lock();
    match started {
        Ok(thread) => {
            table.threads.retain(|thread| !thread.is_finished());
            table.threads.push(thread);
            Ok(())
        }
        Err(error) => {
            table.live.remove(id);
            Err(error)
        }
    }
}
