//! Describes the CPU and measures its memory bandwidth: for `nook devices`, memory plans and bug reports.

use std::time::Duration;

use crate::cpu::arena::AlignedVec;
use crate::cpu::isa::IsaLevel;
use crate::cpu::thread_pool::ThreadPool;
use crate::error::KernelError;

/// Properties of the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuInfo {
    /// brand string; empty where the CPU does not report one
    pub name: String,
    /// instruction-set features that kernels can use
    pub features: Vec<&'static str>,
    /// highest level that the CPU supports
    pub detected: IsaLevel,
    /// level in use: `INGLENOOK_ISA` may lower it
    pub level: IsaLevel,
    /// threads that the process may run in parallel
    pub n_threads: usize,
}

/// Describes the CPU. Errors: `INGLENOOK_ISA` names an unknown or absent level.
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

/// Bytes read per pass: more than the last-level cache of any desktop.
const MEASURED_BYTES: usize = 512 * 1024 * 1024;
/// Bytes that a thread reads before it takes the next block.
const BLOCK_BYTES: usize = 1024 * 1024;

/// A memory bandwidth measurement with its buffer.
pub struct BandwidthTest {
    buffer: AlignedVec<f32>,
}

impl BandwidthTest {
    /// Allocates the buffer. Errors: no memory.
    pub fn new() -> Result<Self, KernelError> {
        let mut buffer = AlignedVec::<f32>::zeroed(MEASURED_BYTES / size_of::<f32>(), "the bandwidth test")?;
        // write first: pages that were never written all map to one page of zeros
        buffer.iter_mut().step_by(1024).for_each(|x| *x = 1.0);
        Ok(Self { buffer })
    }

    /// Returns the bytes per second that `n_threads` read together: the best pass within `budget`, at least one.
    /// `now` is a monotonic clock. Errors: no threads.
    pub fn measure(
        &mut self,
        n_threads: usize,
        budget: Duration,
        now: &dyn Fn() -> Duration,
    ) -> Result<f64, KernelError> {
        best_pass(&self.buffer, &mut ThreadPool::new(n_threads)?, budget, now)
    }
}

/// Measures once, as `BandwidthTest::measure`.
pub fn measure_bandwidth(
    n_threads: usize,
    budget: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<f64, KernelError> {
    BandwidthTest::new()?.measure(n_threads, budget, now)
}

fn best_pass(
    data: &[f32],
    pool: &mut ThreadPool,
    budget: Duration,
    now: &dyn Fn() -> Duration,
) -> Result<f64, KernelError> {
    let n = BLOCK_BYTES / size_of::<f32>();
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
