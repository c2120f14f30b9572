//! An opened GPU with everything that is kept per device: compiled pipelines, and the cached facts about its kernels.
//! Shared by all executors that run on the GPU.

use std::sync::Arc;

use super::adapter::{AdapterInfo, enumerate, pick};
use super::device::Device;
use super::features::{GpuFeatures, GpuOptions};
use super::kernel_check::KernelVerification;
use super::pipeline::Pipelines;
use crate::error::KernelError;
use crate::gpu_cache::GpuCache;
use crate::gpu_selector::{GpuSelector, VerificationScope};
use crate::lane_reduction::LaneReduction;
use crate::precision::Precision;

/// A GPU in use: device, pipelines and verification.
pub struct GpuContext {
    pub(super) device: Arc<Device>,
    pub(super) pipelines: Pipelines,
    pub(super) verification: KernelVerification,
}

impl GpuContext {
    /// Opens a GPU in single precision with an empty cache. Errors: as `open_with`.
    pub fn open(selector: &GpuSelector) -> Result<Arc<Self>, KernelError> {
        Self::open_using(selector, GpuOptions { precision: Precision::F32, ..GpuOptions::default() })
    }

    /// Opens a GPU with an empty cache. Errors: as `open_with`.
    pub fn open_using(selector: &GpuSelector, options: GpuOptions) -> Result<Arc<Self>, KernelError> {
        Self::open_with(selector, options, &GpuCache::default(), VerificationScope::Hardware)
    }

    /// Opens a GPU. Where the cache knows that its subgroups give wrong results, kernels avoid them.
    /// Errors: no GPU matches, it can't be opened, or it lacks the requested precision.
    pub fn open_with(
        selector: &GpuSelector,
        mut options: GpuOptions,
        cache: &GpuCache,
        scope: VerificationScope,
    ) -> Result<Arc<Self>, KernelError> {
        let (infos, mut adapters): (Vec<_>, Vec<_>) = enumerate().into_iter().unzip();
        let Some(at) = pick(&infos, selector) else {
            return Err(KernelError::gpu_absent("no GPU has a driver for Vulkan, Metal or DirectX 12"));
        };
        let (info, adapter) = (infos[at].clone(), adapters.swap_remove(at));
        let verification = KernelVerification::new(&info, cache, scope);
        if verification.is_enabled() && verification.facts().wrong_with_subgroups.is_some() {
            options.lane_reduction = LaneReduction::SharedMemory;
        }
        let device = Device::open(info, &adapter, options)?;
        let pipelines = Pipelines::new(&device, verification.facts().pipelines.as_deref());
        Ok(Arc::new(Self { device, pipelines, verification }))
    }

    /// The adapter that was opened.
    pub fn info(&self) -> &AdapterInfo {
        self.device.info()
    }

    /// The optional features that kernels use.
    pub fn features(&self) -> GpuFeatures {
        self.device.features()
    }

    /// Whether the driver lets compiled pipelines be saved.
    pub fn has_pipeline_cache(&self) -> bool {
        self.device.device.features().contains(wgpu::Features::PIPELINE_CACHE)
    }

    /// The pipelines compiled so far, as bytes for the next start. None: the driver doesn't support saving them.
    pub fn compiled_pipelines(&self) -> Option<Vec<u8>> {
        self.pipelines.compiled()
    }

    /// Writes the compiled pipelines to the cache, if they changed.
    pub(super) fn cache_pipelines(&self) {
        let Some(compiled) = self.compiled_pipelines() else { return };
        let differs = self.verification.facts().pipelines.is_none_or(|known| *known != *compiled);
        if differs {
            self.verification.update(|facts| facts.pipelines = Some(compiled.into()));
        }
    }
}
