//! How much of the processors other programs use meanwhile: a measurement beside them says little.

use std::path::Path;

use io::Io;

/// Others that use more than this share of all processors disturb a measurement.
const MAX_OTHERS_SHARE: f64 = 0.15;

/// Processor time so far, in clock ticks of the system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTimes {
    /// Of all processors, idle or not.
    total: u64,
    /// Of all processors, by any program, or taken by a hypervisor.
    busy: u64,
    /// By this program.
    own: u64,
}

impl CpuTimes {
    /// None: the system does not say (it is not Linux).
    pub fn read(io: &dyn Io, root: &Path) -> Option<Self> {
        let text = |path: &str| String::from_utf8(io.read(&root.join(path)).ok()?).ok();
        let (all, own) = (text("proc/stat")?, text("proc/self/stat")?);
        let line = all.lines().next()?.strip_prefix("cpu ")?;
        let columns: Vec<u64> = line.split_whitespace().map_while(|it| it.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = columns[..] else { return None };
        let busy = user + nice + system + irq + softirq + steal;
        // The name in parentheses may hold spaces. Behind it, the times are the 12th and 13th.
        let mut own =
            own.rsplit_once(')')?.1.split_whitespace().skip(11).map_while(|it| it.parse::<u64>().ok());
        Some(Self { total: busy + idle + iowait, busy, own: own.next()? + own.next()? })
    }

    /// Whether other programs used little of the processors between two readings. Where the system does not say, it
    /// counts as quiet.
    pub fn is_quiet(before: Option<Self>, after: Option<Self>) -> bool {
        let (Some(before), Some(after)) = (before, after) else { return true };
        let spent = |of: fn(&Self) -> u64| of(&after).saturating_sub(of(&before)) as f64;
        let others = spent(|it| it.busy) - spent(|it| it.own);
        others <= spent(|it| it.total) * MAX_OTHERS_SHARE
    }
}

#[cfg(test)]
mod tests {
    use io::RealIo;
    use test_support::TempDir;

    use super::*;

    fn reading(stat: &str, own: &str) -> Option<CpuTimes> {
        let folder = TempDir::new();
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        std::fs::write(folder.path().join("proc/stat"), stat).unwrap();
        std::fs::write(folder.path().join("proc/self/stat"), own).unwrap();
        CpuTimes::read(&RealIo, folder.path())
    }

    #[test]
    fn times_are_read_as_linux_writes_them() {
        let own = "7 (a) b) R 1 7 7 0 -1 4194304 10 0 0 0 30 12 0 0 20 0 4 0 100 0 0";
        let read = reading("cpu  100 1 20 500 5 2 3 4 9 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", own);
        assert_eq!(read, Some(CpuTimes { total: 635, busy: 130, own: 42 }));
        for (stat, own) in [("", own), ("cpu 1 2 x\n", own), ("cpu  100 1 20 500 5 2 3 4 9 0\n", "7 (a) R 1")]
        {
            assert_eq!(reading(stat, own), None, "{stat:?} {own:?}");
        }
    }

    #[test]
    fn two_computing_programs_on_two_processors_are_not_quiet() {
        let at = |total, busy, own| Some(CpuTimes { total, busy, own });
        assert!(CpuTimes::is_quiet(at(1000, 100, 50), at(1200, 300, 240)));
        assert!(!CpuTimes::is_quiet(at(1000, 100, 50), at(1200, 300, 150)));
        assert!(CpuTimes::is_quiet(None, at(1, 1, 1)));
    }
}
