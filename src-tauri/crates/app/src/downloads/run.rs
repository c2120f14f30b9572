//! One download from its row to the library: run, watched, and recorded in the database as it
//! proceeds.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hub::{DownloadEnd, DownloadProgress, Layout, PlacedFile};
use session::{DownloadRow, DownloadStage, FileHashRow};
use tokio::sync::watch;

use super::{StoredFile, json, place, stored};
use crate::App;
use crate::Services;
use crate::models::hub_client::{CHUNK_LISTS, repository};
use crate::settings::TypedSettings;
use contract::{Error, Result};
use net::offline_error;

/// How often watchers hear of it.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Progress reports per database update.
const NOTE_EVERY: u32 = 8;

/// How often it is looked whether what it waits for has passed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Progress checks per check of the free disk space.
const LOOKS: u32 = 4;

/// Weight of the newest figure in the speed that is shown.
const NEWEST: f64 = 0.2;

/// How a run ended.
enum DownloadOutcome {
    PlacedFile(Vec<PlacedFile>),
    /// By the user, or because the program ends. The row says which.
    Stopped,
    /// By another process, in the row.
    StoppedElsewhere,
    Failed(Error),
}

/// What the rows say of one that runs: another process may have written them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    GoOn,
    /// No connections are wanted.
    Rest,
    /// It was paused or cancelled.
    Stop,
}

impl App {
    /// Begins to fetch; returns at once.
    pub(super) fn run_download(
        &self,
        row: DownloadRow,
        progress: Arc<DownloadProgress>,
        stop: watch::Receiver<bool>,
    ) -> Result<()> {
        let repository = repository(&row.repository)?;
        let files = stored(&row)?;
        let expected = files.iter().filter_map(|file| {
            let (bytes, chunks) = file.chunks.as_ref()?;
            let hashes: Option<Vec<_>> = chunks.iter().map(|hash| hub::Hash::parse(hash)).collect();
            Some((file.path.clone(), (*bytes, hashes?)))
        });
        let download = hub::Download {
            client: self.hub_client()?,
            io: Arc::clone(&self.ctx().io),
            clock: Arc::clone(&self.ctx().clock),
            repository,
            revision: row.revision.clone(),
            branch: row.branch.clone(),
            is_signed: row.trust.contains("signed"),
            expected: expected.collect(),
            files: files.iter().map(StoredFile::remote).collect(),
            dir: place(&row),
            chunk_lists: self.dirs().data.join(CHUNK_LISTS),
            tuning: self.tuning()?,
            progress,
            stop: stop.clone(),
        };
        let (services, app) = (Arc::clone(self.services()), Arc::downgrade(&self.running));
        let runtime = self.hub_runtime()?;
        let id = row.id;
        runtime.spawn(async move {
            let outcome = run(&services, &id, download, stop).await;
            // The library asks the worker and waits for it; and the last owner of the application ends here at worst.
            let ended = tokio::task::spawn_blocking(move || end(&services, &app, &id, outcome));
            if let Err(panic) = ended.await {
                tracing::error!("a download ended by a panic: {panic}");
            }
        });
        Ok(())
    }
}

/// Until it ends, over rests while the disk is full or no connections are wanted.
async fn run(
    services: &Services,
    id: &str,
    mut download: hub::Download,
    mut stop: watch::Receiver<bool>,
) -> DownloadOutcome {
    let (halt, halted) = watch::channel(false);
    download.stop = halted;
    loop {
        halt.send_replace(false);
        let mut watched = ProgressReporter::new(services, id);
        let (ended, order) = attempt(&download, &mut watched, &halt, &mut stop).await;
        watched.note(&download.progress);
        let reason = match ended {
            Ok(placed) => return DownloadOutcome::PlacedFile(placed),
            Err(_) if *stop.borrow() => return DownloadOutcome::Stopped,
            Err(DownloadEnd::Stopped) if order == Order::Rest => offline_error(&download.client.host()).info,
            Err(DownloadEnd::Stopped) => return DownloadOutcome::StoppedElsewhere,
            Err(DownloadEnd::Failed(error)) => return DownloadOutcome::Failed(error.into()),
            Err(DownloadEnd::NoSpace(error) | DownloadEnd::Offline(error)) => Error::from(error).info,
        };
        tracing::warn!(code = reason.code, "{}", reason.message);
        watched.waits_for(Some(reason));
        if let Some(outcome) = rest(&watched, &mut stop).await {
            return outcome;
        }
        watched.waits_for(None);
    }
}

