//! How much of a model's weights may lie in memory, where the machine has less than they take; and how much memory
//! this process takes.

use engine::WeightBudget;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Weights of up to this share of what is free are simply kept; others share the machine with them.
const FITS: (u64, u64) = (4, 5);
/// Of larger ones so much of what is free: the rest is for the context, for what is computed, and for what the system
/// reads ahead.
const TAKES: (u64, u64) = (7, 10);
/// What contexts may take where the system doesn't say what is free, and what they may take always.
const CONTEXTS: u64 = 1 << 30;
const LEAST_CONTEXTS: u64 = 64 << 20;
/// With less than this the model would wait for the disk in every step.
const LEAST_BYTES: u64 = 64 << 20;

/// Weights that may be in memory at once: as many bytes as asked for, else as many as is well where they don't fit.
/// None: all of them.
pub fn budget(asked: Option<u64>, weight_bytes: u64) -> Option<WeightBudget> {
    decide(asked, weight_bytes, free_bytes())
}

/// Weights take so much of what is free that they can't all be kept.
pub fn is_tight(weight_bytes: u64, free: u64) -> bool {
    weight_bytes > free / FITS.1 * FITS.0
}

/// Bytes that contexts may take: as many as asked for, else half of what weights leave.
pub fn for_contexts(asked: Option<u64>, weight_bytes: u64) -> u64 {
    asked.unwrap_or_else(|| contexts_of(weight_bytes, free_bytes()))
}

fn contexts_of(weight_bytes: u64, free: Option<u64>) -> u64 {
    free.map_or(CONTEXTS, |free| free.saturating_sub(weight_bytes) / 2).max(LEAST_CONTEXTS)
}

/// Weights that take up to this share of what is free are worth memory that the system can't take back, as it could
/// the pages of their file.
const MOVES: (u64, u64) = (3, 5);

/// Whether weights should leave their file for large pages.
pub fn may_settle(weight_bytes: u64) -> bool {
    free_bytes().is_some_and(|free| weight_bytes <= free / MOVES.1 * MOVES.0)
}

/// `free`: memory that this process could still have, where the system says.
fn decide(asked: Option<u64>, weight_bytes: u64, free: Option<u64>) -> Option<WeightBudget> {
    let tight = free.is_some_and(|free| is_tight(weight_bytes, free));
    let automatic = free.filter(|_| tight).map(|free| (free / TAKES.1 * TAKES.0).max(LEAST_BYTES));
    asked.or(automatic).map(|n_bytes| WeightBudget { n_bytes, is_tight: tight })
}

/// What the system, or the limit that it set this process, leaves; pages of files that it would give back count as
/// free. None: it doesn't say.
pub fn free_bytes() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let available = system.available_memory();
    let limits = this_process(&mut system).and_then(|pid| system.process(pid)?.cgroup_limits());
    Some(limits.map_or(available, |limits| available.min(limits.total_memory.saturating_sub(limits.rss))))
}

/// All the memory that there is. None: the system doesn't say.
pub fn total_bytes() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let total = system.total_memory();
    let limits = this_process(&mut system).and_then(|pid| system.process(pid)?.cgroup_limits());
    Some(limits.map_or(total, |limits| total.min(limits.total_memory))).filter(|total| *total > 0)
}

/// Bytes of memory that this process holds, pages of files that it has mapped among them. None: the system doesn't
/// say.
pub fn used_bytes() -> Option<u64> {
    let mut system = System::new().ok()?;
    let pid = this_process(&mut system)?;
    Some(system.process(pid)?.memory())
}

/// As `used_bytes`, of this process and those of the same program that it has started. None: the system doesn't say.
pub fn program_bytes() -> Option<u64> {
    let mut system = System::new().ok()?;
    let me = sysinfo::get_current_pid().ok()?;
    let kind = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::All, false, kind);
    let this = system.process(me)?;
    let is_ours = |it: &&sysinfo::Process| it.parent() == Some(me) && it.name() == this.name();
    let workers: u64 = system.processes().values().filter(is_ours).map(sysinfo::Process::memory).sum();
    Some(this.memory() + workers)
}

fn this_process(system: &mut System) -> Option<Pid> {
    let pid = sysinfo::get_current_pid().ok()?;
    let kind = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
    Some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn small_models_have_no_budget_and_large_ones_leave_room() {
        let check = |weights, free, expected: Option<u64>| {
            let expected = expected.map(|n_bytes| WeightBudget { n_bytes, is_tight: true });
            assert_eq!(decide(None, weights, Some(free)), expected, "{weights} of {free}");
        };
        check(GB, 16 * GB, None);
        check(8 * GB, 10 * GB, None);
        check(9 * GB, 10 * GB, Some(7 * GB));
        check(12 * GB, 1000, Some(LEAST_BYTES));
        check(0, 0, None);
        check(u64::MAX, u64::MAX, Some(u64::MAX / 10 * 7));
        let asked = |free| decide(Some(5), GB, free).map(|it| (it.n_bytes, it.is_tight));
        assert_eq!(
            [asked(None), asked(Some(9 * GB)), asked(Some(GB))],
            [Some((5, false)), Some((5, false)), Some((5, true))],
            "whoever asks, gets"
        );
        assert_eq!(decide(None, GB, None), None);
    }

    #[test]
    fn contexts_have_half_of_what_weights_leave() {
        assert_eq!(contexts_of(GB, Some(9 * GB)), 4 * GB);
        assert_eq!(contexts_of(9 * GB, Some(GB)), LEAST_CONTEXTS);
        assert_eq!(contexts_of(9 * GB, None), CONTEXTS);
    }

    #[test]
    fn the_system_says_how_much_is_free_and_used() {
        assert!(free_bytes().is_none_or(|free| free > 0));
        assert!(used_bytes().is_none_or(|used| used > 0));
        assert!(program_bytes().is_none_or(|used| used > 0));
        assert!(!may_settle(u64::MAX));
    }
}
