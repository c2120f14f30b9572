//! What can go wrong with a card while it works, and where it is noted: a card reports by callback, and whoever
//! waits for its results asks here.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

mod room;

pub(crate) use room::Held;
use room::Room;

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
    /// the same, where lanes share by subgroups, which can be done without
    Subgroups,
    /// it can't multiply in the precision that is asked for, or does it wrongly
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
            Self::Subgroups => "computes wrong results by its subgroups",
            Self::Precision => "can't multiply in the precision that is asked for",
        })
    }
}

/// What nobody has asked for yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    /// why the card is lost, for all who use it
    lost: Option<String>,
    /// the first of each thread: a card refuses what it is told at once, so that it is the fault of who told it, who
    /// asks before it returns
    others: HashMap<ThreadId, (GpuFault, String)>,
}

impl Faults {
    /// Notes a fault of what this thread does; the loss of a card outweighs what it led to.
    pub fn note(&self, fault: GpuFault, message: String) {
        let mut noted = self.lock();
        match fault {
            GpuFault::Lost => noted.lost = Some(message),
            fault => _ = noted.others.entry(thread::current().id()).or_insert((fault, message)),
        }
    }

    /// What was noted of this thread; a lost card stays lost.
    pub fn take(&self) -> Option<(GpuFault, String)> {
        let mut noted = self.lock();
        let own = noted.others.remove(&thread::current().id());
        noted.lost.clone().map(|message| (GpuFault::Lost, message)).or(own)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What a test wants to go wrong, on whatever devices: once before a submission, or again and again where memory is
/// asked for or kernels are checked.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(Option<Arc<Planned>>);

#[derive(Debug)]
struct Planned {
    at: Moment,
    fault: GpuFault,
    /// moments from one fault to the next
    every: u64,
    /// moments until then
    left: AtomicU64,
    /// faults to come
    n_times: AtomicU64,
    /// that there were, planned for or not
    n_submissions: AtomicU64,
    room: Room,
}

/// What a card is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Submission,
    Allocation,
    /// of the kernels of a graph, where some are not known to be right
    Check,
}

impl FaultPlan {
    /// Before submission `at`, counted from 0.
    pub fn before(at: u64, fault: GpuFault) -> Self {
        Self::new(Moment::Submission, at, fault, 1)
    }

    /// Before submission `at`, counted from 0, and then before so many more times the one that is as far from the last.
    pub fn again(at: u64, fault: GpuFault, n_times: u64) -> Self {
        Self::new(Moment::Submission, at, fault, n_times)
    }

    /// Memory is full where it is asked for the `at`-th time, counted from 0; after that counting begins anew, so many
    /// times in all.
    pub fn full_at(at: u64, n_times: u64) -> Self {
        Self::new(Moment::Allocation, at, GpuFault::Memory, n_times)
    }

    /// A kernel is found wrong where kernels are checked: the first so many times.
    pub fn wrong_in_checks(n_times: u64) -> Self {
        Self::new(Moment::Check, 0, GpuFault::Wrong, n_times)
    }

    fn new(at: Moment, every: u64, fault: GpuFault, n_times: u64) -> Self {
        let left = if n_times > 0 { every + 1 } else { 0 };
        let [left, n_times, n_submissions] = [left, n_times, 0].map(AtomicU64::new);
        let room = Room::default();
        Self(Some(Arc::new(Planned { at, fault, every, left, n_times, n_submissions, room })))
    }

    /// Nothing goes wrong; what cards are asked for is counted.
    pub fn none_but_counted() -> Self {
        Self::new(Moment::Submission, 0, GpuFault::Lost, 0)
    }

    /// Submissions of all cards that were opened with it.
    pub fn n_submissions(&self) -> u64 {
        self.0.as_ref().map_or(0, |planned| planned.n_submissions.load(Ordering::Relaxed))
    }

    /// Cards that are open with it, and whoever else has it; 1: only who asks.
    pub fn n_holders(&self) -> usize {
        self.0.as_ref().map_or(1, Arc::strong_count)
    }

    /// From here on memory is full wherever all cards that were opened with the plan would hold more than so many bytes.
    pub fn leave(&self, n_bytes: u64) {
        if let Some(planned) = &self.0 {
            planned.room.leave(n_bytes);
        }
    }

    /// The most that its cards held at a time. (bytes)
    pub fn most_held(&self) -> u64 {
        self.0.as_ref().map_or(0, |planned| planned.room.most_held())
    }

    /// Counts what this card holds.
    pub(crate) fn watch(&self, card: Held) {
        if let Some(planned) = &self.0 {
            planned.room.watch(card);
        }
    }

    /// Whether its cards may hold so many bytes more.
    pub(crate) fn has_room(&self, n_bytes: u64) -> bool {
        self.0.as_ref().is_none_or(|planned| planned.room.has(n_bytes))
    }

    /// Whether all of it has happened.
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|planned| planned.n_times.load(Ordering::Relaxed) == 0)
    }

    /// Counts a moment of a card's work. The fault, if this is its time.
    pub(crate) fn next(&self, moment: Moment) -> Option<GpuFault> {
        let planned = self.0.as_ref()?;
        if moment == Moment::Submission {
            planned.n_submissions.fetch_add(1, Ordering::Relaxed);
        }
        if planned.at != moment {
            return None;
        }
        let before = planned.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if before != Ok(1) {
            return None;
        }
        let n_left = planned.n_times.fetch_sub(1, Ordering::Relaxed) - 1;
        planned.left.store(if n_left > 0 { planned.every + 1 } else { 0 }, Ordering::Relaxed);
        Some(planned.fault)
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
        let at = Moment::Submission;
        let seen: Vec<_> = (0..5).map(|i| if i % 2 == 0 { plan.next(at) } else { again.next(at) }).collect();
        assert_eq!(seen, [None, None, Some(GpuFault::Lost), None, None]);
        assert!(plan.is_over() && plan == again && plan != FaultPlan::default());
        assert_eq!(FaultPlan::default().next(at), None);
    }

    #[test]
    fn memory_is_full_as_often_as_planned() {
        let plan = FaultPlan::full_at(1, 2);
        assert_eq!(plan.next(Moment::Submission), None);
        let seen: Vec<bool> = (0..6).map(|_| plan.next(Moment::Allocation).is_some()).collect();
        assert_eq!(seen, [false, true, false, true, false, false]);
        assert!(plan.is_over());
    }

    #[test]
    fn nobody_gets_the_fault_of_another_thread_but_a_loss_is_everybodys() {
        let faults = Faults::default();
        let other = faults.clone();
        let (noted, asked) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        thread::scope(|scope| {
            let told = scope.spawn(|| {
                other.note(GpuFault::Invalid, "its own".into());
                noted.wait();
                asked.wait();
                (other.take(), other.take())
            });
            noted.wait();
            let found = faults.take();
            asked.wait();
            assert_eq!(told.join().unwrap(), (Some((GpuFault::Invalid, "its own".into())), None));
            assert_eq!(found, None);
            scope.spawn(|| other.note(GpuFault::Lost, "gone".into())).join().unwrap();
        });
        assert_eq!(faults.take(), Some((GpuFault::Lost, "gone".into())));
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
