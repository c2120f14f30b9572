//! What has been measured of processors, in a small file. A damaged one counts as empty.

use std::path::{Path, PathBuf};

use io::{Io, IoError};
use kernels::cpu::isa::IsaLevel;
use serde::{Deserialize, Serialize};

/// In the data folder.
pub const FILE: &str = "processors.json";

/// Processors that are remembered: a disk that moves from computer to computer must not grow a file without end.
const MAX_KEPT: usize = 16;

/// Which processor, and which version looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuKey {
    pub name: String,
    pub cores: usize,
    pub version: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedCpu {
    /// The best level whose kernels are right.
    pub level: String,
    /// Kernels that are not.
    pub wrong: Vec<String>,
    /// Threads that keep memory busy.
    pub few_threads: usize,
}

impl CheckedCpu {
    /// None: unknown, or not a level of this processor.
    pub fn level(&self) -> Option<IsaLevel> {
        IsaLevel::present().find(|level| level.name() == self.level)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CpuCacheEntry {
    #[serde(flatten)]
    key: CpuKey,
    #[serde(flatten)]
    checked: CheckedCpu,
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCache {
    /// Oldest first.
    processors: Vec<CpuCacheEntry>,
}

impl CpuCache {
    pub fn read(io: &dyn Io, folder: &Path) -> Self {
        let bytes = io.read(&path(folder)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// None: never looked at, or what was found can't be.
    pub fn find(&self, key: &CpuKey) -> Option<&CheckedCpu> {
        let found = self.processors.iter().find(|entry| entry.key == *key).map(|entry| &entry.checked);
        found.filter(|checked| checked.level().is_some() && checked.few_threads > 0)
    }

    /// In place of what earlier versions found.
    pub fn set(&mut self, key: CpuKey, checked: CheckedCpu) {
        self.processors.retain(|entry| (&entry.key.name, entry.key.cores) != (&key.name, key.cores));
        self.processors.push(CpuCacheEntry { key, checked });
        let n_old = self.processors.len().saturating_sub(MAX_KEPT);
        self.processors.drain(..n_old);
    }

    pub fn write(&self, io: &dyn Io, folder: &Path) -> Result<(), IoError> {
        io.create_dir_all(folder)?;
        let bytes = serde_json::to_vec_pretty(self).expect("plain data becomes JSON");
        io.write_atomic(&path(folder), &bytes)
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

#[cfg(test)]
mod tests {
    use io::RealIo;

    use super::*;
    use test_support::TempDir;

    fn key(name: &str, version: &str) -> CpuKey {
        CpuKey { name: name.into(), cores: 2, version: version.into() }
    }

    fn checked(level: &str, few_threads: usize) -> CheckedCpu {
        CheckedCpu { level: level.into(), wrong: Vec::new(), few_threads }
    }

    #[test]
    fn what_was_written_is_found_by_the_same_version_only() {
        let folder = TempDir::new();
        let mut record = CpuCache::read(&RealIo, folder.path());
        record.set(key("a", "1"), checked("portable", 2));
        record.write(&RealIo, folder.path()).unwrap();
        let mut record = CpuCache::read(&RealIo, folder.path());
        assert_eq!(record.find(&key("a", "1")), Some(&checked("portable", 2)));
        assert_eq!((record.find(&key("a", "2")), record.find(&key("b", "1"))), (None, None));
        record.set(key("a", "2"), checked("no level", 2));
        record.set(key("b", "2"), checked("portable", 0));
        assert_eq!((record.find(&key("a", "2")), record.find(&key("b", "2"))), (None, None));
        (0..100).for_each(|i| record.set(key(&i.to_string(), "1"), checked("portable", 1)));
        assert_eq!(record.processors.len(), MAX_KEPT);
    }
}
