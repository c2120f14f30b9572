//! The device that computes a run's products: the GPU that a model's answers would be computed by, or the CPU.

use std::path::PathBuf;

use contract::protocol::Backend;
use contract::{CpuRequest, Error, ErrorKind, GpuRequest, Result};
use engine::train::{Trainer, TrainerOptions};
use engine::{EngineError, LoadOptions};
use io::{Clock, RealIo};
use kernels::backends::BackendOptions;
use serde::{Deserialize, Serialize};
use weights::WeightFile;

use crate::machine::gpus::GpuPlanner;
use crate::machine::{self, Recall};

/// Where a run is computed. Runs that were begun before GPUs trained say nothing of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TuneDevice {
    /// Threads. None: all cores.
    pub threads: Option<usize>,
    /// `Auto`: the GPU, if there is one that is faster.
    #[serde(default)]
    pub backend: Backend,
    /// Which GPU.
    #[serde(default)]
    pub gpus: GpuRequest,
    /// Where findings about the machine are kept. None: `Auto` is the CPU.
    #[serde(default)]
    pub folder: Option<PathBuf>,
}

impl TuneDevice {
    /// Starts a trainer by `start` on the device. `notice` takes what the user should know though nothing failed.
    ///
    /// Errors: those of `start`; that the GPU that was asked for is not there.
    pub fn start(
        &self,
        file: &WeightFile,
        options: TrainerOptions,
        clock: &dyn Clock,
        notice: &mut dyn FnMut(Error),
        start: &mut dyn FnMut(TrainerOptions) -> engine::Result<Trainer>,
    ) -> Result<Trainer> {
        let options = TrainerOptions { threads: self.threads, ..options };
        if matches!(self.backend, Backend::Cpu | Backend::Scalar) {
            return Ok(start(options)?);
        }
        let mut placed = LoadOptions::default();
        let machine =
            CpuRequest { folder: self.folder.clone(), threads: self.threads, ..CpuRequest::default() };
        machine::prepare(&RealIo, clock, &machine, Recall::Only)?.apply(&mut placed);
        let cards = GpuPlanner::of(&machine, &self.gpus, clock);
        let placement = cards.place(self.backend, file, &mut placed)?;
        placement.notice.clone().into_iter().for_each(&mut *notice);
        if !placed.devices.has_gpu() {
            return Ok(start(options)?);
        }
        let gpu = BackendOptions {
            gpu: placed.gpus.first().cloned().unwrap_or_default(),
            faults: placed.faults,
            gpu_cache: placed.gpu_cache,
            verification: placed.gpu_verification,
            ..BackendOptions::default()
        };
        let is_chosen = self.backend == Backend::Gpu;
        let mut on_gpu = || {
            let mut trainer = start(TrainerOptions { gpu: Some(gpu.clone()), ..options.clone() })?;
            if !is_chosen {
                trainer.keep_faster(&|| clock.monotonic())?;
            }
            Ok(trainer)
        };
        let started: engine::Result<Trainer> = on_gpu();
        cards.keep(&placement, started.is_ok());
        match started {
            Err(error) if !is_chosen && error.code().starts_with("kernels.gpu") => {
                notice(error.into());
                Ok(start(options)?)
            }
            started => Ok(started?),
        }
    }
}

/// The notice that a run's GPU has failed.
pub(super) fn gpu_failed(error: &EngineError) -> Error {
    let message = format!("The GPU failed. The CPU takes over, and the run goes on without loss. ({error}.)");
    Error::new(ErrorKind::Device, error.code(), message, error.remedy())
}
