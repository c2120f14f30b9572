//! GPU faults: their kinds, the log that driver callbacks write to, and the plan by which tests inject them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

mod memory_limit;

pub(crate) use memory_limit::AllocatedBytes;
use memory_limit::MemoryLimit;

/// What went wrong with a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuFault {
    /// no GPU matches the selection
    Absent,
    /// the GPU or its driver disappeared or was reset
    Lost,
    /// its memory is full
    Memory,
    /// it rejected a command
    Invalid,
    /// it did not finish in time
    TimeOut,
    /// a kernel's results differ from the reference
    Wrong,
    /// as `Wrong`, where subgroups are in use, which kernels can avoid
    Subgroups,
    /// it lacks the requested precision, or gives wrong results in it
    Precision,
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
            Self::Subgroups => "computes wrong results with subgroups",
            Self::Precision => "can't multiply in the requested precision",
        })
    }
}

/// Faults reported by driver callbacks and not yet taken. Clones share one log.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultLog(Arc<Mutex<RecordedFaults>>);

#[derive(Debug, Default)]
struct RecordedFaults {
    /// why the GPU was lost, for all its users
    lost: Option<String>,
    /// The first fault of each thread. A GPU rejects a command at once, so the thread that gave it is the one to blame,
    /// and it takes the fault before it returns.
    by_thread: HashMap<ThreadId, (GpuFault, String)>,
}

impl FaultLog {
    /// Records a fault of the current thread; the loss of the GPU outweighs the faults it causes.
    pub fn record(&self, fault: GpuFault, message: String) {
        let mut recorded = self.lock();
        match fault {
            GpuFault::Lost => recorded.lost = Some(message),
            fault => _ = recorded.by_thread.entry(thread::current().id()).or_insert((fault, message)),
        }
    }

    /// Removes and returns the fault of the current thread. A lost GPU stays lost.
    pub fn take(&self) -> Option<(GpuFault, String)> {
        let mut recorded = self.lock();
        let own = recorded.by_thread.remove(&thread::current().id());
        recorded.lost.clone().map(|message| (GpuFault::Lost, message)).or(own)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RecordedFaults> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Faults that a test injects into GPUs: before a submission, at an allocation, or in kernel verification.
/// Clones share one plan.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(Option<Arc<PlannedFault>>);

#[derive(Debug)]
struct PlannedFault {
    point: FaultPoint,
    fault: GpuFault,
    /// occurrences of `point` between one fault and the next
    interval: u64,
    /// occurrences left until the next fault
    countdown: AtomicU64,
    /// faults still to come
    n_left: AtomicU64,
    /// all submissions, whether faults are planned for them or not
    n_submissions: AtomicU64,
    memory: MemoryLimit,
}

/// A point in a GPU's work where a fault can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultPoint {
    Submission,
    Allocation,
    /// verification of a graph's kernels, where some are not known to be right
    Verification,
}

impl FaultPlan {
    /// One fault before submission `at`, counted from 0.
    pub fn before(at: u64, fault: GpuFault) -> Self {
        Self::new(FaultPoint::Submission, at, fault, 1)
    }

    /// `n_times` faults: before submission `at`, counted from 0, and then again after each `at` further submissions.
    pub fn repeated(at: u64, fault: GpuFault, n_times: u64) -> Self {
        Self::new(FaultPoint::Submission, at, fault, n_times)
    }

    /// Memory is full at allocation `at`, counted from 0; then the count restarts, `n_times` in all.
    pub fn full_at(at: u64, n_times: u64) -> Self {
        Self::new(FaultPoint::Allocation, at, GpuFault::Memory, n_times)
    }

    /// The first `n_times` kernel verifications find a wrong kernel.
    pub fn wrong_in_checks(n_times: u64) -> Self {
        Self::new(FaultPoint::Verification, 0, GpuFault::Wrong, n_times)
    }

    fn new(point: FaultPoint, interval: u64, fault: GpuFault, n_times: u64) -> Self {
        let countdown = if n_times > 0 { interval + 1 } else { 0 };
        let [countdown, n_left, n_submissions] = [countdown, n_times, 0].map(AtomicU64::new);
        let memory = MemoryLimit::default();
        let planned = PlannedFault { point, fault, interval, countdown, n_left, n_submissions, memory };
        Self(Some(Arc::new(planned)))
    }

    /// Injects nothing, but counts submissions and memory.
    pub fn count_only() -> Self {
        Self::new(FaultPoint::Submission, 0, GpuFault::Lost, 0)
    }

