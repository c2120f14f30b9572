//! What this computer's processor runs: which kernels, on how many threads and which cores. Kernels
//! are verified against their reference before a processor first uses them. The thread count that
//! saturates memory is measured; both are cached per processor and version. An unreadable or
//! unwritable cache only costs a second check.

mod cache;
mod cores;
pub mod gpus;
mod other_load;
mod overhead;
pub mod speeds;
mod threads;

use std::path::Path;
use std::time::Duration;

use io::{Clock, Io};
use kernels::check;
use kernels::cpu::isa::IsaLevel;
use kernels::cpu::memory_nodes::MemoryNodes;
use kernels::cpu::thread_pool::MAX_THREADS;
use kernels::devices::{BandwidthTest, describe};

use cache::{CheckedCpu, CpuCache, CpuKey};
use contract::{CpuRequest, Error, ErrorKind, Result};
pub use cores::{Cores, Power};

/// The instruction set level that kernels run at, such as `avx512`.
pub fn isa_name() -> &'static str {
    IsaLevel::from_env().map_or("", |level| level.name())
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Machine {
    /// None: what `INGLENOOK_ISA` says, or the best there is, unchecked.
    pub level: Option<IsaLevel>,
    /// Kernels that compute wrongly on this processor: "rope (avx512)".
    pub wrong: Vec<String>,
    pub threads: usize,
    /// Of those, how many work on a token or a few; more wait for memory only.
    pub few_threads: usize,
    /// Processors that threads are bound to, in order. Empty: the system places them.
    pub cpus: Vec<usize>,
    /// Memory nodes that weights and contexts are taken from.
    pub memory: MemoryNodes,
    pub cores: Cores,
    pub power: Power,
    /// Why this number of threads.
    pub why: String,
}

impl Machine {
    /// Level and thread counts into how a model is loaded.
    pub fn apply(&self, options: &mut engine::LoadOptions) {
        options.isa = self.level;
        options.threads = Some(self.threads);
        options.few_threads = Some(self.few_threads);
        options.cpus = self.cpus.clone();
    }

    /// Takes memory from the chosen nodes, for this thread and those it starts from now on. What the user should know
    /// where that is refused: answers are the same, and perhaps slower.
    pub fn place_memory(&self) -> Option<Error> {
        let refused = self.memory.apply().err()?;
        let message = format!("Memory can't be placed on the chosen NUMA nodes: {refused}.");
        let remedy = "Choose \"System default\" for NUMA, or allow the call set_mempolicy where a container forbids it.";
        Some(Error::new(ErrorKind::Device, "cpu.numa", message, remedy))
    }

    /// What the user should know though nothing failed.
    pub fn notice(&self) -> Option<Error> {
        let level = self.level.filter(|_| !self.wrong.is_empty())?;
        let message = format!(
            "Some kernels give wrong results on this CPU: {}. {} is used instead.",
            self.wrong.join(", "),
            level.name()
        );
        let remedy = "Answers are correct, but slower. Please report this with the output of `nook devices`.";
        Some(Error::new(ErrorKind::Device, "kernels.mismatch", message, remedy))
    }
}

/// Whether what is remembered counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    Remember,
    /// Checks and measures everything again.
    Anew,
    /// What was never checked stays so: an answer at once.
    Only,
}

