//! How often graphics cards failed in one session, whatever models they computed: one that fails again and again is not
//! tried any more.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::EngineError;

/// A second failure within so long of the one before is one too many.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Shared by all models of a session. The default has no clock: there any second failure of a model is one too many.
#[derive(Clone, Default)]
pub struct GpuHealth(Option<Arc<GpuSession>>);

struct GpuSession {
    /// time since some fixed moment
    now: Box<dyn Fn() -> Duration + Send + Sync>,
    seen: Mutex<FailureLog>,
}

#[derive(Default)]
struct FailureLog {
    last: Option<Duration>,
    is_given_up: bool,
}

impl GpuHealth {
    /// For one session, by a clock that never goes back.
    pub fn by(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(GpuSession { now: Box::new(now), seen: Mutex::default() })))
    }

    /// This session's; without one, a model's own.
    pub(super) fn or_own(&self) -> Self {
        match self.0 {
            Some(_) => self.clone(),
            None => Self::by(|| Duration::ZERO),
        }
    }

    /// A card was lost. Whether it is not to be tried again in this session.
    pub(super) fn failed(&self) -> bool {
        let Some(session) = &self.0 else { return true };
        let (now, mut seen) = ((session.now)(), session.seen());
        let before = seen.last.replace(now);
        seen.is_given_up |= before.is_some_and(|before| now.saturating_sub(before) < FAILURE_WINDOW);
        seen.is_given_up
    }

    /// Why no card is used any more.
    pub fn given_up(&self) -> Option<EngineError> {
        let is_given_up = self.0.as_ref().is_some_and(|session| session.seen().is_given_up);
        is_given_up.then(|| {
            EngineError::new(
                GPU_GIVEN_UP,
                "the graphics card failed twice within ten minutes and is left alone until Inglenook starts again",
                "A newer driver may help.",
            )
        })
    }
}

/// Code of the error for a card that is not tried any more.
pub const GPU_GIVEN_UP: &str = "kernels.gpu_given_up";

impl GpuSession {
    fn seen(&self) -> MutexGuard<'_, FailureLog> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GpuHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuHealth {{ is_given_up: {} }}", self.given_up().is_some())
    }
}

/// The same session.
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
    fn the_second_failure_within_ten_minutes_is_one_too_many() {
        let seconds = Arc::new(AtomicU64::new(100));
        let clock = seconds.clone();
        let health = GpuHealth::by(move || Duration::from_secs(clock.load(Ordering::Relaxed)));
        let mut fails_at = |s: u64| {
            seconds.store(s, Ordering::Relaxed);
            health.clone().failed()
        };
        assert_eq!([100, 700, 1_300, 1_899].map(&mut fails_at), [false, false, false, true]);
        assert!(fails_at(100_000), "once given up, it stays so");
        assert_eq!(health.given_up().map(|error| error.code()), Some(GPU_GIVEN_UP));
        assert!(health.or_own() == health);
        let own = GpuHealth::default().or_own();
        assert_eq!((own.failed(), own.given_up(), own.failed()), (false, None, true));
        assert_eq!(GpuHealth::default().given_up(), None);
    }
}
