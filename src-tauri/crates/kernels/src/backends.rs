//! The table of backends by name: how each is probed and opened, and which comes first by default.

use crate::backend::{Backend, BackendKind};
use crate::cpu::{Cpu, CpuOptions};
use crate::error::KernelError;
use crate::fault::FaultPlan;
use crate::gpu_cache::GpuCache;
use crate::gpu_selector::{GpuSelector, VerificationScope};
use crate::lane_reduction::LaneReduction;
use crate::matmul::product::RowProducts;
use crate::precision::Precision;
use crate::scalar::Scalar;

/// Options for opening a backend; each kind uses its own part.
#[derive(Clone, Debug, Default)]
pub struct BackendOptions {
    /// options of the CPU backend
    pub cpu: CpuOptions,
    /// which GPU to open
    pub gpu: GpuSelector,
    /// precision of GPU matrix multiplications
    pub precision: Precision,
    /// how GPU lanes combine their results
    pub lane_reduction: LaneReduction,
    /// faults that a test injects
    pub faults: FaultPlan,
    /// known facts about GPUs, to which new ones are added
    pub gpu_cache: GpuCache,
    /// which GPUs have their kernels verified
    pub verification: VerificationScope,
}

/// One kind of backend.
pub struct BackendRow {
    /// name in settings and on the command line
    pub name: &'static str,
    /// kind of device
    pub kind: BackendKind,
    /// By default the highest available priority that suits the model is chosen. 0: only by name.
    pub priority: u32,
    /// Checks whether such a device is available. Errors: why it is not.
    pub probe: fn(&BackendOptions) -> Result<(), KernelError>,
    /// Opens the device. Errors: it is absent or can't be started.
    pub open: fn(&BackendOptions) -> Result<Box<dyn Backend>, KernelError>,
}

/// All kinds of backends, each once.
pub static BACKENDS: &[BackendRow] = &[
    BackendRow { name: "gpu", kind: BackendKind::Gpu, priority: 2, probe: probe_gpu, open: open_gpu },
    BackendRow {
        name: "cpu",
        kind: BackendKind::Cpu,
        priority: 1,
        probe: |_| Ok(()),
        open: |options| Ok(Box::new(Cpu::new(options.cpu.clone())?)),
    },
    BackendRow {
        name: "scalar",
        kind: BackendKind::Scalar,
        priority: 0,
        probe: |_| Ok(()),
        open: |_| Ok(Box::new(Scalar::new())),
    },
];

/// Opens a backend of this kind. Errors: the device is absent or can't be started.
pub fn open(kind: BackendKind, options: &BackendOptions) -> Result<Box<dyn Backend>, KernelError> {
    let row = BACKENDS.iter().find(|row| row.kind == kind);
    (row.expect("every kind has its row").open)(options)
}

/// Opens a GPU for products. Errors: it is absent or can't be started.
#[cfg(feature = "gpu")]
pub fn open_products(options: &BackendOptions) -> Result<Box<dyn RowProducts>, KernelError> {
    let context = open_context(options)?;
    Ok(Box::new(crate::gpu::GpuProducts::with_faults(context, options.faults.clone())?))
}

/// Opens a GPU for products. Errors: it is absent or can't be started.
#[cfg(not(feature = "gpu"))]
pub fn open_products(_: &BackendOptions) -> Result<Box<dyn RowProducts>, KernelError> {
    Err(KernelError::gpu_absent(NO_SUPPORT))
}

#[cfg(feature = "gpu")]
fn probe_gpu(options: &BackendOptions) -> Result<(), KernelError> {
    let adapters = crate::gpu::adapters();
    match crate::gpu::pick(&adapters, &options.gpu) {
        Some(_) => Ok(()),
        None => Err(KernelError::gpu_absent("no GPU has a driver for Vulkan, Metal or DirectX 12")),
    }
}

#[cfg(feature = "gpu")]
fn open_context(options: &BackendOptions) -> Result<std::sync::Arc<crate::gpu::GpuContext>, KernelError> {
    let BackendOptions { gpu, precision, lane_reduction, gpu_cache, verification, .. } = options;
    let gpu_options = crate::gpu::GpuOptions {
        precision: *precision,
        lane_reduction: *lane_reduction,
        ..Default::default()
    };
    crate::gpu::GpuContext::open_with(gpu, gpu_options, gpu_cache, *verification)
}

#[cfg(feature = "gpu")]
fn open_gpu(options: &BackendOptions) -> Result<Box<dyn Backend>, KernelError> {
    Ok(Box::new(crate::gpu::Gpu::with_faults(open_context(options)?, options.faults.clone())))
}

#[cfg(not(feature = "gpu"))]
const NO_SUPPORT: &str = "this program was built without GPU support";

#[cfg(not(feature = "gpu"))]
fn probe_gpu(_: &BackendOptions) -> Result<(), KernelError> {
    Err(KernelError::gpu_absent(NO_SUPPORT))
}

#[cfg(not(feature = "gpu"))]
fn open_gpu(options: &BackendOptions) -> Result<Box<dyn Backend>, KernelError> {
    probe_gpu(options)?;
    unreachable!("without GPU support probing fails")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_row_and_the_cpu_is_always_available() {
        for kind in [BackendKind::Gpu, BackendKind::Cpu, BackendKind::Scalar] {
            assert_eq!(BACKENDS.iter().filter(|row| row.kind == kind).count(), 1, "{kind:?}");
        }
        let options = BackendOptions { gpu: GpuSelector::Named("no such card".into()), ..Default::default() };
        assert_eq!(open(BackendKind::Cpu, &options).unwrap().kind(), BackendKind::Cpu);
        assert_eq!(open(BackendKind::Scalar, &options).unwrap().kind(), BackendKind::Scalar);
        let error = open(BackendKind::Gpu, &options).err().unwrap();
        assert_eq!(error.code(), "kernels.gpu_absent");
        assert!(!error.remedy().is_empty() && !error.to_string().is_empty());
    }
}
