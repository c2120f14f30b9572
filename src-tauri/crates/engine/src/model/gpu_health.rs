//! GPU failures of one session, over all models: a GPU that fails repeatedly is no longer used.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::EngineError;

/// A second failure within this time disables the GPU.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Failure record shared by all models of a session. The default has no clock, so any second failure of a model
/// disables the GPU.
#[derive(Clone, Default)]
pub struct GpuHealth(Option<Arc<GpuSession>>);

struct GpuSession {
    /// Time since a fixed moment.
    now: Box<dyn Fn() -> Duration + Send + Sync>,
    log: Mutex<FailureLog>,
}

#[derive(Default)]
struct FailureLog {
    last: Option<Duration>,
    is_disabled: bool,
}

impl GpuHealth {
    /// Creates the record of a session, with a monotonic clock.
    pub fn with_clock(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(GpuSession { now: Box::new(now), log: Mutex::default() })))
    }

    /// Returns the session's record, or one for the model alone.
    pub(super) fn or_new(&self) -> Self {
        match self.0 {
            Some(_) => self.clone(),
            None => Self::with_clock(|| Duration::ZERO),
        }
    }

    /// Records a lost GPU. Returns whether it is disabled for this session.
    pub(super) fn record_failure(&self) -> bool {
        let Some(session) = &self.0 else { return true };
        let (now, mut log) = ((session.now)(), session.log());
        let before = log.last.replace(now);
        log.is_disabled |= before.is_some_and(|before| now.saturating_sub(before) < FAILURE_WINDOW);
        log.is_disabled
    }

    /// Returns why GPUs are disabled, if they are.
    pub fn disabled_error(&self) -> Option<EngineError> {
        let is_disabled = self.0.as_ref().is_some_and(|session| session.log().is_disabled);
        is_disabled.then(|| {
            EngineError::new(
                GPU_GIVEN_UP,
                "the GPU failed twice within ten minutes and is not used until Inglenook restarts",
                "A newer driver may help.",
            )
        })
    }
}

/// Error code for a disabled GPU.
pub const GPU_GIVEN_UP: &str = "kernels.gpu_given_up";

impl GpuSession {
    fn log(&self) -> MutexGuard<'_, FailureLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GpuHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuHealth {{ is_given_up: {} }}", self.disabled_error().is_some())
    }
}

/// Equal if they belong to the same session.
impl PartialEq for GpuHealth {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl Eq for GpuHealth {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_second_failure_within_ten_minutes_disables_the_gpu() {
        let seconds = Arc::new(AtomicU64::new(100));
        let clock = seconds.clone();
        let health = GpuHealth::with_clock(move || Duration::from_secs(clock.load(Ordering::Relaxed)));
        let mut fails_at = |s: u64| {
            seconds.store(s, Ordering::Relaxed);
            health.clone().record_failure()
        };
        assert_eq!([100, 700, 1_300, 1_899].map(&mut fails_at), [false, false, false, true]);
        assert!(fails_at(100_000), "once disabled, it stays so");
        assert_eq!(health.disabled_error().map(|error| error.code()), Some(GPU_GIVEN_UP));
        assert!(health.or_new() == health);
        let own = GpuHealth::default().or_new();
        assert_eq!((own.record_failure(), own.disabled_error(), own.record_failure()), (false, None, true));
        assert_eq!(GpuHealth::default().disabled_error(), None);
    }
}
