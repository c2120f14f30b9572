//! The queue of downloads: stored in the database, so that it outlives the program, and processed
//! two at a time. Several processes may watch one queue. Each process that is asked to fetch
//! something tries to; the hub crate ensures that one of them does and the others follow it. A
//! pause or cancel in one of them stops the download in all.

mod other_processes;
pub(crate) mod queue;
mod run;

use std::sync::Arc;

use hub::{DownloadProgress, Layout, ModelDir, Phase, RemoteFile, Repository};
use serde::{Deserialize, Serialize};
use session::{DownloadRow, DownloadStage};
use tokio::sync::watch;

use crate::App;
use crate::Services;
use crate::models::hub_client::{repository, with_address};
use contract::types::{AppEvent, Download, DownloadStartArgs, DownloadState, ErrorInfo, Trust};
use contract::{Error, Result};
use queue::LiveDownload;

/// Downloads that run at once; the others wait.
const AT_ONCE: usize = 2;

/// A file as the database keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredFile {
    path: String,
    bytes: u64,
    sha256: Option<String>,
    /// Of a signed list: the length of its chunks, and their hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chunks: Option<(u64, Vec<String>)>,
}

impl StoredFile {
    fn remote(&self) -> RemoteFile {
        let sha256 = self.sha256.as_deref().and_then(hub::Hash::parse);
        RemoteFile { path: self.path.clone(), bytes: self.bytes, sha256 }
    }
}

impl App {
    /// Oldest first, ended ones included.
    pub fn download_list(&self) -> Result<Vec<Download>> {
        let rows = self.store().downloads()?;
        rows.into_iter().map(|row| self.services().download(row)).collect()
    }

    /// Puts a model into the queue. One that is there already is gone on with.
    pub fn download_start(&self, args: &DownloadStartArgs) -> Result<Download> {
        let started = self.try_download_start(&with_address(args));
        if let Err(error) = &started {
            self.services().audit_refusal(&args.repository, &error.info);
        }
        started
    }

    fn try_download_start(&self, args: &DownloadStartArgs) -> Result<Download> {
        let (repository, offer) = self.named(&args.repository)?;
        if let Some(path) = &args.path
            && let Some(found) = self.queued(&repository, path)?
            && found.stage != DownloadStage::Done
        {
            return self.download_resume(&found.id);
        }
        let listing = self.listing(&repository, args.revision.clone(), offer)?;
        let wanted = match args.path.as_deref().filter(|path| !hub::is_latest(path)) {
            Some(path) => find_item(&listing.items, path),
            None => listing.recommended,
        };
        let Some(item) = wanted.and_then(|index| listing.items.get(index)) else {
            return Err(no_such_file(&repository, args.path.as_deref(), &listing.items));
        };
        let trust = listing.trust(&repository, item)?;
        let chunks = |file: &RemoteFile| {
            let (manifest, _) = listing.manifest.as_ref()?;
            let listed = manifest.of(&repository.to_string(), file).ok()??;
            Some((listed.chunk_bytes, listed.chunks.iter().map(ToString::to_string).collect()))
        };
        let files: Vec<StoredFile> = item
            .files
            .iter()
            .map(|file| StoredFile {
                path: file.path.clone(),
                bytes: file.bytes,
                sha256: file.sha256.map(|hash| hash.to_string()),
                chunks: chunks(file),
            })
            .collect();
        if let Some(found) = self.queued(&repository, &item.path)? {
            if found.stage != DownloadStage::Done {
                return self.download_resume(&found.id);
            }
            // Existing files of the same commit are reused; those of another commit are fetched
            // alongside.
            self.store().remove_download(&found.id)?;
            self.ctx().events.publish(AppEvent::DownloadRemoved { id: found.id });
        }
        let place = self.download_place()?;
        let row = DownloadRow {
            id: self.store().new_id(),
            repository: repository.to_string(),
            revision: listing.tree.revision.clone(),
            branch: Some(args.revision.clone().unwrap_or_else(|| "main".into())),
            path: item.path.clone(),
            files: json(&files),
            root: place.root.display().to_string(),
            layout: layout_name(place.layout).into(),
            trust: json(&trust),
            stage: DownloadStage::Queued,
            detail: None,
            bytes: 0,
            total: item.bytes(),
            fetched: 0,
            created_ms: self.ctx().clock.now_utc_ms(),
        };
        self.store().put_download(&row)?;
        self.begin(&row.id)
    }

