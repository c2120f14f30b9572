//! The handle of one opened GPU: device, queue, limits and reported faults. Never panics on what a driver does: errors
//! are recorded by callback and returned as `KernelError::Gpu`. Knows nothing of kernels; see `GpuContext`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::adapter::AdapterInfo;
use super::cost::{MAX_FAST_SUBMISSION_COST, MAX_SUBMISSION_COST};
use super::features::{GpuFeatures, GpuOptions};
use crate::error::KernelError;
use crate::fault::{FaultLog, FaultPlan, FaultPoint, GpuFault};

/// Longest time that one submission may take: far above any real one, so that only a hung GPU is given up.
const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(120);

/// An opened GPU.
pub struct Device {
    info: AdapterInfo,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: wgpu::Limits,
    features: GpuFeatures,
    /// cost limit of one submission: see `cost.rs`
    pub(super) max_submission_cost: u64,
    faults: FaultLog,
    /// faults that a test injects
    fault_plan: OnceLock<FaultPlan>,
}

/// Enables wgpu's experimental features where one of them was requested.
fn experimental(features: wgpu::Features) -> wgpu::ExperimentalFeatures {
    match features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        // SAFETY: wgpu requires us to accept that these features may be unsound. They are off unless a user turns them
        // on, and then only our own shaders use them.
        true => unsafe { wgpu::ExperimentalFeatures::enabled() },
        false => wgpu::ExperimentalFeatures::disabled(),
    }
}

/// The kind of fault that a wgpu error is.
pub(super) fn fault_of(error: &wgpu::Error) -> GpuFault {
    match error {
        wgpu::Error::OutOfMemory { .. } => GpuFault::Memory,
        wgpu::Error::Validation { .. } | wgpu::Error::Internal { .. } => GpuFault::Invalid,
    }
}

/// The most lanes that a workgroup may have.
pub(super) fn max_lanes(limits: &wgpu::Limits) -> u32 {
    limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x)
}

impl Device {
    /// Opens `adapter`. Errors: it can't be opened, or lacks the requested precision.
    pub(super) fn open(
        info: AdapterInfo,
        adapter: &wgpu::Adapter,
        options: GpuOptions,
    ) -> Result<Arc<Self>, KernelError> {
        let mut limits = adapter.limits();
        if let Some(max_bytes) = options.max_binding_bytes {
            limits.max_storage_buffer_binding_size = limits.max_storage_buffer_binding_size.min(max_bytes);
        }
        let features = options.required_features(adapter).map_err(|message| {
            let (fault, adapter) = (GpuFault::Precision, info.name.clone());
            KernelError::Gpu { fault, adapter, message: format!("{}: {message}", options.precision.name()) }
        })?;
        let (device, queue) = super::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("inglenook"),
            required_features: features,
            required_limits: limits.clone(),
            experimental_features: experimental(features),
            ..wgpu::DeviceDescriptor::default()
        }))
        .map_err(|error| {
            match features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
                // it may open without
                true => KernelError::Gpu {
                    fault: GpuFault::Precision,
                    adapter: info.name.clone(),
                    message: format!("cooperative matrices: {error}"),
                },
                false => KernelError::gpu_absent(&format!("{} could not be opened: {error}", info.name)),
            }
        })?;
        let faults = FaultLog::default();
        let log = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error| log.record(fault_of(&error), error.to_string())));
        let log = faults.clone();
        device.set_device_lost_callback(move |reason, message| match reason {
            // we dropped it ourselves
            wgpu::DeviceLostReason::Destroyed => {}
            wgpu::DeviceLostReason::Unknown => log.record(GpuFault::Lost, message),
        });
        let features = GpuFeatures::new(features, info.subgroup[0]);
        let default = if features.matrices { MAX_FAST_SUBMISSION_COST } else { MAX_SUBMISSION_COST };
        let max_submission_cost = options.max_submission_cost.unwrap_or(default);
        let fault_plan = OnceLock::new();
        Ok(Arc::new(Self { info, device, queue, limits, features, max_submission_cost, faults, fault_plan }))
    }

    /// The adapter that was opened.
    pub fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// The optional features that kernels use.
    pub fn features(&self) -> GpuFeatures {
        self.features
    }

    /// An error of this GPU.
    pub(super) fn error(&self, fault: GpuFault, message: impl Into<String>) -> KernelError {
        KernelError::Gpu { fault, adapter: self.info.name.clone(), message: message.into() }
    }

    /// Applies a test's fault plan to allocations too. Only the first plan counts.
    pub(super) fn set_fault_plan(self: &Arc<Self>, plan: &FaultPlan) {
        if *plan != FaultPlan::default() {
            self.fault_plan.get_or_init(|| {
                let device = Arc::downgrade(self);
                plan.watch(Box::new(move || device.upgrade().map(|device| device.allocated_bytes())));
                plan.clone()
            });
        }
    }

    /// Bytes that the driver's allocator holds for us.
    fn allocated_bytes(&self) -> u64 {
        self.device.generate_allocator_report().map_or(0, |report| report.total_allocated_bytes)
    }

    /// Fails an allocation of `n_bytes` if a test's fault plan says so.
    pub(super) fn fail_as_planned(&self, n_bytes: u64) -> Result<(), KernelError> {
        let Some(plan) = self.fault_plan.get() else { return Ok(()) };
        match plan.next(FaultPoint::Allocation) {
            Some(fault) => Err(self.error(fault, "injected by a test")),
            None if !plan.has_memory(n_bytes) => {
                Err(self.error(GpuFault::Memory, format!("a test leaves no memory for {n_bytes} bytes")))
            }
            None => Ok(()),
        }
    }

    /// Injects the fault that a test planned before a submission. Returns whether the results must be spoiled.
    pub(super) fn fail_submission(&self, plan: &FaultPlan) -> Result<bool, KernelError> {
        match plan.next(FaultPoint::Submission) {
            None => Ok(false),
            Some(GpuFault::Wrong) => Ok(true),
            Some(GpuFault::Lost) => {
                self.lose("injected by a test");
                self.check().map(|()| false)
            }
            Some(fault) => Err(self.error(fault, "injected by a test")),
        }
    }

    /// Marks the GPU as lost, as the driver would.
    pub(super) fn lose(&self, message: &str) {
        self.faults.record(GpuFault::Lost, message.to_owned());
    }

    /// Returns the fault recorded for this thread outside of any error scope since the last call.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        match self.faults.take() {
            None => Ok(()),
            Some((fault, message)) => Err(self.error(fault, message)),
        }
    }

    /// Waits until everything submitted is done. Errors: recorded faults, a timeout.
    pub(super) fn wait(&self) -> Result<(), KernelError> {
        let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(SUBMISSION_TIMEOUT) };
        let polled = self.device.poll(wait);
        self.check()?;
        match polled {
            Ok(_) => Ok(()),
            Err(error) => Err(self.error(GpuFault::TimeOut, error.to_string())),
        }
    }
}
