//! Speed limit shared by all downloads (a token bucket), and exponential backoff.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use io::Clock;

/// Token-bucket burst, as time at the configured rate.
const BURST_WINDOW: Duration = Duration::from_millis(200);

/// A limit of bytes per second.
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    state: Mutex<LimiterState>,
}

struct LimiterState {
    /// 0: unlimited.
    bytes_per_s: u64,
    /// Time at which all received bytes are within the limit.
    paid_until: Duration,
}

impl RateLimiter {
    /// A limit in bytes per second; None is unlimited.
    pub fn new(clock: Arc<dyn Clock>, bytes_per_s: Option<u64>) -> Self {
        let state = LimiterState { bytes_per_s: bytes_per_s.unwrap_or(0), paid_until: Duration::ZERO };
        Self { clock, state: Mutex::new(state) }
    }

    /// Changes the limit.
    pub fn set(&self, bytes_per_s: Option<u64>) {
        self.lock().bytes_per_s = bytes_per_s.unwrap_or(0);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accounts for received bytes and returns how long to wait before reading more.
    pub(crate) fn wait_for(&self, n_bytes: usize) -> Duration {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        if state.bytes_per_s == 0 {
            return Duration::ZERO;
        }
        let cost = Duration::from_secs_f64(n_bytes as f64 / state.bytes_per_s as f64);
        state.paid_until = state.paid_until.max(now.saturating_sub(BURST_WINDOW)) + cost;
        state.paid_until.saturating_sub(now)
    }
}

/// Wait after `n_failures` failures in a row (from 1): doubles each time up to `longest`, with jitter.
pub(crate) fn back_off(n_failures: u32, first: Duration, longest: Duration, jitter: u64) -> Duration {
    let doubled = first.saturating_mul(1 << n_failures.saturating_sub(1).min(16)).min(longest);
    // Between half of it and all of it.
    doubled / 2 + doubled.mul_f64((jitter % 1000) as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use io::ManualClock;

    use super::*;

    #[test]
    fn a_limit_is_kept_over_time() {
        let clock = Arc::new(ManualClock::new(0));
        clock.advance(Duration::from_secs(10));
        let limiter = RateLimiter::new(clock.clone(), Some(1000));
        assert_eq!(limiter.wait_for(100), Duration::ZERO, "a burst after a pause");
        assert_eq!(limiter.wait_for(1100), Duration::from_secs(1));
        clock.advance(Duration::from_secs(1));
        assert_eq!(limiter.wait_for(500), Duration::from_millis(500));
        limiter.set(None);
        assert_eq!(limiter.wait_for(1 << 30), Duration::ZERO);
    }

    #[test]
    fn waits_grow_up_to_a_longest() {
        let (first, longest) = (Duration::from_millis(500), Duration::from_secs(60));
        let of = |n, jitter| back_off(n, first, longest, jitter);
        assert_eq!((of(1, 0), of(2, 0), of(3, 0)), (first / 2, first, first * 2));
        assert!(of(1, 999) < first && of(1, 999) > of(1, 0));
        assert_eq!(of(100, 0), longest / 2);
    }
}