    /// What has arrived stays.
    pub fn download_pause(&self, id: &str) -> Result<Download> {
        self.rest(id)?;
        self.services().downloads.stop(id);
        let row = self.rest(id)?;
        self.start_next()?;
        self.services().told(row)
    }

    /// The row says that it is not to go on, to this process and to others. One that is done stays so.
    fn rest(&self, id: &str) -> Result<DownloadRow> {
        let mut row = self.store().download(id)?;
        if row.stage != DownloadStage::Done {
            (row.stage, row.detail) = (DownloadStage::Paused, None);
            self.store().put_download(&row)?;
        }
        Ok(row)
    }

    /// Goes on with one that was paused or failed, from where it was.
    pub fn download_resume(&self, id: &str) -> Result<Download> {
        let mut row = self.store().download(id)?;
        match row.stage {
            DownloadStage::Done => return self.services().download(row),
            DownloadStage::Queued => {}
            DownloadStage::Paused | DownloadStage::Failed => {
                (row.stage, row.detail) = (DownloadStage::Queued, None);
                self.store().put_download(&row)?;
            }
        }
        self.begin(id)
    }

    /// Takes it out of the queue. One that is done leaves its model where it is.
    pub fn download_cancel(&self, id: &str, keep_part: bool) -> Result<()> {
        self.rest(id)?;
        self.services().downloads.stop(id);
        let row = self.store().download(id)?;
        // Another process that fetches it stops when the row is gone.
        self.store().remove_download(id)?;
        self.ctx().events.publish(AppEvent::DownloadRemoved { id: id.into() });
        if !keep_part && row.stage != DownloadStage::Done {
            let repository = repository(&row.repository)?;
            let files: Vec<_> = stored(&row)?.iter().map(StoredFile::remote).collect();
            let io = &*self.ctx().io;
            hub::Download::remove_parts(&place(&row), io, &repository, &row.revision, &files);
        }
        self.start_next()
    }

    /// From now on this process works off the queue, including entries that other or earlier
    /// processes added.
    pub fn downloads_go_on(&self) -> Result<()> {
        let was_on = std::mem::replace(&mut self.services().downloads.lock().takes_all, true);
        self.start_next()?;
        if was_on { Ok(()) } else { self.follow_others() }
    }

    fn begin(&self, id: &str) -> Result<Download> {
        self.services().downloads.lock().mine.insert(id.into());
        self.start_next()?;
        let row = self.store().download(id)?;
        self.services().told(row)
    }

    fn queued(&self, repository: &Repository, path: &str) -> Result<Option<DownloadRow>> {
        let rows = self.store().downloads()?;
        let is_it = |row: &DownloadRow| {
            row.repository == repository.to_string()
                && stored(row).is_ok_and(|files| files.iter().any(|file| file.path == path))
        };
        Ok(rows.into_iter().find(is_it))
    }

    /// Starts what may start.
    fn start_next(&self) -> Result<()> {
        loop {
            let rows = self.store().downloads()?;
            let mut state = self.services().downloads.lock();
            if state.is_closed || state.live.len() >= AT_ONCE {
                return Ok(());
            }
            let may = |row: &&DownloadRow| {
                row.stage == DownloadStage::Queued
                    && !state.live.contains_key(&row.id)
                    && (state.takes_all || state.mine.contains(&row.id))
            };
            let Some(row) = rows.iter().find(may).cloned() else { return Ok(()) };
            let (stop, stopped) = watch::channel(false);
            let meter = Arc::new(DownloadProgress::new(row.total));
            let live = LiveDownload {
                meter: Arc::clone(&meter),
                stop,
                speed: 0.0,
                fetched_before: row.fetched,
                waits_for: None,
            };
            state.live.insert(row.id.clone(), live);
            drop(state);
            let id = row.id.clone();
            if let Err(error) = self.run_download(row, meter, stopped) {
                self.services().downloads.lock().live.remove(&id);
                return Err(error);
            }
        }
    }
}

