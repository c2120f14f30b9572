//! Clocks, injected so that tests control the time.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Source of wall-clock and monotonic time.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch (UTC). May jump when the system clock is set.
    fn now_utc_ms(&self) -> i64;

    /// Time since a fixed moment. Never goes backwards.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now_utc_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that moves only by [`ManualClock::advance`]; for tests.
pub struct ManualClock {
    now: Mutex<(i64, Duration)>,
}

impl ManualClock {
    /// A clock at `utc_ms` with monotonic time 0.
    pub fn new(utc_ms: i64) -> Self {
        Self { now: Mutex::new((utc_ms, Duration::ZERO)) }
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        now.0 = now.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
        now.1 = now.1.saturating_add(by);
    }

    fn read(&self) -> (i64, Duration) {
        *self.now.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Clock for ManualClock {
    fn now_utc_ms(&self) -> i64 {
        self.read().0
    }

    fn monotonic(&self) -> Duration {
        self.read().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_advance() {
        let clock = ManualClock::new(1_000);
        assert_eq!((clock.now_utc_ms(), clock.monotonic()), (1_000, Duration::ZERO));
        clock.advance(Duration::from_millis(250));
        assert_eq!((clock.now_utc_ms(), clock.monotonic()), (1_250, Duration::from_millis(250)));
    }

    #[test]
    fn a_real_clock_never_goes_back() {
        let clock = RealClock::new();
        let first = clock.monotonic();
        assert!(clock.monotonic() >= first);
        assert!(clock.now_utc_ms() > 1_600_000_000_000);
    }
}
