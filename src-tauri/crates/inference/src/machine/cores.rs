//! The processors of this computer as the system describes them, and its power source. Read from
//! Linux's folders below a root; without them, every processor counts as a separate core on mains
//! power.

use std::path::Path;

use io::Io;

/// One processor of the system's counting that stands for its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// The system's number.
    pub cpu: usize,
    /// Highest clock, where it is known.
    pub khz: Option<u64>,
    /// The part of memory that hangs at it.
    pub node: usize,
}

/// The cores that this process may use, one processor each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    cores: Vec<Core>,
}

/// Share of the fastest core's clock from which a core counts as fast: cores of one kind differ by less, those that
/// save power by more.
const FAST: f64 = 0.85;

impl Cores {
    /// `most`: processors that the process may use where the system says no more.
    pub fn read(io: &dyn Io, root: &Path, most: usize) -> Self {
        let cpus = root.join("sys/devices/system/cpu");
        let status = text(io, &root.join("proc/self/status")).unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let nodes = nodes(io, root);
        let mut cores: Vec<(usize, Core)> = Vec::new();
        for cpu in allowed.map(list).unwrap_or_default() {
            let folder = cpus.join(format!("cpu{cpu}"));
            let Some(siblings) = text(io, &folder.join("topology/thread_siblings_list")) else { continue };
            let first = list(&siblings).first().copied().unwrap_or(cpu);
            if cores.iter().any(|(of, _)| *of == first) {
                continue;
            }
            let khz =
                text(io, &folder.join("cpufreq/cpuinfo_max_freq")).and_then(|khz| khz.trim().parse().ok());
            let node = nodes.iter().position(|node| node.contains(&cpu)).unwrap_or(0);
            cores.push((first, Core { cpu, khz, node }));
        }
        if cores.is_empty() {
            let plain = |cpu| Core { cpu, khz: None, node: 0 };
            return Self { cores: (0..most.max(1)).map(plain).collect() };
        }
        let mut cores: Vec<Core> = cores.into_iter().map(|(_, core)| core).collect();
        // fast ones first; equals in the system's order
        cores.sort_by_key(|core| std::cmp::Reverse(core.khz));
        Self { cores }
    }

    /// Fast ones first.
    pub fn all(&self) -> &[Core] {
        &self.cores
    }

    pub fn n_physical(&self) -> usize {
        self.cores.len()
    }

    /// Cores that are not of a slower kind.
    pub fn n_performance(&self) -> usize {
        let fastest = self.cores.iter().filter_map(|core| core.khz).max().unwrap_or(0);
        let is_fast = |core: &&Core| core.khz.is_none_or(|khz| khz as f64 >= FAST * fastest as f64);
        self.cores.iter().filter(is_fast).count()
    }

