//! One connection: takes runs of missing chunks and brings them, whatever the server does meanwhile.
//!
//! What has come of a chunk is kept over broken connections, so that nothing is asked for twice while this runs.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use io::Clock;
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use reqwest::{Method, Response, Url};
use tokio::sync::watch;

use crate::address::Repository;
use crate::client::{Client, host, silent};
use crate::download::Tuning;
use crate::download::part::Part;
use crate::error::HubError;
use crate::gate::Purpose;
use crate::http_error::{Refused, refused};
use crate::progress::Meter;
use crate::rate_limit::back_off;
use crate::resolve::{Resolved, redirected, resolve};

/// One request asks for at most so much.
const RUN_BYTES: u64 = 16 << 20;

/// So many answers that ignore ranges, and we believe that the server knows none.
const MOST_IGNORED: u32 = 3;

/// So many other names in a row for what the hub says is the same, and names no longer count: several stores may serve
/// one content, each with a name of its own.
const MOST_RENAMED: u32 = 3;

/// So many refusals of the store in a row, each after a new address, are final.
const MOST_REFUSED: u32 = 5;

/// So many chunks in a row that are not the published ones: the source is damaged.
const MOST_BAD: u32 = 8;

/// A connection that is so much slower than the best one is given up for a new one.
const TOO_SLOW: u64 = 20;

/// So few bytes per second over the whole time of patience are none.
const LEAST_RATE: u64 = 2 << 10;

/// Looks at the speed within the time of patience.
const LOOKS: u32 = 4;

/// Ends all connections of a file.
#[derive(Debug)]
pub(crate) enum Over {
    Stopped,
    /// The server's file is another one than the one that was begun.
    Changed,
    /// The server sends whole files only.
    NoRanges,
    Failed(HubError),
}

impl From<io::IoError> for Over {
    fn from(error: io::IoError) -> Self {
        Self::Failed(error.into())
    }
}

/// Ends one request.
enum Trouble {
    /// Of all connections.
    Over(Over),
    Refused(Refused),
    /// The answer broke off, was slow or was not what was asked for.
    Broken(HubError),
}

impl From<io::IoError> for Trouble {
    fn from(error: io::IoError) -> Self {
        Self::Over(error.into())
    }
}

/// What to do with the chunks that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Those that have not arrived.
    Missing,
    /// All: one that differs from what arrived takes its place.
    Doubted,
}

/// A file that is being fetched.
pub(crate) struct Task {
    pub client: Arc<Client>,
    pub clock: Arc<dyn Clock>,
    pub repository: Repository,
    pub revision: String,
    pub path: String,
    pub part: Part,
    pub meter: Arc<Meter>,
    /// Of the files before this one.
    pub bytes_before: u64,
    pub tuning: Tuning,
    pub stop: watch::Receiver<bool>,
    pub source: Mutex<Source>,
    pub best_rate: AtomicU64,
    pub n_ignored: AtomicU32,
    pub n_refused: AtomicU32,
    pub n_bad: AtomicU32,
    pub n_renamed: AtomicU32,
}

/// Where the bytes come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    /// None: to be asked for.
    pub location: Option<Url>,
    /// The entity tag that the location gives.
    pub tag: Option<String>,
}

/// A place in a run.
struct Cursor {
    /// The chunk that is being filled.
    chunk: u64,
    end: u64,
    buffer: Vec<u8>,
    take: Take,
    /// How many chunks were different.
    n_changed: u64,
}

impl Task {
    fn source(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Returns when the download is to stop; never otherwise.
    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        if stop.wait_for(|stop| *stop).await.is_err() {
            // Whoever could have stopped it is gone.
            std::future::pending::<()>().await;
        }
    }

    /// Takes runs until none is left.
    pub async fn connection(self: Arc<Self>) -> Result<(), Over> {
        let chunk_bytes = self.part.header().chunk_bytes;
        while let Some(run) = self.part.take_run((RUN_BYTES / chunk_bytes).max(1)) {
            let ended = self.run(run.clone(), Take::Missing).await;
            self.part.give_back(run);
            ended?;
        }
        self.meter.one_ended();
        Ok(())
    }

