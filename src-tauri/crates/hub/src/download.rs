//! Downloads one model: resolves each file, fetches it over several connections, verifies it and moves it into place.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use io::{Clock, FileLock, Io, IoError};
use tokio::sync::watch;

mod fetch;
mod fetch_end;
mod journal;
mod part;
mod repair;
mod verify;

use crate::address::Repository;
use crate::cache_layout::{FilePaths, ModelDir};
use crate::client::Client;
use crate::download::fetch::{DownloadSource, FileFetch};
use crate::download::fetch_end::FetchEnd;
use crate::download::part::{ExpectedChunks, PartFile};
pub use crate::download::repair::remove_chunk_list;
use crate::error::{HubError, human};
use crate::http_error::RequestError;
use crate::progress::DownloadProgress;
use crate::rate_limit::{RateLimiter, back_off};
use crate::resolve::{ResolvedFile, resolve};
use crate::sha::Hash;
use crate::tree::RemoteFile;

/// Free space that a download leaves on the disk; on small disks a twentieth of the capacity instead.
const MAX_HEADROOM_BYTES: u64 = 1 << 30;

/// How many times to check whether another process has released a part before removing it.
const MAX_LOCK_CHECKS: u32 = 40;

/// Interval of checking the progress of another process that downloads the same file.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often, and after which wait, a file that another program has open is moved again: ten seconds in all.
const MAX_PLACE_TRIES: u32 = 40;
const PLACE_WAIT: Duration = Duration::from_millis(250);

/// Connections, speed limit and retry waits of a download.
#[derive(Clone)]
pub struct TransferOptions {
    /// Parallel connections per file.
    pub connections: u32,
    /// Speed limit shared by all downloads.
    pub limiter: Arc<RateLimiter>,
    /// Wait after the first failure; it doubles with each further one.
    pub first_wait: Duration,
    /// Longest wait between attempts.
    pub max_wait: Duration,
    /// Longest wait while the network is unreachable.
    pub max_network_wait: Duration,
}

/// Why a download ended without its model. Bytes that have arrived are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum DownloadEnd {
    /// The caller stopped it.
    Stopped,
    /// The disk is full; it can resume once there is space.
    NoSpace(HubError),
    /// Connections are switched off; it can resume once they are allowed again.
    Offline(HubError),
    /// It failed for good.
    Failed(HubError),
}

impl From<HubError> for DownloadEnd {
    fn from(error: HubError) -> Self {
        match error {
            error if error.is_no_space() => Self::NoSpace(error),
            error if error.is_offline() => Self::Offline(error),
            error => Self::Failed(error),
        }
    }
}

impl From<IoError> for DownloadEnd {
    fn from(error: IoError) -> Self {
        HubError::from(error).into()
    }
}

/// A model to download.
pub struct Download {
    /// Hub to fetch from.
    pub client: Arc<Client>,
    /// File system.
    pub io: Arc<dyn Io>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Repository of the model.
    pub repository: Repository,
    /// Commit, or a branch if the hub names no commit.
    pub revision: String,
    /// Branch whose newest commit `revision` is.
    pub branch: Option<String>,
    /// Files to fetch, in order.
    pub files: Vec<RemoteFile>,
    /// Chunk size and chunk hashes of files in a signed manifest, by path.
    pub expected: HashMap<String, (u64, Vec<Hash>)>,
    /// Whether a file that differs from the list is refused instead of being treated as a new version.
    pub is_signed: bool,
    /// Target folder.
    pub dir: ModelDir,
    /// Folder of the chunk hashes of complete files, by which a damaged one is repaired.
    pub chunk_lists: PathBuf,
    /// Connections, speed limit and waits.
    pub tuning: TransferOptions,
    /// Live progress.
    pub progress: Arc<DownloadProgress>,
    /// Stops the download when it becomes true.
    pub stop: watch::Receiver<bool>,
}

/// A downloaded file in its final location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFile {
    /// Path under which it is used.
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// Hash of the bytes on disk.
    pub sha256: Hash,
    /// Whether it existed already, so that nothing was fetched.
    pub was_there: bool,
}

