//! How much each key has used in the current minute and day, and whether that leaves room for a request.
//!
//! Kept across restarts: added to the file in the data folder every few seconds and at the end. Several processes may
//! share the file: each adds what it counted, and reads what the others did. Windows begin with the UTC minute and day.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::{Error, ErrorKind};
use io::{Clock, FileLock, Io};
use serde::{Deserialize, Serialize};

const FILE: &str = "usage.json";

/// Held while the file is read and written.
const LOCK_FILE: &str = "usage.lock";

/// How often the end of a process tries to lock the file, and the time between two tries.
const MAX_LOCK_ATTEMPTS: usize = 100;
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// Time between two writes: what a crash may forget.
const WRITE_EVERY: Duration = Duration::from_secs(2);

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// What a key may use. None: any amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_day: Option<u64>,
    /// Tokens of prompts and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
}

/// What was used since the beginning of a minute or a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct UsageWindow {
    /// UTC milliseconds.
    began_ms: i64,
    requests: u64,
    tokens: u64,
}

impl UsageWindow {
    /// This window, or a new one where its time is over.
    fn at(self, now_ms: i64, length_ms: i64) -> Self {
        let began_ms = now_ms - now_ms.rem_euclid(length_ms);
        if self.began_ms == began_ms { self } else { Self { began_ms, ..Self::default() } }
    }

    /// Both together; the later window where they differ.
    fn plus(self, other: Self) -> Self {
        match self.began_ms.cmp(&other.began_ms) {
            Ordering::Less => other,
            Ordering::Greater => self,
            Ordering::Equal => Self {
                began_ms: self.began_ms,
                requests: self.requests.saturating_add(other.requests),
                tokens: self.tokens.saturating_add(other.tokens),
            },
        }
    }
}

/// What one key has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KeyUsage {
    minute: UsageWindow,
    day: UsageWindow,
}

impl KeyUsage {
    fn at(self, now_ms: i64) -> Self {
        Self { minute: self.minute.at(now_ms, MINUTE_MS), day: self.day.at(now_ms, DAY_MS) }
    }

    fn plus(self, other: Self) -> Self {
        Self { minute: self.minute.plus(other.minute), day: self.day.plus(other.day) }
    }

    fn add(&mut self, requests: u64, tokens: u64) {
        for window in [&mut self.minute, &mut self.day] {
            window.requests = window.requests.saturating_add(requests);
            window.tokens = window.tokens.saturating_add(tokens);
        }
    }
}

/// What all keys have used.
pub struct KeyUsages {
    folder: PathBuf,
    io: Arc<dyn Io>,
    clock: Arc<dyn Clock>,
    table: Mutex<UsageTable>,
}

/// What one process knows.
#[derive(Default)]
struct UsageTable {
    /// What the file said when it was last read.
    stored: HashMap<String, KeyUsage>,
    /// What this process counted since it last wrote the file.
    pending: HashMap<String, KeyUsage>,
    written_at: Duration,
}