impl Services {
    /// What another process has made of a row.
    fn tell_of_row(&self, id: &str) {
        let row = self.store().download(id);
        match row {
            // A row that can't be reported now is reported with the next change.
            Ok(row) => _ = self.told(row),
            Err(_) => self.ctx.events.publish(AppEvent::DownloadRemoved { id: id.into() }),
        }
    }

    /// A row as watchers see it.
    fn download(&self, row: DownloadRow) -> Result<Download> {
        let state = self.downloads.lock();
        let live = state.live.get(&row.id);
        let has = live.map(|live| live.meter.have()).filter(|have| *have > 0);
        let bytes = has.unwrap_or(row.bytes);
        let total = live.map_or(row.total, |live| live.meter.total());
        let speed = live.map_or(0.0, |live| live.speed);
        let fetched = live.map_or(row.fetched, |live| live.fetched_before + live.meter.fetched());
        let missing = total.saturating_sub(bytes) as f64;
        let notice =
            live.and_then(|live| live.meter.notice()).or_else(|| state.notices.get(&row.id).cloned());
        let download_state = state_of(&row, live);
        Ok(Download {
            parts: u32::try_from(stored(&row)?.len()).unwrap_or(u32::MAX),
            id: row.id,
            repository: row.repository,
            path: row.path,
            bytes,
            total,
            fetched,
            speed,
            eta_s: (speed > 0.0 && missing > 0.0).then(|| missing / speed),
            state: download_state,
            notice: notice.map(|notice| Error::from(notice).info),
            trust: serde_json::from_str(&row.trust).unwrap_or(Trust::Unknown),
            created_ms: row.created_ms,
        })
    }

    fn told(&self, row: DownloadRow) -> Result<Download> {
        let download = self.download(row)?;
        self.ctx.events.publish(AppEvent::DownloadChanged { download: download.clone() });
        Ok(download)
    }
}

fn state_of(row: &DownloadRow, live: Option<&LiveDownload>) -> DownloadState {
    let error = || row.detail.as_deref().and_then(|detail| serde_json::from_str::<ErrorInfo>(detail).ok());
    if let Some(live) = live {
        if let Some(reason) = &live.waits_for {
            return DownloadState::Paused { reason: Some(reason.clone()) };
        }
        return match live.meter.phase() {
            Phase::Preparing | Phase::Fetching => DownloadState::Downloading,
            Phase::Waiting(error) => DownloadState::WaitingForNetwork { error: Error::from(error).info },
            Phase::Verifying => DownloadState::Verifying { fraction: live.meter.verified() },
        };
    }
    match row.stage {
        DownloadStage::Queued => DownloadState::Queued,
        DownloadStage::Paused => DownloadState::Paused { reason: error() },
        DownloadStage::Failed => {
            let unknown = || Error::bug("a download failed without a recorded cause").info;
            DownloadState::Failed { error: error().unwrap_or_else(unknown) }
        }
        DownloadStage::Done => DownloadState::Done { model: row.detail.clone().unwrap_or_default() },
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON")
}

fn stored(row: &DownloadRow) -> Result<Vec<StoredFile>> {
    serde_json::from_str(&row.files).map_err(|error| Error::bug(format!("the files of a download: {error}")))
}

fn place(row: &DownloadRow) -> ModelDir {
    let layout = if row.layout == layout_name(Layout::HubCache) { Layout::HubCache } else { Layout::Folder };
    ModelDir { root: row.root.clone().into(), layout }
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::HubCache => "hub_cache",
        Layout::Folder => "folder",
    }
}

/// The model that has a file, or that a tag such as `Q4_K_M` means.
fn find_item(items: &[hub::ModelFiles], path: &str) -> Option<usize> {
    let of_file = items.iter().position(|item| item.files.iter().any(|file| file.path == path));
    let paths: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
    of_file.or_else(|| hub::find_file(&paths, path))
}

fn no_such_file(repository: &Repository, path: Option<&str>, items: &[hub::ModelFiles]) -> Error {
    let names: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
    let message = match path {
        Some(path) => format!("{repository} has no model file named or tagged {path}."),
        None => format!("{repository} has no compatible model file."),
    };
    let remedy = match names.as_slice() {
        [] => "Look for a repository with GGUF files. Their names often end in -GGUF.".into(),
        names => format!("Available files: {}.", names.join(", ")),
    };
    Error::input("hub.no_model_file", message, remedy)
}
