//! One connection of a download: takes runs of missing chunks and fetches them, with retries.
//!
//! A partially received chunk is kept when a connection breaks, so that no byte is requested twice.

mod response;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use io::Clock;
use reqwest::header::{HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Method, Url};
use tokio::sync::watch;

use crate::address::Repository;
use crate::client::Client;
use crate::download::TransferOptions;
use crate::download::fetch_end::FetchEnd;
use crate::download::part::PartFile;
use crate::error::{HubError, human};
use crate::gate::Purpose;
use crate::http_error::{RequestError, stalled_error};
use crate::progress::DownloadProgress;
use crate::rate_limit::back_off;
use crate::resolve::{ResolvedFile, resolve};
use crate::url::host;

/// Maximum bytes per request.
const RUN_BYTES: u64 = 16 << 20;

/// After this many chunks in a row with a wrong hash, treat the source as damaged.
const MAX_BAD_CHUNKS: u32 = 8;

/// After this many attempts in a row in which the server sent nothing at all, the download fails. Lost connections do
/// not count: there may be no network for days.
const MAX_SILENT_TRIES: u32 = 5;

/// The same for answers that are not what was asked for. More than the refusals of the store after which the hub is
/// asked why.
const MAX_WRONG_ANSWERS: u32 = 6;

/// Reconnect when a connection is this many times slower than the fastest one.
const SLOW_FACTOR: u64 = 20;

/// Below this rate over the stall timeout a connection counts as stalled.
const MIN_RATE_BYTES_PER_S: u64 = 2 << 10;

/// Speed checks per stall timeout.
const SPEED_CHECKS: u32 = 4;

/// Why one request ended early.
enum RequestFailure {
    /// Ends all connections of the file.
    Fatal(FetchEnd),
    /// The server refused, or could not be reached.
    Request(RequestError),
    /// The response broke off, was slow, or was not what was requested.
    Broken(HubError),
}

impl From<io::IoError> for RequestFailure {
    fn from(error: io::IoError) -> Self {
        Self::Fatal(error.into())
    }
}

/// Which chunks a run requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkSet {
    /// Chunks that have not arrived.
    Missing,
    /// All chunks; one that differs from the stored one replaces it.
    Suspect,
}

/// A file that is being fetched.
pub(crate) struct FileFetch {
    pub client: Arc<Client>,
    pub clock: Arc<dyn Clock>,
    pub repository: Repository,
    pub revision: String,
    pub path: String,
    pub part: PartFile,
    pub progress: Arc<DownloadProgress>,
    /// Bytes of the files before this one.
    pub bytes_before: u64,
    pub tuning: TransferOptions,
    pub stop: watch::Receiver<bool>,
    pub source: Mutex<DownloadSource>,
    pub best_rate: AtomicU64,
    pub n_ignored: AtomicU32,
    pub n_refusals: AtomicU32,
    pub n_bad_chunks: AtomicU32,
    pub n_tag_changes: AtomicU32,
}

/// Where the bytes currently come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct DownloadSource {
    /// URL of the store; None until resolved.
    pub location: Option<Url>,
    /// Entity tag reported by the store.
    pub tag: Option<String>,
}

/// Position in a run.
struct RunCursor {
    /// The chunk that is being filled.
    chunk: u64,
    end: u64,
    buffer: Vec<u8>,
    take: ChunkSet,
    /// Number of chunks that differed from the stored ones.
    n_changed: u64,
}

