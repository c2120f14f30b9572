//! Memory of this machine and this process, in bytes.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

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

    #[test]
    fn the_system_says_how_much_is_free_and_used() {
        assert!(free_bytes().is_none_or(|free| free > 0));
        assert!(used_bytes().is_none_or(|used| used > 0));
        assert!(program_bytes().is_none_or(|used| used > 0));
    }
}
