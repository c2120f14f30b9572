//! One model from the hub to its place: each of its files resolved, fetched over several connections, verified, and
//! put where it belongs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use io::{Clock, FileLock, Io, IoError};
use tokio::sync::watch;

mod fetch;
mod journal;
mod part;
mod verify;

use crate::address::Repository;
use crate::cache_layout::{Paths, Place};
use crate::client::Client;
use crate::download::fetch::{Over, Source, Task};
use crate::download::part::{self, Expected, Part};
use crate::error::{HubError, human};
use crate::http_error::Refused;
use crate::progress::Meter;
use crate::rate_limit::{Limiter, back_off};
use crate::resolve::{Resolved, resolve};
use crate::sha::Hash;
use crate::tree::RemoteFile;

/// Free space that a download leaves, at most; of small disks a twentieth.
const MOST_HEADROOM: u64 = 1 << 30;

/// So often, a fifth of that apart, is looked whether another process has let go of a part.
const MOST_LOOKS: u32 = 40;

/// How often the progress of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How to go about it.
#[derive(Clone)]
pub struct Tuning {
    /// At once, of one file.
    pub connections: u32,
    pub limiter: Arc<Limiter>,
    pub first_wait: Duration,
    pub longest_wait: Duration,
    /// Longest wait while the network is away.
    pub network_wait: Duration,
}

/// Why a download ended without its model. What has arrived stays.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    Stopped,
    /// It can go on once there is room.
    NoSpace(HubError),
    /// It can go on once connections are wanted again.
    Offline(HubError),
    Failed(HubError),
}

impl From<HubError> for Ended {
    fn from(error: HubError) -> Self {
        match error {
            error if error.is_no_space() => Self::NoSpace(error),
            error if error.is_offline() => Self::Offline(error),
            error => Self::Failed(error),
        }
    }
}

impl From<IoError> for Ended {
    fn from(error: IoError) -> Self {
        HubError::from(error).into()
    }
}

/// A model to fetch.
pub struct Download {
    pub client: Arc<Client>,
    pub io: Arc<dyn Io>,
    pub clock: Arc<dyn Clock>,
    pub repository: Repository,
    /// A commit, or where the hub names none, a branch.
    pub revision: String,
    /// The branch whose newest commit that is.
    pub branch: Option<String>,
    pub files: Vec<RemoteFile>,
    /// Of files that a signed list names: hashes of their chunks.
    pub expected: HashMap<String, (u64, Vec<Hash>)>,
    /// Whatever is not as listed is refused, instead of taken for a new version.
    pub is_signed: bool,
    pub place: Place,
    pub tuning: Tuning,
    pub meter: Arc<Meter>,
    pub stop: watch::Receiver<bool>,
}

/// A file in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The path it is used by.
    pub path: PathBuf,
    pub bytes: u64,
    /// As the disk has it.
    pub sha256: Hash,
    /// Nothing had to be fetched.
    pub was_there: bool,
}

/// Names a content: its hash, or what the server calls it.
pub(crate) fn key(resolved: &Resolved) -> String {
    let tag = resolved.sha256.map(|hash| hash.to_string()).or_else(|| resolved.tag.clone());
    let plain =
        |tag: String| tag.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64).collect();
    let tag: String = tag.map(plain).unwrap_or_default();
    if tag.is_empty() { format!("length-{}", resolved.bytes) } else { tag }
}

impl Download {
    /// All files in their places, in order. Needs a runtime of several threads.
    pub async fn run(&self) -> Result<Vec<Placed>, Ended> {
        let mut placed: Vec<Placed> = Vec::new();
        self.meter.preparing();
        for file in &self.files {
            let before = placed.iter().map(|file| file.bytes).sum();
            placed.push(self.file(file, before).await?);
        }
        if let Some(branch) = &self.branch {
            self.place.note_branch(&*self.io, &self.repository, branch, &self.revision);
        }
        Ok(placed)
    }