impl FileFetch {
    fn source(&self) -> MutexGuard<'_, DownloadSource> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Returns when the download is to stop; never otherwise.
    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|stop| *stop).await.is_err() {
            // The sender is gone, so nothing can stop it any more.
            std::future::pending::<()>().await;
        }
    }

    /// Takes runs until no chunk is missing.
    pub async fn connection(self: Arc<Self>) -> Result<(), FetchEnd> {
        let chunk_bytes = self.part.header().chunk_bytes;
        while let Some(run) = self.part.take_run((RUN_BYTES / chunk_bytes).max(1)) {
            let ended = self.run(run.clone(), ChunkSet::Missing).await;
            self.part.give_back(run);
            ended?;
        }
        self.progress.connection_ended();
        Ok(())
    }

    /// Fetches the chunks of a run. Returns how many suspect chunks differed.
    pub async fn run(self: &Arc<Self>, run: Range<u64>, take: ChunkSet) -> Result<u64, FetchEnd> {
        let mut cursor = RunCursor { chunk: run.start, end: run.end, buffer: Vec::new(), take, n_changed: 0 };
        let mut n_failed = 0;
        while cursor.chunk < cursor.end {
            let before = self.offset(&cursor);
            let failure = tokio::select! {
                biased;
                () = self.stopped() => return Err(FetchEnd::Stopped),
                ended = self.stream(&mut cursor, false) => ended.err(),
            };
            let Some(failure) = failure else { continue };
            let has_moved = self.offset(&cursor) > before;
            n_failed = if has_moved { 1 } else { n_failed + 1 };
            self.recover(failure, n_failed, has_moved).await?;
        }
        Ok(cursor.n_changed)
    }

    /// Fetches the whole file from a server without range support: each attempt begins at the start.
    pub async fn run_without_ranges(self: &Arc<Self>) -> Result<(), FetchEnd> {
        let mut n_failed = 0;
        while let Some(first) = self.part.first_missing(0) {
            let end = self.part.header().n_chunks();
            let mut cursor =
                RunCursor { chunk: 0, end, buffer: Vec::new(), take: ChunkSet::Missing, n_changed: 0 };
            let failure = tokio::select! {
                biased;
                () = self.stopped() => return Err(FetchEnd::Stopped),
                ended = self.stream(&mut cursor, true) => ended.err(),
            };
            let Some(failure) = failure else { continue };
            let has_moved = self.part.first_missing(0) != Some(first);
            n_failed = if has_moved { 1 } else { n_failed + 1 };
            self.recover(failure, n_failed, false).await?;
        }
        Ok(())
    }

    /// Waits as long as the failure wants; errors are those that end everything.
    async fn recover(&self, failure: RequestFailure, n_failed: u32, has_moved: bool) -> Result<(), FetchEnd> {
        let TransferOptions { first_wait, max_wait, max_network_wait, .. } = self.tuning;
        let jitter = self.clock.monotonic().subsec_nanos().into();
        let (error, wait) = match failure {
            RequestFailure::Fatal(end) => return Err(end),
            RequestFailure::Request(RequestError::Permanent(error)) => return Err(FetchEnd::Failed(error)),
            RequestFailure::Request(RequestError::Busy(error, Some(wait))) => (error, wait),
            RequestFailure::Request(RequestError::Busy(error, None)) => {
                (error, back_off(n_failed, first_wait, max_wait, jitter))
            }
            // A failed attempt costs little without a network, so retries stay frequent.
            RequestFailure::Request(RequestError::Network(error)) => {
                (error, back_off(n_failed, first_wait, max_network_wait, jitter))
            }
            RequestFailure::Broken(_) if has_moved => return Ok(()),
            RequestFailure::Broken(error) if n_failed >= max_tries(&error) => {
                return Err(FetchEnd::Failed(self.given_up(&error, n_failed)));
            }
            RequestFailure::Broken(error) => (error, back_off(n_failed, first_wait, max_wait, jitter)),
        };
        tracing::debug!(path = self.path, code = error.code(), n_failed, "{error}");
        let _waits = self.progress.begin_wait(error);
        tokio::select! {
            biased;
            () = self.stopped() => Err(FetchEnd::Stopped),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    /// The error of a download that makes no progress, with how fast it was before.
    fn given_up(&self, error: &HubError, n_failed: u32) -> HubError {
        let before = match self.best_rate.load(Relaxed) {
            0 => "no data has arrived since it was started".to_owned(),
            rate => format!("the speed before was up to {} per second", human(rate)),
        };
        let arrived = human(self.progress.have());
        HubError::new(
            error.code(),
            format!("{error} That happened {n_failed} times in a row; {before}. {arrived} have arrived."),
            "Try again later; what has arrived is kept. If it persists, the server or the network has a fault.",
        )
    }

    /// Offset of the cursor in the file.
    fn offset(&self, cursor: &RunCursor) -> u64 {
        cursor.chunk * self.part.header().chunk_bytes + cursor.buffer.len() as u64
    }

    /// URL of the store, resolved if unknown.
    async fn location(&self) -> Result<Url, RequestFailure> {
        if let Some(location) = self.source().location.clone() {
            return Ok(location);
        }
        let resolved = resolve(&self.client, &self.repository, &self.revision, &self.path).await;
        let resolved = resolved.map_err(RequestFailure::Request)?;
        if !self.is_same(&resolved) {
            return Err(RequestFailure::Fatal(FetchEnd::Changed));
        }
        self.source().location = Some(resolved.location.clone());
        Ok(resolved.location)
    }

    /// Whether the hub still serves the content that this download began with.
    fn is_same(&self, resolved: &ResolvedFile) -> bool {
        let header = self.part.header();
        resolved.bytes == header.bytes && crate::download::content_key(resolved) == header.key
    }

    /// Sends one request, from the cursor to the end of the run.
    async fn stream(&self, cursor: &mut RunCursor, wants_whole: bool) -> Result<(), RequestFailure> {
        let location = self.location().await?;
        let header = self.part.header();
        let (from, end) = (self.offset(cursor), (cursor.end * header.chunk_bytes).min(header.bytes));
        let mut headers = HeaderMap::new();
        if !wants_whole {
            headers.insert(RANGE, value(&format!("bytes={from}-{}", end - 1))?);
            let tag = self.source().tag.clone().filter(|tag| tag.starts_with('"'));
            if let Some(tag) = tag {
                headers.insert(IF_RANGE, value(&tag)?);
            }
        }
        let response = self.client.send(Method::GET, &location, headers, Purpose::Fetch).await;
        let mut response =
            response.map_err(|error| RequestFailure::Request(RequestError::from_unanswered(error)))?;
        self.check_head(&location, &response, from, end, wants_whole)?;
        self.n_refusals.store(0, Relaxed);
        let mut speed = SpeedSample { since: self.clock.monotonic(), bytes: 0, n_slow: 0 };
        while cursor.chunk < cursor.end {
            let bytes = match tokio::time::timeout(self.client.stall, response.chunk()).await {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => return Err(RequestFailure::Broken(broke(&location))),
                Ok(Err(_)) => return Err(RequestFailure::Broken(broke(&location))),
                Err(_) => return Err(RequestFailure::Broken(stalled_error(&location, self.client.stall))),
            };
            self.progress.add_fetched(bytes.len() as u64);
            self.feed(cursor, &bytes).await?;
            self.check_speed(&mut speed, bytes.len(), &location)?;
            let wait = self.tuning.limiter.wait_for(bytes.len());
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        Ok(())
    }

    /// Adds received bytes and stores complete chunks.
    async fn feed(&self, cursor: &mut RunCursor, mut bytes: &[u8]) -> Result<(), RequestFailure> {
        while !bytes.is_empty() && cursor.chunk < cursor.end {
            let len = usize::try_from(self.part.header().len_of(cursor.chunk)).unwrap_or(usize::MAX);
            let n = bytes.len().min(len - cursor.buffer.len());
            cursor.buffer.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if cursor.buffer.len() < len {
                break;
            }
            let is_fine = self.store_chunk(cursor)?;
            cursor.buffer.clear();
            if !is_fine {
                if self.n_bad_chunks.fetch_add(1, Relaxed) + 1 >= MAX_BAD_CHUNKS {
                    return Err(RequestFailure::Fatal(FetchEnd::Failed(damaged(&self.path))));
                }
                let error = HubError::new(
                    "download.bad_chunk",
                    "A part of the file arrived damaged.",
                    "It is downloaded again.",
                );
                return Err(RequestFailure::Broken(error));
            }
            self.n_bad_chunks.store(0, Relaxed);
            self.n_ignored.store(0, Relaxed);
            self.n_tag_changes.store(0, Relaxed);
            cursor.chunk += 1;
            self.progress.set_have(self.bytes_before + self.part.have_bytes());
            if self.part.wants_sync() {
                // Syncing may be slow; other connections continue meanwhile.
                tokio::task::block_in_place(|| self.part.sync())?;
            }
        }
        Ok(())
    }

    /// Stores the cursor's chunk if needed. False if its hash is not the published one.
    fn store_chunk(&self, cursor: &mut RunCursor) -> Result<bool, io::IoError> {
        let known = self.part.hash_of(cursor.chunk);
        match (cursor.take, known) {
            (ChunkSet::Missing, Some(_)) => Ok(true),
            (ChunkSet::Missing, None) | (ChunkSet::Suspect, None) => {
                self.part.store(cursor.chunk, &cursor.buffer)
            }
            (ChunkSet::Suspect, Some(hash)) if hash == crate::sha::Hash::of(&cursor.buffer) => Ok(true),
            (ChunkSet::Suspect, Some(_)) => {
                cursor.n_changed += 1;
                self.part.store(cursor.chunk, &cursor.buffer)
            }
        }
    }

    /// Errors if the connection is much slower than others, or stalled.
    fn check_speed(
        &self,
        speed: &mut SpeedSample,
        n_bytes: usize,
        location: &Url,
    ) -> Result<(), RequestFailure> {
        speed.bytes += n_bytes as u64;
        let now = self.clock.monotonic();
        let passed = now.saturating_sub(speed.since);
        if passed < self.client.stall / SPEED_CHECKS {
            return Ok(());
        }
        let rate = (speed.bytes as f64 / passed.as_secs_f64().max(1e-3)) as u64;
        let n_slow = if rate < MIN_RATE_BYTES_PER_S { speed.n_slow + 1 } else { 0 };
        *speed = SpeedSample { since: now, bytes: 0, n_slow };
        let best = self.best_rate.load(Relaxed);
        // The best rate decays, since conditions change.
        self.best_rate.store(rate.max(best - best / 8), Relaxed);
        if rate < best / SLOW_FACTOR || n_slow >= SPEED_CHECKS {
            let error = HubError::new(
                "hub.slow",
                format!("{} is sending almost no data over this connection.", host(location)),
                "A new connection is opened.",
            );
            return Err(RequestFailure::Broken(error));
        }
        Ok(())
    }
}

/// Bytes received since the last speed check.
struct SpeedSample {
    since: Duration,
    bytes: u64,
    /// Consecutive checks below the minimum rate.
    n_slow: u32,
}

fn value(text: &str) -> Result<HeaderValue, RequestFailure> {
    let wrong = |_| RequestFailure::Broken(HubError::bad_response("the hub", "its names can't be sent back"));
    HeaderValue::from_str(text).map_err(wrong)
}

/// How many attempts in a row may fail with this error.
fn max_tries(error: &HubError) -> u32 {
    match error.code() {
        "hub.silent" | "hub.slow" => MAX_SILENT_TRIES,
        "hub.answer" => MAX_WRONG_ANSWERS,
        _ => u32::MAX,
    }
}

fn broke(location: &Url) -> HubError {
    HubError::new(
        "hub.cut",
        format!("The connection to {} was lost.", host(location)),
        "The download resumes automatically.",
    )
}

pub(crate) fn damaged(path: &str) -> HubError {
    HubError::new(
        "download.damaged",
        format!(
            "The data of {path} does not match the publisher's hash: the source is damaged or was changed."
        ),
        "Try again later, or choose another file. Nothing was added to the library.",
    )
}
