//! What has been measured of GPUs, in a small file; kernels compiled by their drivers are in the
//! cache. If damaged, either counts as empty.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::kv::checksum::xxh64;
use io::{Io, IoError};
use kernels::{GpuCache, GpuFacts, GpuKey};
use serde::{Deserialize, Serialize};

use super::benchmark::Race;

/// In the data folder.
pub const FILE: &str = "cards.json";

/// Remembered pairs of GPU and driver.
const MAX_KEPT: usize = 16;

/// A processor computes on more threads or fewer: on the mains, on battery, as asked for.
const MAX_RACES: usize = 4;

/// What drivers compiled is some megabytes; far more is none of ours.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct GpuRecordEntry {
    name: String,
    api: String,
    driver: String,
    kernels: String,
    /// Checks that it passed, and the first that it didn't.
    right: BTreeSet<String>,
    wrong: Option<String>,
    /// The first that it didn't by its subgroups, which can be done without.
    #[serde(default)]
    subgroups: Option<String>,
    /// The same of precisions.
    #[serde(default)]
    imprecise: BTreeMap<String, String>,
    /// The fastest shapes of kernels.
    tuned: BTreeMap<String, String>,
    /// Against the processor, by how that is asked to compute; the newest last.
    races: Vec<Race>,
    /// Bytes that a model may take of it.
    room: Option<u64>,
    /// Why it could not be measured.
    failed: Option<String>,
    /// A model was loaded with it.
    proven: bool,
}

impl GpuRecordEntry {
    fn is_of(&self, key: &GpuKey) -> bool {
        let GpuKey { name, api, driver, kernels } = key;
        (&self.name, &self.api, &self.driver, &self.kernels) == (name, api, driver, kernels)
    }
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// Oldest first.
    cards: Vec<GpuRecordEntry>,
    /// Probes of GPUs that began and never finished.
    #[serde(default)]
    pub unfinished: u32,
}