/// One run, told as it goes; and what order ended it.
async fn attempt(
    download: &hub::Download,
    watched: &mut ProgressReporter<'_>,
    halt: &watch::Sender<bool>,
    stop: &mut watch::Receiver<bool>,
) -> (Result<Vec<PlacedFile>, DownloadEnd>, Order) {
    let work = download.run();
    tokio::pin!(work);
    let mut order = Order::GoOn;
    loop {
        tokio::select! {
            ended = &mut work => return (ended, order),
            Ok(_) = stop.wait_for(|stop| *stop), if !*halt.borrow() => {
                halt.send_replace(true);
            }
            () = tokio::time::sleep(TELL_EVERY) => {
                watched.tell(&download.progress);
                if order == Order::GoOn {
                    order = watched.order();
                }
                if order != Order::GoOn {
                    halt.send_replace(true);
                }
            }
        }
    }
}

/// Until what it waits for may have passed. Some: it is not to go on.
async fn rest(watched: &ProgressReporter<'_>, stop: &mut watch::Receiver<bool>) -> Option<DownloadOutcome> {
    let mut n_looks = 0;
    loop {
        tokio::select! {
            biased;
            Ok(_) = stop.wait_for(|stop| *stop) => return Some(DownloadOutcome::Stopped),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        match watched.order() {
            Order::Stop => return Some(DownloadOutcome::StoppedElsewhere),
            Order::Rest => n_looks = LOOKS,
            Order::GoOn if n_looks >= LOOKS => return None,
            Order::GoOn => n_looks += 1,
        }
    }
}

/// Reports the progress of a running download to watchers and to the database.
struct ProgressReporter<'a> {
    services: &'a Services,
    id: &'a str,
    fetched: u64,
    have: u64,
    at: Duration,
    n_told: u32,
}

impl<'a> ProgressReporter<'a> {
    fn new(services: &'a Services, id: &'a str) -> Self {
        Self { services, id, fetched: 0, have: 0, at: services.ctx.clock.monotonic(), n_told: 0 }
    }

    fn tell(&mut self, progress: &DownloadProgress) {
        let (now, fetched) = (self.services.ctx.clock.monotonic(), progress.fetched());
        let passed = now.saturating_sub(self.at).as_secs_f64().max(1e-3);
        let have = progress.have();
        // What another process fetches is not ours, but it arrives all the same.
        let arrived = if fetched == 0 && self.have > 0 { have.saturating_sub(self.have) } else { 0 };
        let newest = fetched.saturating_sub(self.fetched).max(arrived) as f64 / passed;
        (self.at, self.fetched, self.have) = (now, fetched, have);
        if let Some(live) = self.services.downloads.lock().live.get_mut(self.id) {
            live.speed =
                if self.n_told == 0 { newest } else { live.speed * (1.0 - NEWEST) + newest * NEWEST };
        }
        self.n_told += 1;
        if self.n_told.is_multiple_of(NOTE_EVERY) {
            self.note(progress);
        }
        self.event();
    }

    /// A row that can't be read now says nothing.
    fn order(&self) -> Order {
        let row = self.services.store().download(self.id);
        match row {
            Ok(row) if row.stage == DownloadStage::Paused => Order::Stop,
            Err(error) if error.code() == "session.not_found" => Order::Stop,
            Ok(_) | Err(_) if self.services.ctx.settings.offline().unwrap_or(false) => Order::Rest,
            Ok(_) | Err(_) => Order::GoOn,
        }
    }

    fn waits_for(&self, reason: Option<contract::types::ErrorInfo>) {
        if let Some(live) = self.services.downloads.lock().live.get_mut(self.id) {
            (live.waits_for, live.speed) = (reason, 0.0);
        }
        self.event();
    }