impl KeyUsages {
    pub fn new(folder: PathBuf, io: Arc<dyn Io>, clock: Arc<dyn Clock>) -> Self {
        Self { folder, io, clock, table: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, UsageTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> HashMap<String, KeyUsage> {
        let path = self.folder.join(FILE);
        // Without the file nothing was used; a damaged one costs no key its service.
        let bytes = self.io.read(&path).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Counts a request, if there is room.
    ///
    /// Errors: what is used up, and the seconds until there is room again.
    pub fn admit(&self, key: &str, limits: &KeyLimits) -> Result<(), (Error, u64)> {
        let now_ms = self.clock.now_utc_ms();
        let mut table = self.lock();
        // Another process may have counted in the meantime.
        table.stored = self.read();
        let stored = table.stored.get(key).copied().unwrap_or_default();
        let pending = table.pending.entry(key.to_owned()).or_default();
        *pending = pending.at(now_ms);
        check(&stored.at(now_ms).plus(*pending), limits, now_ms)?;
        pending.add(1, 0);
        self.write_when_due(&mut table);
        Ok(())
    }

    /// Counts the tokens of an answer.
    pub fn count_tokens(&self, key: &str, tokens: u64) {
        let now_ms = self.clock.now_utc_ms();
        let mut table = self.lock();
        let pending = table.pending.entry(key.to_owned()).or_default();
        *pending = pending.at(now_ms);
        pending.add(0, tokens);
        self.write_when_due(&mut table);
    }

    /// Writes what is not written yet.
    pub fn flush(&self) {
        let mut table = self.lock();
        for _ in 0..MAX_LOCK_ATTEMPTS {
            if self.write(&mut table) {
                return;
            }
            std::thread::sleep(LOCK_RETRY);
        }
    }

    fn write_when_due(&self, table: &mut UsageTable) {
        let now = self.clock.monotonic();
        if table.written_at.is_zero() || now >= table.written_at + WRITE_EVERY {
            table.written_at = now.max(Duration::from_nanos(1));
            self.write(table);
        }
    }

    /// Adds what is pending to the file. False: another process is writing it; what is pending stays so.
    fn write(&self, table: &mut UsageTable) -> bool {
        if table.pending.is_empty() {
            return true;
        }
        let merged = self.io.create_dir_all(&self.folder).and_then(|()| {
            let Some(_lock) = FileLock::try_acquire(&self.folder.join(LOCK_FILE))? else { return Ok(None) };
            let mut all = self.read();
            for (key, pending) in &table.pending {
                let usage = all.entry(key.clone()).or_default();
                *usage = usage.plus(*pending);
            }
            // Plain data becomes JSON.
            let json = serde_json::to_vec(&all).unwrap_or_default();
            self.io.write_atomic(&self.folder.join(FILE), &json)?;
            Ok(Some(all))
        });
        match merged {
            Ok(Some(all)) => (table.stored, table.pending) = (all, HashMap::new()),
            Ok(None) => return false,
            // Counting goes on in memory.
            Err(error) => tracing::warn!("the use of the keys was not saved: {error}"),
        }
        true
    }
}

fn check(usage: &KeyUsage, limits: &KeyLimits, now_ms: i64) -> Result<(), (Error, u64)> {
    let wait = |window: &UsageWindow, length_ms: i64| {
        let ms = window.began_ms + length_ms - now_ms;
        u64::try_from(ms).unwrap_or(0).div_ceil(1000).max(1)
    };
    let (minute, day) = (&usage.minute, &usage.day);
    let bounds = [
        (day.requests, limits.requests_per_day, "requests per day", wait(day, DAY_MS)),
        (day.tokens, limits.tokens_per_day, "tokens per day", wait(day, DAY_MS)),
        (minute.requests, limits.requests_per_minute, "requests per minute", wait(minute, MINUTE_MS)),
        (minute.tokens, limits.tokens_per_minute, "tokens per minute", wait(minute, MINUTE_MS)),
    ];
    for (used, limit, what, wait_s) in bounds {
        if let Some(limit) = limit.filter(|limit| used >= *limit) {
            let error = Error::new(
                ErrorKind::Limit,
                "limit.key",
                format!("This key has used its {limit} {what}."),
                format!("Try again in {wait_s} seconds, or have its limit raised."),
            );
            return Err((error, wait_s));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use io::{ManualClock, RealIo};

    use super::*;

    #[test]
    fn limits_hold_across_restarts_until_their_window_ends() {
        let folder = std::env::temp_dir().join(format!("inglenook-key-usage-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let clock = Arc::new(ManualClock::new(1_768_478_400_000));
        let usages = || KeyUsages::new(folder.clone(), Arc::new(RealIo), clock.clone());
        let limits =
            KeyLimits { requests_per_minute: Some(2), tokens_per_day: Some(100), ..KeyLimits::default() };
        let first = usages();
        assert!(first.admit("a", &limits).is_ok() && first.admit("a", &limits).is_ok());
        let (error, wait_s) = first.admit("a", &limits).unwrap_err();
        assert!(error.message().contains("2 requests per minute") && (1..=60).contains(&wait_s), "{error}");
        assert!(first.admit("b", &limits).is_ok(), "each key for itself");
        first.flush();
        assert!(usages().admit("a", &limits).is_err(), "after a restart");
        clock.advance(Duration::from_secs(60));
        let again = usages();
        assert!(again.admit("a", &limits).is_ok(), "in the next minute");
        again.count_tokens("a", 100);
        let (error, wait_s) = again.admit("a", &limits).unwrap_err();
        assert!(error.message().contains("100 tokens per day") && wait_s > 60, "{error} {wait_s}");
        clock.advance(Duration::from_secs(24 * 3600));
        assert!(again.admit("a", &limits).is_ok(), "on the next day");
        assert!(again.admit("c", &KeyLimits::default()).is_ok());
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn processes_that_share_a_folder_share_the_counts() {
        let folder = std::env::temp_dir().join(format!("inglenook-shared-usage-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let clock = Arc::new(ManualClock::new(1_768_478_400_000));
        let usages = || KeyUsages::new(folder.clone(), Arc::new(RealIo), clock.clone());
        let limits =
            KeyLimits { requests_per_day: Some(4), tokens_per_day: Some(50), ..KeyLimits::default() };
        let (first, second) = (usages(), usages());
        assert!(first.admit("a", &limits).is_ok() && second.admit("a", &limits).is_ok());
        first.count_tokens("a", 10);
        first.count_tokens("b", 1);
        second.count_tokens("a", 20);
        second.flush();
        first.flush();
        assert!(first.admit("a", &limits).is_ok() && second.admit("a", &limits).is_ok());
        first.flush();
        second.flush();
        let (error, _) = first.admit("a", &limits).unwrap_err();
        assert!(error.message().contains("4 requests per day"), "{error}");
        assert!(second.admit("a", &limits).is_err());
        let stored = usages().read();
        assert_eq!((stored["a"].day.requests, stored["a"].day.tokens, stored["b"].day.tokens), (4, 30, 1));
        // a process that holds the file costs no count
        let held = FileLock::try_acquire(&folder.join(LOCK_FILE)).unwrap();
        first.count_tokens("a", 20);
        assert!(!first.write(&mut first.lock()));
        drop(held);
        first.flush();
        assert_eq!(usages().read()["a"].day.tokens, 50);
        let _ = std::fs::remove_dir_all(folder);
    }
}