    /// NUMA nodes of these cores.
    pub fn nodes(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = self.cores.iter().map(|core| core.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// The processors of each part of memory.
fn nodes(io: &dyn Io, root: &Path) -> Vec<Vec<usize>> {
    let folder = root.join("sys/devices/system/node");
    let cpus = |node: usize| text(io, &folder.join(format!("node{node}/cpulist")));
    (0..).map_while(cpus).map(|text| list(&text)).collect()
}

/// Where power comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Or unknown.
    Mains,
    Battery,
}

impl Power {
    pub fn read(io: &dyn Io, root: &Path) -> Self {
        let supplies = io.list(&root.join("sys/class/power_supply")).unwrap_or_default();
        let says = |folder: &Path, file: &str, word: &str| {
            text(io, &folder.join(file)).is_some_and(|text| text.trim().eq_ignore_ascii_case(word))
        };
        // a mouse's battery says it is a device's
        let of_system = |folder: &&std::path::PathBuf| !says(folder, "scope", "Device");
        let discharging = |folder: &std::path::PathBuf| {
            says(folder, "type", "Battery") && says(folder, "status", "Discharging")
        };
        match supplies.iter().filter(of_system).any(discharging) {
            true => Self::Battery,
            false => Self::Mains,
        }
    }
}

fn text(io: &dyn Io, path: &Path) -> Option<String> {
    String::from_utf8(io.read(path).ok()?).ok()
}

/// Most processors of a range: a line that says more is nonsense.
const MOST: usize = 4096;

/// "0-3,8" → 0, 1, 2, 3, 8. What can't be read is left out.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<usize>().ok()?);
        Some(first..=last.min(MOST))
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use io::RealIo;
    use test_support::TempDir;

    use super::*;

    /// A made-up computer: (processor, siblings, kHz, node).
    pub fn computer(allowed: &str, cpus: &[(usize, &str, u64, usize)]) -> (TempDir, Cores) {
        let root = TempDir::new();
        let write = |path: String, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/status".into(), &format!("Name:\tnook\nCpus_allowed_list:\t{allowed}\n"));
        let n_nodes = cpus.iter().map(|cpu| cpu.3 + 1).max().unwrap_or(0);
        for node in 0..n_nodes {
            let of = cpus.iter().filter(|cpu| cpu.3 == node).map(|cpu| cpu.0.to_string());
            let of = of.collect::<Vec<_>>().join(",");
            write(format!("sys/devices/system/node/node{node}/cpulist"), &of);
        }
        for (cpu, siblings, khz, _) in cpus {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            write(format!("{folder}/topology/thread_siblings_list"), siblings);
            write(format!("{folder}/cpufreq/cpuinfo_max_freq"), &format!("{khz}\n"));
        }
        let cores = Cores::read(&RealIo, root.path(), 64);
        (root, cores)
    }

    #[test]
    fn lists_are_read() {
        for (text, expected) in [
            ("0-3,8\n", vec![0, 1, 2, 3, 8]),
            ("5", vec![5]),
            ("", vec![]),
            ("x,2,3-", vec![2]),
            ("9-7", vec![]),
        ] {
            assert_eq!(list(text), expected, "{text}");
        }
        assert!(list("0-99999999999").len() <= MOST + 1);
    }

    #[test]
    fn siblings_count_once_and_fast_cores_come_first() {
        // two fast cores with two threads each, two slow ones
        let cpus = [
            (0, "0-1", 3_800_000, 0),
            (1, "0-1", 3_800_000, 0),
            (2, "2", 2_500_000, 0),
            (3, "3", 2_500_000, 0),
            (4, "4-5", 4_000_000, 0),
            (5, "4-5", 4_000_000, 0),
        ];
        let (_root, cores) = computer("0-5", &cpus);
        let order: Vec<usize> = cores.all().iter().map(|core| core.cpu).collect();
        assert_eq!((order, cores.n_physical(), cores.n_performance()), (vec![4, 0, 2, 3], 4, 2));
        let (_root, cores) = computer("1-2", &cpus);
        let order: Vec<usize> = cores.all().iter().map(|core| core.cpu).collect();
        assert_eq!((order, cores.n_performance()), (vec![1, 2], 1));
    }

    #[test]
    fn where_nothing_is_said_every_processor_is_a_core() {
        let root = TempDir::new();
        let cores = Cores::read(&RealIo, root.path(), 6);
        assert_eq!((cores.n_physical(), cores.n_performance(), cores.nodes()), (6, 6, vec![0]));
        assert_eq!(Power::read(&RealIo, root.path()), Power::Mains);
    }

    #[test]
    fn a_battery_that_empties_is_told_from_one_that_loads() {
        for (scope, status, expected) in [
            ("System", "Discharging", Power::Battery),
            ("System", "Charging", Power::Mains),
            ("Device", "Discharging", Power::Mains),
        ] {
            let root = TempDir::new();
            let folder = root.path().join("sys/class/power_supply/BAT0");
            fs::create_dir_all(&folder).unwrap();
            for (file, text) in [("type", "Battery\n"), ("status", status), ("scope", scope)] {
                fs::write(folder.join(file), text).unwrap();
            }
            assert_eq!(Power::read(&RealIo, root.path()), expected, "{scope} {status}");
        }
    }
}