    /// Number of submissions of all GPUs that were opened with this plan.
    pub fn n_submissions(&self) -> u64 {
        self.0.as_ref().map_or(0, |planned| planned.n_submissions.load(Ordering::Relaxed))
    }

    /// Number of open GPUs and other owners that share this plan; 1: only the caller.
    pub fn n_holders(&self) -> usize {
        self.0.as_ref().map_or(1, Arc::strong_count)
    }

    /// Limits the memory of all GPUs opened with the plan to `n_bytes` in total.
    pub fn limit_memory(&self, n_bytes: u64) {
        if let Some(planned) = &self.0 {
            planned.memory.set(n_bytes);
        }
    }

    /// The largest total that the plan's GPUs held at any time, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |planned| planned.memory.peak_bytes())
    }

    /// Counts the memory of another GPU.
    pub(crate) fn watch(&self, gpu: AllocatedBytes) {
        if let Some(planned) = &self.0 {
            planned.memory.watch(gpu);
        }
    }

    /// Whether `n_bytes` more fit into the memory limit.
    pub(crate) fn has_memory(&self, n_bytes: u64) -> bool {
        self.0.as_ref().is_none_or(|planned| planned.memory.fits(n_bytes))
    }

    /// Whether all planned faults have happened.
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|planned| planned.n_left.load(Ordering::Relaxed) == 0)
    }

    /// Counts an occurrence of `point`. Returns the fault if one is due.
    pub(crate) fn next(&self, point: FaultPoint) -> Option<GpuFault> {
        let planned = self.0.as_ref()?;
        if point == FaultPoint::Submission {
            planned.n_submissions.fetch_add(1, Ordering::Relaxed);
        }
        if planned.point != point {
            return None;
        }
        let before =
            planned.countdown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if before != Ok(1) {
            return None;
        }
        let n_left = planned.n_left.fetch_sub(1, Ordering::Relaxed) - 1;
        planned.countdown.store(if n_left > 0 { planned.interval + 1 } else { 0 }, Ordering::Relaxed);
        Some(planned.fault)
    }
}

/// Compares identity, not content.
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
        let clone = plan.clone();
        let at = FaultPoint::Submission;
        let seen: Vec<_> = (0..5).map(|i| if i % 2 == 0 { plan.next(at) } else { clone.next(at) }).collect();
        assert_eq!(seen, [None, None, Some(GpuFault::Lost), None, None]);
        assert!(plan.is_over() && plan == clone && plan != FaultPlan::default());
        assert_eq!(FaultPlan::default().next(at), None);
    }

    #[test]
    fn memory_is_full_as_often_as_planned() {
        let plan = FaultPlan::full_at(1, 2);
        assert_eq!(plan.next(FaultPoint::Submission), None);
        let seen: Vec<bool> = (0..6).map(|_| plan.next(FaultPoint::Allocation).is_some()).collect();
        assert_eq!(seen, [false, true, false, true, false, false]);
        assert!(plan.is_over());
    }

    #[test]
    fn a_thread_gets_its_own_faults_and_every_thread_the_loss() {
        let faults = FaultLog::default();
        let other = faults.clone();
        let (recorded, taken) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                other.record(GpuFault::Invalid, "its own".into());
                recorded.wait();
                taken.wait();
                (other.take(), other.take())
            });
            recorded.wait();
            let found = faults.take();
            taken.wait();
            assert_eq!(thread.join().unwrap(), (Some((GpuFault::Invalid, "its own".into())), None));
            assert_eq!(found, None);
            scope.spawn(|| other.record(GpuFault::Lost, "lost".into())).join().unwrap();
        });
        assert_eq!(faults.take(), Some((GpuFault::Lost, "lost".into())));
    }

    #[test]
    fn the_first_fault_is_returned_once_and_a_loss_always() {
        let faults = FaultLog::default();
        assert_eq!(faults.take(), None);
        faults.record(GpuFault::Invalid, "a".into());
        faults.record(GpuFault::Memory, "b".into());
        assert_eq!(faults.take(), Some((GpuFault::Invalid, "a".into())));
        assert_eq!(faults.take(), None);
        faults.record(GpuFault::Memory, "c".into());
        faults.record(GpuFault::Lost, "d".into());
        for _ in 0..2 {
            assert_eq!(faults.take(), Some((GpuFault::Lost, "d".into())));
        }
    }
}