    /// Brings the chunks of a run; how many of them were different, where they are doubted.
    pub async fn run(self: &Arc<Self>, run: Range<u64>, take: Take) -> Result<u64, Over> {
        let mut cursor = Cursor { chunk: run.start, end: run.end, buffer: Vec::new(), take, n_changed: 0 };
        let mut n_failed = 0;
        while cursor.chunk < cursor.end {
            let before = self.place(&cursor);
            let trouble = tokio::select! {
                biased;
                () = self.stopped() => return Err(Over::Stopped),
                ended = self.stream(&mut cursor, false) => ended.err(),
            };
            let Some(trouble) = trouble else { continue };
            let has_moved = self.place(&cursor) > before;
            n_failed = if has_moved { 1 } else { n_failed + 1 };
            self.recover(trouble, n_failed, has_moved).await?;
        }
        Ok(cursor.n_changed)
    }

    /// As a run of the whole file, from a server that knows no ranges: each attempt begins at the start.
    pub async fn whole(self: &Arc<Self>) -> Result<(), Over> {
        let mut n_failed = 0;
        while let Some(first) = self.part.first_missing(0) {
            let end = self.part.header().n_chunks();
            let mut cursor = Cursor { chunk: 0, end, buffer: Vec::new(), take: Take::Missing, n_changed: 0 };
            let trouble = tokio::select! {
                biased;
                () = self.stopped() => return Err(Over::Stopped),
                ended = self.stream(&mut cursor, true) => ended.err(),
            };
            let Some(trouble) = trouble else { continue };
            let has_moved = self.part.first_missing(0) != Some(first);
            n_failed = if has_moved { 1 } else { n_failed + 1 };
            self.recover(trouble, n_failed, false).await?;
        }
        Ok(())
    }