    /// Removes what an interrupted download of these files left.
    pub fn remove_parts(
        place: &Place,
        io: &dyn Io,
        repository: &Repository,
        revision: &str,
        files: &[RemoteFile],
    ) {
        for file in files {
            let Some(hash) = file.sha256 else { continue };
            let Ok(paths) = place.paths(repository, revision, &file.path, &hash.to_string()) else {
                continue;
            };
            // Another process may still be at it, and stops when it sees that it is no longer wanted.
            let mut lock = None;
            for _ in 0..MOST_LOOKS {
                match FileLock::try_acquire(&paths.lock) {
                    Ok(None) => std::thread::sleep(LOOK_EVERY / 5),
                    Ok(taken) => {
                        lock = taken;
                        break;
                    }
                    // there is no such folder, and so no part
                    Err(_) => break,
                }
            }
            drop(lock);
            // One that can't be removed stays visible in its folder; there is nothing else to do about it.
            let _ = part::remove(io, &paths.leftovers());
        }
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    async fn pause(&self, time: Duration) -> Result<(), Ended> {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            Ok(_) = stop.wait_for(|stop| *stop) => Err(Ended::Stopped),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    async fn file(&self, listed: &RemoteFile, before: u64) -> Result<Placed, Ended> {
        let mut known: Option<(String, Paths)> = None;
        loop {
            let resolved = self.resolved(listed).await?;
            let key = key(&resolved);
            self.compare(listed, &resolved, known.as_ref().is_some_and(|(known, _)| *known != key))?;
            let paths = self.place.paths(&self.repository, &self.revision, &listed.path, &key)?;
            let before_it = known.replace((key.clone(), paths.clone())).filter(|(known, _)| *known != key);
            if let Some((_, old)) = before_it {
                // what stays behind is in nobody's way
                let _ = part::remove(&*self.io, &old.leftovers());
            }
            match self.content(listed, &resolved, key, &paths, before).await {
                Ok(placed) => return Ok(placed),
                Err(Over::Changed) => self.pause(self.tuning.first_wait / 2).await?,
                Err(Over::Stopped) => return Err(Ended::Stopped),
                Err(Over::Failed(error)) => return Err(error.into()),
                Err(Over::NoRanges) => {
                    return Err(Ended::Failed(HubError::answer(&self.client.host(), "no ranges")));
                }
            }
        }
    }

    /// Tells of, or refuses, a file that is not the one that was listed.
    fn compare(&self, listed: &RemoteFile, now: &Resolved, has_changed: bool) -> Result<(), Ended> {
        let is_other = listed.bytes != now.bytes
            || matches!((listed.sha256, now.sha256), (Some(listed), Some(now)) if listed != now);
        if is_other && self.is_signed {
            return Err(Ended::Failed(HubError::new(
                "hub.signed_mismatch",
                format!("{} is not the file that its signed list names.", listed.path),
                "It is refused. Tell the publisher; another file of theirs may be right.",
            )));
        }
        if is_other || has_changed {
            let others: u64 =
                self.files.iter().filter(|file| file.path != listed.path).map(|file| file.bytes).sum();
            self.meter.set_total(others + now.bytes);
            self.meter.tell(HubError::new(
                "download.changed",
                format!("The publisher changed {} meanwhile, so it began anew.", listed.path),
                "",
            ));
        }
        Ok(())
    }

    /// Asks until there is an answer.
    async fn resolved(&self, listed: &RemoteFile) -> Result<Resolved, Ended> {
        let Tuning { first_wait, longest_wait, network_wait, .. } = self.tuning;
        for n_failed in 1.. {
            let mut stop = self.stop.clone();
            let answer = tokio::select! {
                biased;
                Ok(_) = stop.wait_for(|stop| *stop) => return Err(Ended::Stopped),
                answer = resolve(&self.client, &self.repository, &self.revision, &listed.path) => answer,
            };
            let jitter = self.clock.monotonic().subsec_nanos().into();
            let (error, wait) = match answer {
                Ok(resolved) if listed.sha256.is_none() || resolved.sha256.is_some() => return Ok(resolved),
                // A network that wants a login first answers everything with a page of its own.
                Ok(_) => {
                    let error = HubError::answer(&self.client.host(), "the file has lost its hash");
                    (error, back_off(n_failed, first_wait, longest_wait, jitter))
                }
                Err(Refused::For(error)) => return Err(error.into()),
                Err(Refused::Busy(error, Some(wait))) => (error, wait),
                Err(Refused::Busy(error, None)) => {
                    (error, back_off(n_failed, first_wait, longest_wait, jitter))
                }
                Err(Refused::Network(error)) => (error, back_off(n_failed, first_wait, network_wait, jitter)),
            };
            self.meter.preparing();
            let _waits = self.meter.waits(error);
            self.pause(wait).await?;
        }
        Err(Ended::Stopped)
    }

    /// One content: already there, fetched by another process, or fetched here.
    async fn content(
        &self,
        listed: &RemoteFile,
        resolved: &Resolved,
        key: String,
        paths: &Paths,
        before: u64,
    ) -> Result<Placed, Over> {
        let folders = [paths.part.parent(), paths.data.parent()];
        folders.into_iter().flatten().try_for_each(|folder| self.io.create_dir_all(folder))?;
        let expected = self.expected.get(&listed.path).cloned();
        let expected = expected.map(|(chunk_bytes, hashes)| Expected { chunk_bytes, hashes });
        let header = part::header(resolved.bytes, &key, expected.as_ref());
        let lock = self.lock(paths, &header, before).await?;
        if let Some(placed) = self.there_already(paths, resolved, before).await? {
            drop(lock);
            part::remove(&*self.io, &paths.leftovers())?;
            return Ok(placed);
        }
        self.make_room(paths, resolved.bytes)?;
        let io = Arc::clone(&self.io);
        let opened = {
            let paths = paths.clone();
            let hashes = expected.map(|expected| expected.hashes);
            blocking(move || Part::open(&*io, &paths, header, hashes)).await?
        };
        let task = Arc::new(Task {
            client: Arc::clone(&self.client),
            clock: Arc::clone(&self.clock),
            repository: self.repository.clone(),
            revision: self.revision.clone(),
            path: listed.path.clone(),
            part: opened,
            meter: Arc::clone(&self.meter),
            bytes_before: before,
            tuning: self.tuning.clone(),
            stop: self.stop.clone(),
            source: Mutex::new(Source { location: Some(resolved.location.clone()), tag: None }),
            best_rate: AtomicU64::new(0),
            n_ignored: AtomicU32::new(0),
            n_refused: AtomicU32::new(0),
            n_bad: AtomicU32::new(0),
            n_renamed: AtomicU32::new(0),
        });
        self.meter.set_have(before + task.part.have_bytes());
        let sha256 = verify::fetch_and_verify(&task, resolved.sha256.or(listed.sha256)).await?;
        drop(task);
        self.place.put(&*self.io, paths)?;
        drop(lock);
        part::remove(&*self.io, &paths.leftovers())?;
        let path = paths.used().to_path_buf();
        Ok(Placed { path, bytes: resolved.bytes, sha256, was_there: false })
    }

    /// Waits until no other process fetches the same. Its progress is ours meanwhile.
    async fn lock(&self, paths: &Paths, header: &journal::Header, before: u64) -> Result<FileLock, Over> {
        loop {
            if let Some(lock) = FileLock::try_acquire(&paths.lock)? {
                return Ok(lock);
            }
            self.meter.fetching(1);
            self.meter.set_have(before + journal::peek(&*self.io, &paths.journal, header));
            self.pause(LOOK_EVERY).await.map_err(|_| Over::Stopped)?;
        }
    }

    /// A whole file of that content from before, whoever fetched it.
    async fn there_already(
        &self,
        paths: &Paths,
        resolved: &Resolved,
        before: u64,
    ) -> Result<Option<Placed>, Over> {
        let Some(expected) = resolved.sha256 else { return Ok(None) };
        if !self.io.exists(&paths.data)? || self.io.len(&paths.data)? != resolved.bytes {
            return Ok(None);
        }
        let (io, meter, stop) = (Arc::clone(&self.io), Arc::clone(&self.meter), self.stop.clone());
        let data = paths.data.clone();
        let found = blocking(move || {
            crate::sha::hash_file(&*io, &data, &mut |done, of| {
                meter.verifying(done, of);
                !*stop.borrow()
            })
        });
        match found.await? {
            None => Err(Over::Stopped),
            Some((hash, bytes)) if hash == expected => {
                self.place.link(&*self.io, paths).map_err(Over::Failed)?;
                self.meter.set_have(before + bytes);
                let path = paths.used().to_path_buf();
                Ok(Some(Placed { path, bytes, sha256: hash, was_there: true }))
            }
            // It is damaged: a right one takes its place.
            Some(_) => Ok(None),
        }
    }

    /// Errors: the disk has not the room for what is still to come of all files.
    fn make_room(&self, paths: &Paths, bytes: u64) -> Result<(), HubError> {
        if self.is_stopped() {
            return Ok(());
        }
        let taken = self.io.len(&paths.part).unwrap_or(0);
        let missing = bytes.saturating_sub(taken);
        if missing == 0 {
            return Ok(());
        }
        let folder = paths.part.parent().unwrap_or(&self.place.root);
        let space = self.io.disk_space(folder)?;
        let later = self.meter.total().saturating_sub(self.meter.have().max(bytes));
        let needed = missing.saturating_add(later).saturating_add(MOST_HEADROOM.min(space.total / 20));
        if space.free >= needed {
            return Ok(());
        }
        Err(HubError::new(
            "download.no_space",
            format!(
                "The disk of {} has {} free; this needs {}, with some room to spare.",
                folder.display(),
                human(space.free),
                human(needed)
            ),
            format!("Free {} there, and it goes on by itself.", human(needed - space.free)),
        ))
    }
}

impl From<HubError> for Over {
    fn from(error: HubError) -> Self {
        Self::Failed(error)
    }
}

/// Work on the disk that may take long, beside the connections.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IoError> + Send + 'static,
) -> Result<T, Over> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(panic) => Err(Over::Failed(HubError::new(
            "bug",
            format!("Something went wrong inside Inglenook: {panic}"),
            "Try again.",
        ))),
    }
}