/// Identifier of a file's content: its hash, or the server's entity tag, or its length.
pub(crate) fn content_key(resolved: &ResolvedFile) -> String {
    let tag = resolved.sha256.map(|hash| hash.to_string()).or_else(|| resolved.tag.clone());
    let plain =
        |tag: String| tag.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64).collect();
    let tag: String = tag.map(plain).unwrap_or_default();
    if tag.is_empty() { format!("length-{}", resolved.bytes) } else { tag }
}

impl Download {
    /// Downloads all files, in order, and returns where they are. Needs a multi-threaded runtime.
    pub async fn run(&self) -> Result<Vec<PlacedFile>, DownloadEnd> {
        let mut placed: Vec<PlacedFile> = Vec::new();
        self.progress.preparing();
        for file in &self.files {
            let before = placed.iter().map(|file| file.bytes).sum();
            placed.push(self.file(file, before).await?);
        }
        if let Some(branch) = &self.branch {
            self.dir.record_branch(&*self.io, &self.repository, branch, &self.revision);
        }
        Ok(placed)
    }

    /// Removes what an interrupted download of these files left behind.
    pub fn remove_parts(
        dir: &ModelDir,
        io: &dyn Io,
        repository: &Repository,
        revision: &str,
        files: &[RemoteFile],
    ) {
        for file in files {
            let Some(hash) = file.sha256 else { continue };
            let Ok(paths) = dir.paths(repository, revision, &file.path, &hash.to_string()) else {
                continue;
            };
            // Another process may still download it; it stops when it sees that the download was removed.
            let mut lock = None;
            for _ in 0..MAX_LOCK_CHECKS {
                match FileLock::try_acquire(&paths.lock) {
                    Ok(None) => std::thread::sleep(POLL_INTERVAL / 5),
                    Ok(taken) => {
                        lock = taken;
                        break;
                    }
                    // The folder does not exist, and so neither does the part.
                    Err(_) => break,
                }
            }
            drop(lock);
            // Best effort: a part that cannot be removed stays visible in its folder.
            let _ = part::remove(io, &paths.leftovers());
        }
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    async fn pause(&self, time: Duration) -> Result<(), DownloadEnd> {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            Ok(_) = stop.wait_for(|stop| *stop) => Err(DownloadEnd::Stopped),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    async fn file(&self, listed: &RemoteFile, before: u64) -> Result<PlacedFile, DownloadEnd> {
        let mut known: Option<(String, FilePaths)> = None;
        loop {
            let resolved = self.resolve_file(listed).await?;
            let key = content_key(&resolved);
            self.check_listed(listed, &resolved, known.as_ref().is_some_and(|(known, _)| *known != key))?;
            let paths = self.dir.paths(&self.repository, &self.revision, &listed.path, &key)?;
            let before_it = known.replace((key.clone(), paths.clone())).filter(|(known, _)| *known != key);
            if let Some((_, old)) = before_it {
                // Best effort: leftovers do no harm.
                let _ = part::remove(&*self.io, &old.leftovers());
            }
            match self.fetch_content(listed, &resolved, key, &paths, before).await {
                Ok(placed) => return Ok(placed),
                Err(FetchEnd::Changed) => self.pause(self.tuning.first_wait / 2).await?,
                Err(FetchEnd::Stopped) => return Err(DownloadEnd::Stopped),
                Err(FetchEnd::Failed(error)) => return Err(error.into()),
                Err(FetchEnd::NoRanges) => {
                    return Err(DownloadEnd::Failed(HubError::bad_response(
                        &self.client.host(),
                        "no ranges",
                    )));
                }
            }
        }
    }

    /// Reports, or refuses if signed, a file that differs from the list.
    fn check_listed(
        &self,
        listed: &RemoteFile,
        now: &ResolvedFile,
        has_changed: bool,
    ) -> Result<(), DownloadEnd> {
        let is_other = listed.bytes != now.bytes
            || matches!((listed.sha256, now.sha256), (Some(listed), Some(now)) if listed != now);
        if is_other && self.is_signed {
            return Err(DownloadEnd::Failed(HubError::new(
                "hub.signed_mismatch",
                format!("{} differs from the file in its signed list.", listed.path),
                "It was rejected. Choose another file, and report this to the publisher.",
            )));
        }
        if is_other || has_changed {
            let others: u64 =
                self.files.iter().filter(|file| file.path != listed.path).map(|file| file.bytes).sum();
            self.progress.set_total(others + now.bytes);
            self.progress.set_notice(HubError::new(
                "download.changed",
                format!("The publisher changed {} during the download, so it was restarted.", listed.path),
                "",
            ));
        }
        Ok(())
    }

    /// Resolves a file, retrying until the hub responds.
    async fn resolve_file(&self, listed: &RemoteFile) -> Result<ResolvedFile, DownloadEnd> {
        let TransferOptions { first_wait, max_wait, max_network_wait, .. } = self.tuning;
        for n_failed in 1.. {
            let mut stop = self.stop.clone();
            let answer = tokio::select! {
                biased;
                Ok(_) = stop.wait_for(|stop| *stop) => return Err(DownloadEnd::Stopped),
                answer = resolve(&self.client, &self.repository, &self.revision, &listed.path) => answer,
            };
            let jitter = self.clock.monotonic().subsec_nanos().into();
            let (error, wait) = match answer {
                Ok(resolved) if listed.sha256.is_none() || resolved.sha256.is_some() => return Ok(resolved),
                // A network with a login page responds to every request with that page.
                Ok(_) => {
                    let error = HubError::bad_response(&self.client.host(), "the file has lost its hash");
                    (error, back_off(n_failed, first_wait, max_wait, jitter))
                }
                Err(RequestError::Permanent(error)) => return Err(error.into()),
                Err(RequestError::Busy(error, Some(wait))) => (error, wait),
                Err(RequestError::Busy(error, None)) => {
                    (error, back_off(n_failed, first_wait, max_wait, jitter))
                }
                Err(RequestError::Network(error)) => {
                    (error, back_off(n_failed, first_wait, max_network_wait, jitter))
                }
            };
            self.progress.preparing();
            let _waits = self.progress.begin_wait(error);
            self.pause(wait).await?;
        }
        Err(DownloadEnd::Stopped)
    }

    /// Gets one content: already present, fetched by another process, or fetched here.
    async fn fetch_content(
        &self,
        listed: &RemoteFile,
        resolved: &ResolvedFile,
        key: String,
        paths: &FilePaths,
        before: u64,
    ) -> Result<PlacedFile, FetchEnd> {
        let folders = [paths.part.parent(), paths.data.parent()];
        folders.into_iter().flatten().try_for_each(|folder| self.io.create_dir_all(folder))?;
        let expected = self.expected.get(&listed.path).cloned();
        let expected = expected.map(|(chunk_bytes, hashes)| ExpectedChunks { chunk_bytes, hashes });
        let header = part::header(resolved.bytes, &key, expected.as_ref());
        let lock = self.lock(paths, &header, before).await?;
        if let Some(placed) = self.existing_file(paths, resolved, before).await? {
            drop(lock);
            part::remove(&*self.io, &paths.leftovers())?;
            return Ok(placed);
        }
        self.check_disk_space(paths, resolved.bytes)?;
        let io = Arc::clone(&self.io);
        let opened = {
            let (paths, lists) = (paths.clone(), self.chunk_lists.clone());
            let hashes = expected.map(|expected| expected.hashes);
            blocking(move || {
                repair::salvage(&*io, &paths, &lists, &header);
                PartFile::open(&*io, &paths, header, hashes)
            })
            .await?
        };
        let task = Arc::new(FileFetch {
            client: Arc::clone(&self.client),
            clock: Arc::clone(&self.clock),
            repository: self.repository.clone(),
            revision: self.revision.clone(),
            path: listed.path.clone(),
            part: opened,
            progress: Arc::clone(&self.progress),
            bytes_before: before,
            tuning: self.tuning.clone(),
            stop: self.stop.clone(),
            source: Mutex::new(DownloadSource { location: Some(resolved.location.clone()), tag: None }),
            best_rate: AtomicU64::new(0),
            n_ignored: AtomicU32::new(0),
            n_refusals: AtomicU32::new(0),
            n_bad_chunks: AtomicU32::new(0),
            n_tag_changes: AtomicU32::new(0),
        });
        self.progress.set_have(before + task.part.have_bytes());
        let sha256 = verify::fetch_and_verify(&task, resolved.sha256.or(listed.sha256)).await?;
        drop(task);
        self.place(paths).await?;
        repair::keep_list(&*self.io, paths, &self.chunk_lists, sha256);
        drop(lock);
        part::remove(&*self.io, &paths.leftovers())?;
        let path = paths.used().to_path_buf();
        Ok(PlacedFile { path, bytes: resolved.bytes, sha256, was_there: false })
    }

    /// Moves the verified part into place. A virus scanner may have it open for a while; the part stays if that lasts.
    async fn place(&self, paths: &FilePaths) -> Result<(), FetchEnd> {
        for _ in 0..MAX_PLACE_TRIES {
            match self.dir.place(&*self.io, paths) {
                Err(error) if error.is_busy() => {
                    tracing::debug!("{error}");
                    self.pause(PLACE_WAIT).await.map_err(|_| FetchEnd::Stopped)?;
                }
                placed => return Ok(placed?),
            }
        }
        Err(FetchEnd::Failed(HubError::new(
            "io.busy",
            format!("{} is complete, but another program has it locked.", paths.part.display()),
            "Close the program that uses the file, such as a virus scanner, then resume the download. Nothing is \
             downloaded again.",
        )))
    }

    /// Waits until no other process fetches the same. Its progress is ours meanwhile.
    async fn lock(
        &self,
        paths: &FilePaths,
        header: &journal::JournalHeader,
        before: u64,
    ) -> Result<FileLock, FetchEnd> {
        loop {
            if let Some(lock) = FileLock::try_acquire(&paths.lock)? {
                return Ok(lock);
            }
            self.progress.fetching(1);
            self.progress.set_have(before + journal::arrived_bytes(&*self.io, &paths.journal, header));
            self.pause(POLL_INTERVAL).await.map_err(|_| FetchEnd::Stopped)?;
        }
    }

    /// A complete file with that content from an earlier download, by any program.
    async fn existing_file(
        &self,
        paths: &FilePaths,
        resolved: &ResolvedFile,
        before: u64,
    ) -> Result<Option<PlacedFile>, FetchEnd> {
        let Some(expected) = resolved.sha256 else { return Ok(None) };
        if !self.io.exists(&paths.data)? || self.io.len(&paths.data)? != resolved.bytes {
            return Ok(None);
        }
        let (io, progress, stop) = (Arc::clone(&self.io), Arc::clone(&self.progress), self.stop.clone());
        let data = paths.data.clone();
        let found = blocking(move || {
            crate::sha::hash_file(&*io, &data, &mut |done, of| {
                progress.verifying(done, of);
                !*stop.borrow()
            })
        });
        match found.await? {
            None => Err(FetchEnd::Stopped),
            Some((hash, bytes)) if hash == expected => {
                self.dir.link(&*self.io, paths).map_err(FetchEnd::Failed)?;
                self.progress.set_have(before + bytes);
                let path = paths.used().to_path_buf();
                Ok(Some(PlacedFile { path, bytes, sha256: hash, was_there: true }))
            }
            // It is damaged and will be replaced.
            Some(_) => Ok(None),
        }
    }

    /// Errors if the disk has too little space for the rest of all files.
    fn check_disk_space(&self, paths: &FilePaths, bytes: u64) -> Result<(), HubError> {
        if self.is_stopped() {
            return Ok(());
        }
        let taken = self.io.len(&paths.part).unwrap_or(0);
        let missing = bytes.saturating_sub(taken);
        if missing == 0 {
            return Ok(());
        }
        let folder = paths.part.parent().unwrap_or(&self.dir.root);
        let space = self.io.disk_space(folder)?;
        let later = self.progress.total().saturating_sub(self.progress.have().max(bytes));
        let needed = missing.saturating_add(later).saturating_add(MAX_HEADROOM_BYTES.min(space.total / 20));
        if space.free >= needed {
            return Ok(());
        }
        Err(HubError::new(
            "download.no_space",
            format!(
                "The disk of {} has {} free, but {} are needed, including a reserve.",
                folder.display(),
                human(space.free),
                human(needed)
            ),
            format!("Free up {}. The download then resumes automatically.", human(needed - space.free)),
        ))
    }
}

/// Runs slow disk work on a blocking thread, so that connections continue.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IoError> + Send + 'static,
) -> Result<T, FetchEnd> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(panic) => Err(FetchEnd::Failed(HubError::new(
            "bug",
            format!("Something went wrong inside Inglenook: {panic}"),
            "Try again.",
        ))),
    }
}
