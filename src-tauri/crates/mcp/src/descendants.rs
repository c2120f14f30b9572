//! A process and its descendants: `npx` and its like run the server as a child.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Generations that are looked at: starters of starters.
const MAX_GENERATIONS: usize = 8;

/// Kills a process and its descendants. One that has ended needs no killing.
pub fn kill(id: u32) {
    let Ok(mut system) = System::new() else { return };
    system.refresh_processes_specifics(ProcessesToUpdate::All, false, ProcessRefreshKind::nothing());
    let mut family = vec![Pid::from_u32(id)];
    for _ in 0..MAX_GENERATIONS {
        let is_child = |parent: Option<Pid>| parent.is_some_and(|parent| family.contains(&parent));
        let born: Vec<Pid> = system
            .processes()
            .iter()
            .filter(|(pid, process)| is_child(process.parent()) && !family.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if born.is_empty() {
            break;
        }
        family.extend(born);
    }
    for process in family.iter().filter_map(|pid| system.process(*pid)) {
        process.kill();
    }
}
