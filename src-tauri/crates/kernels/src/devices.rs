//! What this machine can compute with: for `nook devices` and bug reports.

use std::time::Duration;

use crate::cpu::arena::AlignedVec;
use crate::cpu::isa::IsaLevel;
use crate::cpu::thread_pool::ThreadPool;
use crate::error::KernelError;

/// The processor.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuInfo {
    /// as the processor calls itself; empty where it does not
    pub name: String,
    /// of those that kernels care for
    pub features: Vec<&'static str>,
    /// highest level present
    pub detected: IsaLevel,
    /// level in use: `INGLENOOK_ISA` may lower it
    pub level: IsaLevel,
    /// threads the process may run at once
    pub n_threads: usize,
}

/// Describes the processor. Errors: `INGLENOOK_ISA` names an unknown or absent level.
pub fn describe() -> Result<CpuInfo, KernelError> {
    Ok(CpuInfo {
        name: name(),
        features: features(),
        detected: IsaLevel::detect(),
        level: IsaLevel::from_env()?,
        n_threads: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

#[cfg(target_arch = "x86_64")]
fn name() -> String {
    let brand = crate::cpu::isa::brand();
    String::from_utf8_lossy(&brand).trim_matches(['\0', ' ']).to_owned()
}

#[cfg(not(target_arch = "x86_64"))]
fn name() -> String {
    String::new()
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    macro_rules! present {
        ($($name:tt)*) => { [$(($name, is_x86_feature_detected!($name))),*] };
    }
    let all =
        present!("avx2" "fma" "f16c" "avx512f" "avx512bw" "avx512vl" "avx512dq" "avx512vnni" "avx512bf16");
    all.into_iter().filter_map(|(name, present)| present.then_some(name)).collect()
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    let dot = std::arch::is_aarch64_feature_detected!("dotprod").then_some("dotprod");
    let i8mm = std::arch::is_aarch64_feature_detected!("i8mm").then_some("i8mm");
    ["neon"].into_iter().chain(dot).chain(i8mm).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

/// Bytes that bandwidth is measured over: larger than the last-level cache of any desktop.
const MEASURED_BYTES: usize = 512 * 1024 * 1024;
/// Bytes a thread reads before it takes the next piece.
const PIECE: usize = 1024 * 1024;

/// Memory to be read for measuring.
pub struct Bandwidth {
    buffer: AlignedVec<f32>,
}

impl Bandwidth {
    /// Errors: no memory for the buffer.
    pub fn new() -> Result<Self, KernelError> {
        let mut buffer = AlignedVec::<f32>::zeroed(MEASURED_BYTES / size_of::<f32>(), "the bandwidth test")?;
        // written first: pages never written all read from one page of zeros
        buffer.iter_mut().step_by(1024).for_each(|x| *x = 1.0);
        Ok(Self { buffer })
    }

    /// Bytes per second that `n_threads` read together: the best pass within `budget` (at least one). `now` is a
    /// monotonic clock. Errors: no threads.
    pub fn measure(
        &mut self,
        n_threads: usize,
        budget: Duration,
        now: &dyn Fn() -> Duration,
    ) -> Result<f64, KernelError> {
        passes(&self.buffer, &mut ThreadPool::new(n_threads)?, budget, now)
    }
}

/// As `Bandwidth::measure`, once.
pub fn measure_bandwidth(
    n_threads: usize,
    budget: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<f64, KernelError> {
    Bandwidth::new()?.measure(n_threads, budget, now)
}

fn passes(
    data: &[f32],
    pool: &mut ThreadPool,
    budget: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<f64, KernelError> {
    let n = PIECE / size_of::<f32>();
    let ones = [1.0; 256];
    let dot = crate::ops::dot::LEVELS.at(IsaLevel::detect());
    let begin = now();
    let mut best = 0.0f64;
    loop {
        let start = now();
        let pass = pool.run(data.len() / n, &|i, _| {
            for x in data[i * n..(i + 1) * n].chunks_exact(ones.len()) {
                std::hint::black_box(dot(x, &ones));
            }
        });
        pass.map_err(|message| KernelError::Panicked { node: "bandwidth".into(), message })?;
        let end = now();
        best = best.max(MEASURED_BYTES as f64 / (end - start).as_secs_f64().max(1e-9));
        if end - begin >= budget {
            return Ok(best);
        }
    }
}