impl GpuRecord {
    pub fn read(io: &dyn Io, folder: &Path) -> Self {
        let bytes = io.read(&folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub fn write(&self, io: &dyn Io, folder: &Path) -> Result<(), IoError> {
        io.create_dir_all(folder)?;
        let bytes = serde_json::to_vec_pretty(self).expect("plain data becomes JSON");
        io.write_atomic(&folder.join(FILE), &bytes)
    }

    fn find(&self, key: &GpuKey) -> Option<&GpuRecordEntry> {
        self.cards.iter().find(|entry| entry.is_of(key))
    }

    /// The entry of a GPU, replacing results of earlier drivers and kernels.
    fn entry(&mut self, key: &GpuKey) -> &mut GpuRecordEntry {
        if self.find(key).is_none() {
            self.cards.retain(|entry| (&entry.name, &entry.api) != (&key.name, &key.api));
            let GpuKey { name, api, driver, kernels } = key.clone();
            self.cards.push(GpuRecordEntry { name, api, driver, kernels, ..GpuRecordEntry::default() });
            let n_old = self.cards.len().saturating_sub(MAX_KEPT);
            self.cards.drain(..n_old);
        }
        let at = self.cards.iter().position(|entry| entry.is_of(key));
        &mut self.cards[at.expect("it was put there")]
    }

    pub fn forget(&mut self, key: &GpuKey) {
        self.cards.retain(|entry| !entry.is_of(key));
    }

    /// Why a GPU is not used even on request. None: it may be.
    pub fn why_not(&self, key: &GpuKey) -> Option<String> {
        let entry = self.find(key)?;
        let wrong = entry.wrong.as_ref().map(|kernel| format!("it computes wrongly: {kernel}"));
        wrong.or_else(|| entry.failed.clone())
    }

    /// None: never measured against this processor.
    pub fn race(&self, key: &GpuKey, processor: &str) -> Option<&Race> {
        let is_it = |race: &&Race| race.processor == processor && race.gpu.is_sound() && race.cpu.is_sound();
        self.find(key)?.races.iter().find(is_it)
    }

    /// `room`: bytes of it that a model may take.
    pub fn set_race(&mut self, key: &GpuKey, race: Race, room: Option<u64>) {
        let entry = self.entry(key);
        entry.races.retain(|other| other.processor != race.processor);
        entry.races.push(race);
        let n_old = entry.races.len().saturating_sub(MAX_RACES);
        entry.races.drain(..n_old);
        entry.room = room;
    }

    pub fn set_failed(&mut self, key: &GpuKey, why: String) {
        self.entry(key).failed = Some(why);
    }

    pub fn is_proven(&self, key: &GpuKey) -> bool {
        self.find(key).is_some_and(|entry| entry.proven)
    }

    pub fn prove(&mut self, key: &GpuKey) {
        self.entry(key).proven = true;
    }

    /// The cached records of some GPUs, with the kernels that their drivers compiled.
    pub fn notebook(&self, io: &dyn Io, cache: Option<&Path>, keys: Vec<GpuKey>) -> GpuCache {
        let of = |key: GpuKey| {
            let entry = self.find(&key).cloned().unwrap_or_default();
            let pipelines = cache.and_then(|cache| compiled(io, &path(cache, &key)));
            let GpuRecordEntry { right, wrong, subgroups, imprecise, tuned, .. } = entry;
            let facts = GpuFacts {
                passed_checks: right,
                wrong_kernel: wrong,
                wrong_with_subgroups: subgroups,
                wrong_in_precision: imprecise,
                tuned_shapes: tuned,
                pipelines,
            };
            (key, facts)
        };
        GpuCache::new(keys.into_iter().map(of).collect())
    }

    /// Records later findings about a GPU.
    pub fn found(&mut self, io: &dyn Io, cache: Option<&Path>, key: &GpuKey, facts: &GpuFacts) {
        let entry = self.entry(key);
        let facts = facts.clone();
        (entry.right, entry.tuned) = (facts.passed_checks, facts.tuned_shapes);
        (entry.wrong, entry.subgroups) = (facts.wrong_kernel, facts.wrong_with_subgroups);
        entry.imprecise = facts.wrong_in_precision;
        let (Some(cache), Some(pipelines)) = (cache, facts.pipelines) else { return };
        if let Err(error) = keep(io, cache, &path(cache, key), &pipelines) {
            tracing::warn!("what the driver compiled is not kept: {error}");
        }
    }

    /// The GPU that won its last benchmark and may be used: its name, and its memory limit.
    pub fn best(&self) -> Option<(String, Option<u64>)> {
        let wins = |entry: &&GpuRecordEntry| {
            let is_won = entry.races.last().is_some_and(Race::is_won);
            is_won && entry.wrong.is_none() && entry.failed.is_none()
        };
        let best = self.cards.iter().rev().find(wins)?;
        Some((best.name.clone(), best.room))
    }
}

/// Keyed by GPU and driver.
fn path(cache: &Path, key: &GpuKey) -> PathBuf {
    cache.join(format!("{:016x}.pipelines", xxh64(format!("{key:?}").as_bytes())))
}

/// A checksum, then the bytes. None: there are none, or they are damaged.
fn compiled(io: &dyn Io, path: &Path) -> Option<Arc<[u8]>> {
    io.len(path).ok().filter(|len| *len <= MAX_BYTES)?;
    let bytes = io.read(path).ok()?;
    let (sum, bytes) = bytes.split_first_chunk()?;
    (u64::from_le_bytes(*sum) == xxh64(bytes)).then(|| bytes.into())
}

fn keep(io: &dyn Io, cache: &Path, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
    if compiled(io, path).is_some_and(|kept| *kept == *bytes) {
        return Ok(());
    }
    io.create_dir_all(cache)?;
    io.write_atomic(path, &[&xxh64(bytes).to_le_bytes(), bytes].concat())
}
