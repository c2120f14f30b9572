//! What can go wrong with a card while it works, and where it is noted: a card reports by callback, and whoever
//! waits for its results asks here.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuFault {
    /// there is no card, or none that is wanted
    Absent,
    /// the card or its driver went away, or was reset
    Lost,
    /// its memory is full
    Memory,
    /// it refused what it was told
    Invalid,
    /// it didn't answer in time
    TimeOut,
    /// it computes something else than the reference does
    Wrong,
}

impl fmt::Display for GpuFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "is not available",
            Self::Lost => "was lost",
            Self::Memory => "has no memory left",
            Self::Invalid => "refused a command",
            Self::TimeOut => "did not answer in time",
            Self::Wrong => "computes wrong results",
        })
    }
}

/// The first fault that nobody has asked for yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<Mutex<Option<(GpuFault, String)>>>);

impl Faults {
    /// Notes a fault; the loss of a card outweighs what it led to.
    pub fn note(&self, fault: GpuFault, message: String) {
        let mut noted = self.lock();
        if noted.is_none() || fault == GpuFault::Lost {
            *noted = Some((fault, message));
        }
    }

    /// What was noted; a lost card stays lost.
    pub fn take(&self) -> Option<(GpuFault, String)> {
        let mut noted = self.lock();
        match &*noted {
            Some((GpuFault::Lost, _)) => noted.clone(),
            _ => noted.take(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(GpuFault, String)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A fault that a test wants, once: before so many submissions have gone out, on whatever devices.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(Option<Arc<Planned>>);

#[derive(Debug)]
struct Planned {
    fault: GpuFault,
    /// submissions until then
    left: AtomicU64,
}

impl FaultPlan {
    /// Before submission `at`, counted from 0.
    pub fn before(at: u64, fault: GpuFault) -> Self {
        Self(Some(Arc::new(Planned { fault, left: AtomicU64::new(at + 1) })))
    }

    /// Whether it has happened.
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|planned| planned.left.load(Ordering::Relaxed) == 0)
    }

    /// Counts a submission. The fault, if this is its time.
    pub(crate) fn next(&self) -> Option<GpuFault> {
        let planned = self.0.as_ref()?;
        let before = planned.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        (before == Ok(1)).then_some(planned.fault)
    }
}

/// The same plan, not one that is like it.
impl PartialEq for FaultPlan {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for FaultPlan {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planned_fault_comes_once_and_in_time() {
        let plan = FaultPlan::before(2, GpuFault::Lost);
        let again = plan.clone();
        let seen: Vec<_> = (0..5).map(|i| if i % 2 == 0 { plan.next() } else { again.next() }).collect();
        assert_eq!(seen, [None, None, Some(GpuFault::Lost), None, None]);
        assert!(plan.is_over() && plan == again && plan != FaultPlan::default());
        assert_eq!(FaultPlan::default().next(), None);
    }

    #[test]
    fn the_first_fault_is_told_once_and_a_loss_for_ever() {
        let faults = Faults::default();
        assert_eq!(faults.take(), None);
        faults.note(GpuFault::Invalid, "a".into());
        faults.note(GpuFault::Memory, "b".into());
        assert_eq!(faults.take(), Some((GpuFault::Invalid, "a".into())));
        assert_eq!(faults.take(), None);
        faults.note(GpuFault::Memory, "c".into());
        faults.note(GpuFault::Lost, "d".into());
        for _ in 0..2 {
            assert_eq!(faults.take(), Some((GpuFault::Lost, "d".into())));
        }
    }
}
