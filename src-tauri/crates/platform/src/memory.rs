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

/// Bytes of memory of this process, of the same program that it has started, and of the web view's processes. Linux
/// says how much of it each process has to itself, so that what they share counts once. None: the system doesn't say.
pub fn program_bytes() -> Option<u64> {
    let mut system = System::new().ok()?;
    let me = sysinfo::get_current_pid().ok()?;
    let kind = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::All, false, kind);
    let this = system.process(me)?;
    let is_ours = |it: &&sysinfo::Process| {
        it.parent() == Some(me)
            && it.thread_kind().is_none()
            && (it.name() == this.name() || it.name().to_string_lossy().starts_with(WEB_VIEW))
    };
    let children = system.processes().values().filter(is_ours);
    let bytes = |it: &sysinfo::Process| proportional_bytes(it.pid()).unwrap_or_else(|| it.memory());
    Some(bytes(this) + children.map(bytes).sum::<u64>())
}

/// How the names of the web view's processes begin on Linux.
const WEB_VIEW: &str = "WebKit";

/// The proportional set size of a process: its own memory, and its share of what others have too. None: not on Linux,
/// or the process belongs to somebody else.
fn proportional_bytes(pid: Pid) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    proportional_bytes_in(&text)
}

/// Reads `smaps_rollup`, whose sizes are in KiB.
fn proportional_bytes_in(rollup: &str) -> Option<u64> {
    let value = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
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

    #[test]
    fn proportional_sizes_are_read() {
        let rollup = "55d0-7ffc ---p 00000000 00:00 0    [rollup]\nRss:      884 kB\nPss:      385 kB\nPss_Anon: 68 kB\n";
        assert_eq!(proportional_bytes_in(rollup), Some(385 * 1024));
        for broken in ["", "Pss:\n", "Pss: many kB", "Rss: 1 kB"] {
            assert_eq!(proportional_bytes_in(broken), None, "{broken}");
        }
    }
}
