//! Whether a card is trusted: its kernels are checked against their reference when they are first used with a driver,
//! and what came of it is noted, as is what the driver compiled.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::device::{AdapterInfo, Device};
use super::{Gpu, shader};
use crate::backend::Backend;
use crate::backends::Check;
use crate::check::card::CardCheck;
use crate::error::KernelError;
use crate::fault::{GpuFault, Moment};
use crate::graph::Graph;
use crate::known::{CardKey, Known, Notebook};
use crate::precision::Precision;
use crate::sharing::Sharing;

impl AdapterInfo {
    /// By which what is found of it is kept: of another driver, or other kernels, everything is found out anew.
    pub fn key(&self) -> CardKey {
        let features = self.features.join(", ");
        CardKey {
            name: self.name.clone(),
            api: self.api.clone(),
            driver: self.driver.clone(),
            kernels: format!("{} {:016x} {features}", env!("CARGO_PKG_VERSION"), shader::fingerprint()),
        }
    }
}

/// The kernel that is wrong, if one is.
type Outcome = Result<Option<String>, KernelError>;

/// What is known of one card, and whether its kernels are checked at all.
pub(super) struct Trust {
    key: CardKey,
    notebook: Notebook,
    is_asked: bool,
}

impl Trust {
    pub fn new(info: &AdapterInfo, notebook: &Notebook, check: Check) -> Self {
        let is_asked = match check {
            Check::Cards => info.kind.is_hardware(),
            Check::All => true,
        };
        Self { key: info.key(), notebook: notebook.clone(), is_asked }
    }

    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub fn known(&self) -> Known {
        self.notebook.of(&self.key)
    }

    pub fn note(&self, change: impl FnOnce(&mut Known)) {
        self.notebook.change(&self.key, change);
    }
}

impl Device {
    /// Whether its driver keeps what it compiles.
    pub fn has_cache(&self) -> bool {
        self.device.features().contains(wgpu::Features::PIPELINE_CACHE)
    }

    /// What its driver compiled so far, for the next start. None: it keeps nothing.
    pub fn compiled(&self) -> Option<Vec<u8>> {
        self.pipelines.compiled()
    }

    /// Notes what the driver compiled.
    pub(super) fn keep_pipelines(&self) {
        let Some(compiled) = self.compiled() else { return };
        let differs = self.trust.known().pipelines.is_none_or(|known| *known != *compiled);
        if differs {
            self.trust.note(|known| known.pipelines = Some(compiled.into()));
        }
    }
}

impl Gpu {
    /// Whether the kernels that a graph uses compute on this card what their specification says; what was found right
    /// or wrong before is believed. Errors: the first that doesn't, and what the card may be tried without.
    pub fn check(&self, graph: &Graph) -> Result<(), KernelError> {
        let (known, used) = (self.gpu.trust.known(), self.gpu.used());
        let (precision, sharing) = (used.precision(), used.sharing());
        if let Some(kernel) = known.wrong {
            return Err(self.gpu.error(GpuFault::Wrong, kernel));
        }
        if let (Some(kernel), Sharing::Subgroups) = (known.subgroups, sharing) {
            return Err(self.gpu.error(GpuFault::Subgroups, kernel));
        }
        if let Some(kernel) = known.imprecise.get(precision.name()) {
            return Err(self.imprecise(kernel));
        }
        let new: Vec<CardCheck> = CardCheck::of(graph)
            .into_iter()
            .filter(|check| !known.right.contains(&check.name(precision, sharing)))
            .collect();
        for (check, outcome) in new.iter().zip(self.outcomes(&new, precision)) {
            let Some(kernel) = outcome? else {
                self.gpu.trust.note(|known| _ = known.right.insert(check.name(precision, sharing)));
                continue;
            };
            let gpu = &self.gpu;
            // the same without what it depends on is another check
            return Err(match (check.depends_on(precision), sharing) {
                (true, _) => {
                    let at = precision.name().to_owned();
                    gpu.trust.note(|known| _ = known.imprecise.insert(at, kernel.clone()));
                    self.imprecise(&kernel)
                }
                (false, Sharing::Subgroups) => {
                    gpu.trust.note(|known| known.subgroups = Some(kernel.clone()));
                    gpu.error(GpuFault::Subgroups, kernel)
                }
                (false, Sharing::Memory) => {
                    gpu.trust.note(|known| known.wrong = Some(kernel.clone()));
                    gpu.error(GpuFault::Wrong, kernel)
                }
            });
        }
        Ok(())
    }

    /// What came of each check, in their order. They run side by side: most of their time a driver compiles, and it
    /// compiles on as many cores as it is asked on.
    fn outcomes(&self, checks: &[CardCheck], precision: Precision) -> Vec<Outcome> {
        let gpu = &self.gpu;
        let make = || -> Box<dyn Backend> { Box::new(Self::unchecked(Arc::clone(gpu))) };
        let left = Mutex::new(checks.iter().enumerate());
        let outcomes = Mutex::new(Vec::with_capacity(checks.len()));
        let run = || {
            let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((at, check)) = next() {
                let outcome = check.run(&make, precision);
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((at, outcome));
            }
        };
        thread::scope(|scope| {
            let n_threads = thread::available_parallelism().map_or(1, usize::from).min(checks.len());
            for _ in 1..n_threads {
                // where no more threads are to be had, there are fewer
                let _ = thread::Builder::new().name("checks of a card".into()).spawn_scoped(scope, run);
            }
            run();
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcomes.sort_by_key(|(at, _)| *at);
        if let Some((_, first)) = outcomes.first_mut()
            && self.faults.next(Moment::Check).is_some()
        {
            *first = Ok(Some("what a test wanted to be wrong".to_owned()));
        }
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn imprecise(&self, kernel: &str) -> KernelError {
        let message = format!("{} gives wrong results: {kernel}", self.gpu.used().precision().name());
        self.gpu.error(GpuFault::Precision, message)
    }
}