/// Looks at the computer, checks what was never checked, and decides. Error: kernels that can't even start.
pub fn prepare(io: &dyn Io, clock: &dyn Clock, asked: &CpuRequest, recall: Recall) -> Result<Machine> {
    let error = |error: kernels::KernelError| Error::from(engine::EngineError::from(error));
    let root = Path::new("/");
    let most = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let (cores, power) = (Cores::read(io, root, most), Power::read(io, root));
    let (default, why) = threads::default_count(&cores, most, power);
    let threads = asked.threads.unwrap_or(default).clamp(1, MAX_THREADS);
    let mut machine = Machine {
        level: None,
        wrong: Vec::new(),
        threads,
        few_threads: threads,
        cpus: threads::placed(&cores, asked.affinity, asked.numa),
        memory: threads::memory_nodes(&cores, asked.numa),
        why: asked.threads.map_or(why, |_| "as requested".to_owned()),
        power,
        cores,
    };
    let Some(folder) = &asked.folder else { return Ok(machine) };
    let key = CpuKey {
        name: describe().map_err(error)?.name,
        cores: machine.cores.n_physical(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut record = CpuCache::read(io, folder);
    let known = record.find(&key).filter(|_| recall != Recall::Anew).cloned();
    let checked = match known {
        Some(checked) => checked,
        None if recall == Recall::Only => return Ok(machine),
        None => {
            let verdict = check::highest_correct_level().map_err(error)?;
            let checked = CheckedCpu {
                level: verdict.level.name().to_owned(),
                wrong: verdict.wrong.iter().map(ToString::to_string).collect(),
                few_threads: few_threads(machine.cores.n_performance(), clock, recall).map_err(error)?,
            };
            record.set(key, checked.clone());
            // a disk that is full must not keep a model from loading
            if let Err(error) = record.write(io, folder) {
                tracing::warn!("the check of the kernels is not kept: {error}");
            }
            checked
        }
    };
    if !IsaLevel::is_forced() {
        machine.level = checked.level();
        machine.wrong = checked.wrong;
    }
    if asked.threads.is_none() {
        machine.few_threads = checked.few_threads.clamp(1, threads);
    }
    Ok(machine)
}

/// How long each number of threads is measured; there are at most four of them.
const TUNING: Duration = Duration::from_millis(150);

/// The fewest threads that read memory about as fast as all of them: measured, where there is a choice worth a wait.
fn few_threads(
    most: usize,
    clock: &dyn Clock,
    recall: Recall,
) -> std::result::Result<usize, kernels::KernelError> {
    if most <= threads::ALL_NEEDED && recall != Recall::Anew {
        return Ok(most);
    }
    let mut bandwidth = BandwidthTest::new()?;
    threads::tuned(most, &mut |n| bandwidth.measure(n, TUNING, &|| clock.monotonic()))
}

#[cfg(test)]
mod tests {
    use io::{RealClock, RealIo};

    use super::*;
    use test_support::TempDir;

    fn asked(folder: &Path) -> CpuRequest {
        CpuRequest { folder: Some(folder.to_owned()), ..CpuRequest::default() }
    }

    #[test]
    fn a_processor_is_checked_once_and_remembered() {
        let folder = TempDir::new();
        let clock = RealClock::new();
        let first = prepare(&RealIo, &clock, &asked(folder.path()), Recall::Remember).unwrap();
        assert_eq!((first.wrong.len(), first.notice().is_none()), (0, true));
        assert!(first.threads >= 1 && first.few_threads <= first.threads);
        // the cache is trusted: a level that was found wrong stays out of use, with a notice
        let path = folder.path().join(cache::FILE);
        let text = String::from_utf8(RealIo.read(&path).unwrap()).unwrap();
        let spoilt = text.replace("\"wrong\": []", "\"wrong\": [\"rope (avx512)\"]");
        let spoilt = spoilt.replace(&format!("\"{}\"", IsaLevel::detect().name()), "\"portable\"");
        RealIo.write_atomic(&path, spoilt.as_bytes()).unwrap();
        let second = prepare(&RealIo, &clock, &asked(folder.path()), Recall::Remember).unwrap();
        assert_eq!(second.level, Some(IsaLevel::Portable));
        let notice = second.notice().unwrap();
        assert!(
            notice.message().contains("rope (avx512)") && notice.message().contains("portable"),
            "{notice}"
        );
        // unless a fresh check is requested, or the cache is damaged
        let third = prepare(&RealIo, &clock, &asked(folder.path()), Recall::Anew).unwrap();
        assert_eq!((third.level, third.wrong.len()), (Some(IsaLevel::detect()), 0));
        RealIo.write_atomic(&path, b"{\"processors\": [{").unwrap();
        let fourth = prepare(&RealIo, &clock, &asked(folder.path()), Recall::Remember).unwrap();
        assert_eq!(fourth.level, Some(IsaLevel::detect()));
        assert!(serde_json::from_slice::<serde_json::Value>(&RealIo.read(&path).unwrap()).is_ok());
    }

    #[test]
    fn what_is_asked_for_is_done() {
        let machine = prepare(
            &RealIo,
            &RealClock::new(),
            &CpuRequest { threads: Some(1), affinity: true, ..CpuRequest::default() },
            Recall::Remember,
        );
        let machine = machine.unwrap();
        assert_eq!((machine.threads, machine.few_threads, machine.level), (1, 1, None));
        let mut options = engine::LoadOptions::default();
        machine.apply(&mut options);
        assert_eq!((options.threads, options.cpus), (Some(1), machine.cpus));
    }
}