    fn event(&self) {
        let row = self.services.store().download(self.id);
        // A row that is gone was cancelled meanwhile.
        let _ = row.map_err(Error::from).and_then(|row| self.services.told(row));
    }

    /// Records progress for a restart after a crash. The journal beside the partial file is
    /// authoritative.
    fn note(&self, progress: &DownloadProgress) {
        let before = self.services.downloads.lock().live.get(self.id).map_or(0, |live| live.fetched_before);
        let mut store = self.services.store();
        let Ok(mut row) = store.download(self.id) else { return };
        // Another process may have fetched more of it.
        row.fetched = row.fetched.max(before + progress.fetched());
        (row.bytes, row.total) = (progress.have(), progress.total());
        if let Err(error) = store.put_download(&row) {
            tracing::warn!(code = error.code(), "{error}");
        }
    }
}

/// The model into the library, the end into the row; then the next one begins.
fn end(services: &Services, app: &Weak<crate::RunningApp>, id: &str, outcome: DownloadOutcome) {
    let app = app.upgrade().map(App::of);
    let is_elsewhere = matches!(outcome, DownloadOutcome::StoppedElsewhere);
    let ended = match (outcome, &app) {
        (DownloadOutcome::Stopped | DownloadOutcome::StoppedElsewhere, _) | (_, None) => None,
        (DownloadOutcome::PlacedFile(placed), Some(app)) => Some(app.take_in(id, &placed)),
        (DownloadOutcome::Failed(error), Some(_)) => Some(Err(error)),
    };
    let row = services.store().download(id);
    {
        let mut downloads = services.downloads.lock();
        if let Some(notice) = downloads.live.remove(id).and_then(|live| live.meter.notice()) {
            downloads.notices.insert(id.to_owned(), notice);
        }
    }
    if is_elsewhere {
        services.downloads.lock().mine.remove(id);
        services.tell_of_row(id);
    }
    if let (Some(ended), Ok(mut row)) = (ended, row) {
        (row.stage, row.detail) = match ended {
            Ok(model) => (DownloadStage::Done, Some(model)),
            Err(error) => {
                tracing::warn!(code = error.code(), "{error}");
                services.audit_refusal(&row.repository, &error.info);
                (DownloadStage::Failed, Some(json(&error.info)))
            }
        };
        let stored = services.store().put_download(&row).map_err(Error::from);
        if let Err(error) = stored.and_then(|()| services.told(row)) {
            services.ctx.events.notice(error.info);
        }
    }
    services.downloads.ended.notify_all();
    if let Some(app) = app
        && let Err(error) = app.start_next()
    {
        app.ctx().events.notice(error.info);
    }
}

impl App {
    /// Records what arrived and enters it into the library; its id there. What the library refuses is removed again.
    fn take_in(&self, id: &str, placed: &[PlacedFile]) -> Result<String> {
        let row = self.store().download(id)?;
        for file in placed {
            self.store().put_file_hash(&FileHashRow {
                path: crate::models::verify::key(&file.path),
                bytes: file.bytes,
                sha256: file.sha256.to_string(),
                trust: row.trust.clone(),
                at_ms: self.ctx().clock.now_utc_ms(),
            })?;
        }
        let first = placed.iter().find(|file| file.path.ends_with(&row.path)).or(placed.first());
        let first = first.ok_or_else(|| Error::bug("a download of nothing"))?;
        let is_folder = row.path.ends_with(".safetensors") || row.path.ends_with(".json");
        let path = match first.path.parent() {
            Some(folder) if is_folder => folder,
            Some(_) | None => &first.path,
        };
        // What another program had put into the cache stays its own.
        let is_ours = row.fetched > 0 || placed.iter().any(|file| !file.was_there);
        let place = place(&row);
        match self.model_add(&path.display().to_string()) {
            Ok(entry) if place.layout == Layout::HubCache && is_ours => {
                Ok(self.own(&entry.id, &place.root)?.id)
            }
            Ok(entry) => Ok(entry.id),
            Err(error) => {
                for file in placed {
                    // The entry of the cache is gone with its name; its bytes may be another program's, too.
                    let _ = self.ctx().io.remove_file(&file.path);
                }
                Err(error)
            }
        }
    }
}
