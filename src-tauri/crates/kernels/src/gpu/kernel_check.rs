//! Verifies kernels against their reference when a graph first uses them with a driver, and records the outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Gpu;
use super::adapter::AdapterInfo;
use crate::backend::Backend;
use crate::check::gpu::GpuCheck;
use crate::error::KernelError;
use crate::fault::{FaultPoint, GpuFault};
use crate::gpu_cache::{GpuCache, GpuFacts, GpuKey};
use crate::gpu_selector::VerificationScope;
use crate::graph::Graph;
use crate::lane_reduction::LaneReduction;
use crate::precision::Precision;

/// The wrong kernel, if any.
type CheckOutcome = Result<Option<String>, KernelError>;

/// The cached facts about one GPU, and whether its kernels are verified at all.
pub(super) struct KernelVerification {
    key: GpuKey,
    cache: GpuCache,
    is_enabled: bool,
}

impl KernelVerification {
    pub fn new(info: &AdapterInfo, cache: &GpuCache, scope: VerificationScope) -> Self {
        let is_enabled = match scope {
            VerificationScope::Hardware => info.kind.is_hardware(),
            VerificationScope::All => true,
        };
        Self { key: info.key(), cache: cache.clone(), is_enabled }
    }

    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub fn facts(&self) -> GpuFacts {
        self.cache.get(&self.key)
    }

    pub fn update(&self, change: impl FnOnce(&mut GpuFacts)) {
        self.cache.update(&self.key, change);
    }
}

impl Gpu {
    /// Verifies the kernels that a graph uses; earlier outcomes are taken from the cache. Errors: the first wrong kernel,
    /// with the fault that says what to retry without.
    pub fn verify(&self, graph: &Graph) -> Result<(), KernelError> {
        let (device, verification) = (&self.context.device, &self.context.verification);
        let (facts, features) = (verification.facts(), self.context.features());
        let (precision, reduction) = (features.precision(), features.lane_reduction());
        if let Some(kernel) = facts.wrong_kernel {
            return Err(device.error(GpuFault::Wrong, kernel));
        }
        if let (Some(kernel), LaneReduction::Subgroups) = (facts.wrong_with_subgroups, reduction) {
            return Err(device.error(GpuFault::Subgroups, kernel));
        }
        if let Some(kernel) = facts.wrong_in_precision.get(precision.name()) {
            return Err(self.wrong_in_precision(kernel));
        }
        let new: Vec<GpuCheck> = GpuCheck::of(graph)
            .into_iter()
            .filter(|check| !facts.passed_checks.contains(&check.name(precision, reduction)))
            .collect();
        for (check, outcome) in new.iter().zip(self.outcomes(&new, precision)) {
            let Some(kernel) = outcome? else {
                let name = check.name(precision, reduction);
                verification.update(|facts| _ = facts.passed_checks.insert(name));
                continue;
            };
            // a retry without the suspect is another check
            return Err(match (check.depends_on(precision), reduction) {
                (true, _) => {
                    let at = precision.name().to_owned();
                    verification.update(|facts| _ = facts.wrong_in_precision.insert(at, kernel.clone()));
                    self.wrong_in_precision(&kernel)
                }
                (false, LaneReduction::Subgroups) => {
                    verification.update(|facts| facts.wrong_with_subgroups = Some(kernel.clone()));
                    device.error(GpuFault::Subgroups, kernel)
                }
                (false, LaneReduction::SharedMemory) => {
                    verification.update(|facts| facts.wrong_kernel = Some(kernel.clone()));
                    device.error(GpuFault::Wrong, kernel)
                }
            });
        }
        Ok(())
    }

    /// The outcome of each check, in order. They run in parallel: most of the time is spent in the driver's compiler,
    /// which runs on the calling thread.
    fn outcomes(&self, checks: &[GpuCheck], precision: Precision) -> Vec<CheckOutcome> {
        let context = &self.context;
        let open = || -> Box<dyn Backend> { Box::new(Self::unverified(Arc::clone(context))) };
        let left = Mutex::new(checks.iter().enumerate());
        let outcomes = Mutex::new(Vec::with_capacity(checks.len()));
        let run = || {
            let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((at, check)) = next() {
                let outcome = check.run(&open, precision);
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((at, outcome));
            }
        };
        thread::scope(|scope| {
            let n_threads = thread::available_parallelism().map_or(1, usize::from).min(checks.len());
            for _ in 1..n_threads {
                // without further threads this one does all the work
                let _ = thread::Builder::new().name("GPU checks".into()).spawn_scoped(scope, run);
            }
            run();
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcomes.sort_by_key(|(at, _)| *at);
        if let Some((_, first)) = outcomes.first_mut()
            && self.faults.next(FaultPoint::Verification).is_some()
        {
            *first = Ok(Some("injected by a test".to_owned()));
        }
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn wrong_in_precision(&self, kernel: &str) -> KernelError {
        let message = format!("{} gives wrong results: {kernel}", self.context.features().precision().name());
        self.context.device.error(GpuFault::Precision, message)
    }
}