    /// Waits as long as the trouble wants; errors are those that end everything.
    async fn recover(&self, trouble: Trouble, n_failed: u32, has_moved: bool) -> Result<(), Over> {
        let Tuning { first_wait, longest_wait, network_wait, .. } = self.tuning;
        let jitter = self.clock.monotonic().subsec_nanos().into();
        let (error, wait) = match trouble {
            Trouble::Over(over) => return Err(over),
            Trouble::Refused(Refused::For(error)) => return Err(Over::Failed(error)),
            Trouble::Refused(Refused::Busy(error, Some(wait))) => (error, wait),
            Trouble::Refused(Refused::Busy(error, None)) => {
                (error, back_off(n_failed, first_wait, longest_wait, jitter))
            }
            // Asking costs next to nothing there: it goes on soon after the network is back.
            Trouble::Refused(Refused::Network(error)) => {
                (error, back_off(n_failed, first_wait, network_wait, jitter))
            }
            Trouble::Broken(_) if has_moved => return Ok(()),
            Trouble::Broken(error) => (error, back_off(n_failed, first_wait, longest_wait, jitter)),
        };
        tracing::debug!(path = self.path, code = error.code(), n_failed, "{error}");
        let _waits = self.meter.waits(error);
        tokio::select! {
            biased;
            () = self.stopped() => Err(Over::Stopped),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    /// Bytes from the start of the file.
    fn place(&self, cursor: &Cursor) -> u64 {
        cursor.chunk * self.part.header().chunk_bytes + cursor.buffer.len() as u64
    }

    /// The address to ask, found anew where it is not known.
    async fn location(&self) -> Result<Url, Trouble> {
        if let Some(location) = self.source().location.clone() {
            return Ok(location);
        }
        let resolved = resolve(&self.client, &self.repository, &self.revision, &self.path).await;
        let resolved = resolved.map_err(Trouble::Refused)?;
        if !self.is_same(&resolved) {
            return Err(Trouble::Over(Over::Changed));
        }
        self.source().location = Some(resolved.location.clone());
        Ok(resolved.location)
    }

    /// Whether the hub still has what was begun.
    fn is_same(&self, resolved: &Resolved) -> bool {
        let header = self.part.header();
        resolved.bytes == header.bytes && crate::download::key(resolved) == header.key
    }

    /// One request, from the cursor's place to its end.
    async fn stream(&self, cursor: &mut Cursor, wants_whole: bool) -> Result<(), Trouble> {
        let location = self.location().await?;
        let header = self.part.header();
        let (from, end) = (self.place(cursor), (cursor.end * header.chunk_bytes).min(header.bytes));
        let mut headers = HeaderMap::new();
        if !wants_whole {
            headers.insert(RANGE, value(&format!("bytes={from}-{}", end - 1))?);
            let tag = self.source().tag.clone().filter(|tag| tag.starts_with('"'));
            if let Some(tag) = tag {
                headers.insert(IF_RANGE, value(&tag)?);
            }
        }
        let response = self.client.send(Method::GET, &location, headers, Purpose::Fetch).await;
        let mut response = response.map_err(|error| Trouble::Refused(Refused::unanswered(error)))?;
        self.check_head(&location, &response, from, end, wants_whole)?;
        self.n_refused.store(0, Relaxed);
        let mut speed = Speed { since: self.clock.monotonic(), bytes: 0, n_slow: 0 };
        while cursor.chunk < cursor.end {
            let bytes = match tokio::time::timeout(self.client.stall, response.chunk()).await {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => return Err(Trouble::Broken(broke(&location))),
                Ok(Err(_)) => return Err(Trouble::Broken(broke(&location))),
                Err(_) => return Err(Trouble::Broken(silent(&location, self.client.stall))),
            };
            self.meter.add_fetched(bytes.len() as u64);
            self.feed(cursor, &bytes).await?;
            self.check_speed(&mut speed, bytes.len(), &location)?;
            let wait = self.tuning.limiter.wait_for(bytes.len());
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        Ok(())
    }

    /// Whether the answer is what was asked for.
    fn check_head(
        &self,
        location: &Url,
        response: &Response,
        from: u64,
        end: u64,
        wants_whole: bool,
    ) -> Result<(), Trouble> {
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let broken = |cause: &str| Trouble::Broken(HubError::answer(&host(location), cause));
        match response.status().as_u16() {
            200 | 206 => {}
            301..=303 | 307 | 308 => {
                let next = redirected(&self.client, location, headers);
                let next = next.map_err(|error| Trouble::Refused(Refused::For(error)))?;
                self.source().location = Some(next);
                return Err(broken("it has moved"));
            }
            416 => {
                let total =
                    text(CONTENT_RANGE).and_then(|range| range.rsplit('/').next()?.parse::<u64>().ok());
                let is_other = total.is_some_and(|total| total != self.part.header().bytes);
                return Err(if is_other {
                    Trouble::Over(Over::Changed)
                } else {
                    broken("it has no such range")
                });
            }
            401 | 403 | 404 | 410 if self.n_refused.fetch_add(1, Relaxed) < MOST_REFUSED => {
                // A signed address holds for a while only. The hub says whether it is more than that.
                self.source().location = None;
                return Err(broken("its address of the file is no longer valid"));
            }
            _ => return Err(Trouble::Refused(refused(&self.client, Some(&self.repository), response))),
        }
        if text(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(broken("it compressed the file"));
        }
        self.check_tag(text(ETAG))?;
        if response.status().as_u16() == 206 {
            let range = text(CONTENT_RANGE).and_then(content_range);
            let is_asked = range.is_some_and(|(first, last, total)| {
                first == from
                    && last < end.max(from + 1)
                    && total.is_none_or(|total| total == self.part.header().bytes)
            });
            return if is_asked && !wants_whole {
                Ok(())
            } else {
                Err(broken("it sent another range than asked for"))
            };
        }
        let is_whole = from == 0 && end == self.part.header().bytes;
        match response.content_length() {
            Some(bytes) if bytes != self.part.header().bytes => Err(Trouble::Over(Over::Changed)),
            _ if wants_whole || is_whole => Ok(()),
            _ if self.n_ignored.fetch_add(1, Relaxed) + 1 >= MOST_IGNORED => {
                Err(Trouble::Over(Over::NoRanges))
            }
            _ => Err(broken("it sent the whole file instead of a part")),
        }
    }

    /// A store that gives its content another name may have another content: the hub is asked.
    fn check_tag(&self, tag: Option<&str>) -> Result<(), Trouble> {
        let Some(tag) = tag else { return Ok(()) };
        let mut source = self.source();
        let is_other = source.tag.as_ref().is_some_and(|known| known != tag);
        if !is_other || self.n_renamed.load(Relaxed) >= MOST_RENAMED {
            source.tag = Some(tag.to_owned());
            return Ok(());
        }
        self.n_renamed.fetch_add(1, Relaxed);
        *source = Source::default();
        Err(Trouble::Broken(HubError::answer("the store", "it calls the file by another name than before")))
    }

    /// Takes what came; whole chunks are stored.
    async fn feed(&self, cursor: &mut Cursor, mut bytes: &[u8]) -> Result<(), Trouble> {
        while !bytes.is_empty() && cursor.chunk < cursor.end {
            let len = usize::try_from(self.part.header().len_of(cursor.chunk)).unwrap_or(usize::MAX);
            let n = bytes.len().min(len - cursor.buffer.len());
            cursor.buffer.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if cursor.buffer.len() < len {
                break;
            }
            let is_fine = self.chunk(cursor)?;
            cursor.buffer.clear();
            if !is_fine {
                if self.n_bad.fetch_add(1, Relaxed) + 1 >= MOST_BAD {
                    return Err(Trouble::Over(Over::Failed(damaged(&self.path))));
                }
                let error =
                    HubError::new("download.bad_chunk", "A part arrived damaged.", "It is fetched again.");
                return Err(Trouble::Broken(error));
            }
            self.n_bad.store(0, Relaxed);
            self.n_ignored.store(0, Relaxed);
            self.n_renamed.store(0, Relaxed);
            cursor.chunk += 1;
            self.meter.set_have(self.bytes_before + self.part.have_bytes());
            if self.part.wants_sync() {
                // Elsewhere: the disk may take its time, and other connections go on.
                tokio::task::block_in_place(|| self.part.sync())?;
            }
        }
        Ok(())
    }

    /// Stores the cursor's chunk where it is wanted. False: it is not what was published.
    fn chunk(&self, cursor: &mut Cursor) -> Result<bool, io::IoError> {
        let known = self.part.hash_of(cursor.chunk);
        match (cursor.take, known) {
            (Take::Missing, Some(_)) => Ok(true),
            (Take::Missing, None) | (Take::Doubted, None) => self.part.store(cursor.chunk, &cursor.buffer),
            (Take::Doubted, Some(hash)) if hash == crate::sha::Hash::of(&cursor.buffer) => Ok(true),
            (Take::Doubted, Some(_)) => {
                cursor.n_changed += 1;
                self.part.store(cursor.chunk, &cursor.buffer)
            }
        }
    }

    /// Errors: a connection that drips while others run.
    fn check_speed(&self, speed: &mut Speed, n_bytes: usize, location: &Url) -> Result<(), Trouble> {
        speed.bytes += n_bytes as u64;
        let now = self.clock.monotonic();
        let passed = now.saturating_sub(speed.since);
        if passed < self.client.stall / LOOKS {
            return Ok(());
        }
        let rate = (speed.bytes as f64 / passed.as_secs_f64().max(1e-3)) as u64;
        let n_slow = if rate < LEAST_RATE { speed.n_slow + 1 } else { 0 };
        *speed = Speed { since: now, bytes: 0, n_slow };
        let best = self.best_rate.load(Relaxed);
        // What was possible once need not stay so.
        self.best_rate.store(rate.max(best - best / 8), Relaxed);
        if rate < best / TOO_SLOW || n_slow >= LOOKS {
            let error = HubError::new(
                "hub.slow",
                format!("{} sends next to nothing over this connection.", host(location)),
                "A new one is made.",
            );
            return Err(Trouble::Broken(error));
        }
        Ok(())
    }
}

/// Bytes that came over a connection in the last while.
struct Speed {
    since: Duration,
    bytes: u64,
    /// Looks in a row that saw next to nothing.
    n_slow: u32,
}

fn value(text: &str) -> Result<HeaderValue, Trouble> {
    let wrong = |_| Trouble::Broken(HubError::answer("the hub", "its names can't be sent back"));
    HeaderValue::from_str(text).map_err(wrong)
}

fn broke(location: &Url) -> HubError {
    HubError::new(
        "hub.cut",
        format!("The connection to {} broke off.", host(location)),
        "It goes on by itself where it was.",
    )
}

pub(crate) fn damaged(path: &str) -> HubError {
    HubError::new(
        "download.damaged",
        format!(
            "What arrives of {path} is not what its publisher lists: the source is damaged, or was changed."
        ),
        "Try again later, or choose another file. Nothing of it was taken into the library.",
    )
}

/// `bytes 0-99/1000` as first, last and total; the total may be left open.
fn content_range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    (first <= last).then_some((first, last, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(content_range("bytes 0-99/1000"), Some((0, 99, Some(1000))));
        assert_eq!(content_range("bytes 5-5/*"), Some((5, 5, None)));
        for wrong in ["", "bytes", "bytes 9-5/10", "bytes */10", "items 0-1/2", "bytes 0-x/2", "bytes 0-1"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
