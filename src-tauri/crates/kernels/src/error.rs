//! Errors of this crate, each with a stable code and a remedy.

use io::Fault;
use thiserror::Error;

use crate::fault::GpuFault;

/// Every failure of this crate that is not a programming error.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs)] // the messages name the fields
pub enum KernelError {
    /// Two shapes that must agree do not: a file whose tensors contradict its metadata ends here.
    #[error("{node}: {what} is {found}, expected {expected}")]
    Shape { node: String, what: &'static str, expected: String, found: String },
    /// A block format with a known size but no decoder.
    #[error("{tensor}: block format {dtype} is not supported for computation")]
    DTypeUnsupported { tensor: String, dtype: &'static str },
    /// The batch contradicts itself or the executor's capacity.
    #[error("batch: {what}: {found} (limit {limit})")]
    Batch { what: &'static str, found: usize, limit: usize },
    /// A KV page outside the store, or page bytes of the wrong length.
    #[error("KV page: {what}: {found} (expected {expected})")]
    KvPage { what: &'static str, found: usize, expected: usize },
    /// An allocation that the system refused.
    #[error("{what} needs {bytes} bytes, which the system did not provide")]
    Memory { what: &'static str, bytes: usize },
    /// A kernel panicked in a worker thread; the run is lost, the process is not.
    #[error("a kernel failed inside {node}: {message}")]
    Panicked { node: String, message: String },
    /// The run was interrupted on request.
    #[error("the run was interrupted")]
    Interrupted,
    /// `INGLENOOK_ISA` names a level that does not exist or that this processor lacks.
    #[error("instruction set level \"{wanted}\" is not available here (found: {found})")]
    Isa { wanted: String, found: &'static str },
    /// A GPU is absent or failed.
    #[error("{adapter} {fault}: {message}")]
    Gpu { fault: GpuFault, adapter: String, message: String },
    /// The worker threads could not be started.
    #[error("could not start worker thread {index}: {message}")]
    Threads { index: usize, message: String },
}

impl KernelError {
    /// A `Shape` error of `node`.
    pub(crate) fn mismatch(
        node: &str,
        what: &'static str,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::Shape { node: node.to_owned(), what, expected: expected.to_string(), found: found.to_string() }
    }

    /// A `GpuFault::Absent` error.
    pub(crate) fn gpu_absent(message: &str) -> Self {
        let adapter = "the GPU".to_owned();
        Self::Gpu { fault: GpuFault::Absent, adapter, message: message.to_owned() }
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "kernels.shape",
            Self::DTypeUnsupported { .. } => "kernels.dtype_unsupported",
            Self::Batch { .. } => "kernels.batch",
            Self::KvPage { .. } => "kernels.kv_page",
            Self::Memory { .. } => "kernels.memory",
            Self::Panicked { .. } => "kernels.panicked",
            Self::Interrupted => "kernels.interrupted",
            Self::Isa { .. } => "kernels.isa",
            Self::Threads { .. } => "kernels.threads",
            Self::Gpu { fault, .. } => match fault {
                GpuFault::Absent => "kernels.gpu_absent",
                GpuFault::Lost => "kernels.gpu_lost",
                GpuFault::Memory => "kernels.gpu_memory",
                GpuFault::Invalid => "kernels.gpu_invalid",
                GpuFault::TimeOut => "kernels.gpu_time_out",
                GpuFault::Wrong => "kernels.gpu_wrong",
                GpuFault::Subgroups => "kernels.gpu_subgroups",
                GpuFault::Precision => "kernels.gpu_precision",
            },
        }
    }

    /// What a user can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Shape { .. } => "The model file is inconsistent; download it again.".into(),
            Self::DTypeUnsupported { .. } => {
                "Choose another quantization of this model, such as Q4_K_M or Q8_0.".into()
            }
            Self::Batch { .. } | Self::KvPage { .. } | Self::Panicked { .. } => {
                "This is a bug in Inglenook; please report it with the message.".into()
            }
            Self::Interrupted => "Ask again.".into(),
            Self::Memory { .. } => "Choose a smaller model or a shorter context.".into(),
            Self::Isa { .. } => "Unset INGLENOOK_ISA, or set it to portable.".into(),
            Self::Threads { .. } => "Lower the number of threads in the settings.".into(),
            Self::Gpu { fault, .. } => match fault {
                GpuFault::Absent => "Use the CPU, or install the driver of your GPU.",
                GpuFault::Memory => "Put fewer layers on the GPU, or choose a shorter context.",
                GpuFault::Lost | GpuFault::TimeOut => "Try again; a newer driver may help.",
                GpuFault::Subgroups => "A newer driver may help.",
                GpuFault::Invalid | GpuFault::Wrong => {
                    "Use the CPU, and please report this with the message."
                }
                GpuFault::Precision => {
                    "Choose f32 as GPU precision, in the settings or with --gpu-precision."
                }
            }
            .into(),
        }
    }
}

impl Fault for KernelError {
    fn code(&self) -> &str {
        self.code()
    }

    fn remedy(&self) -> String {
        self.remedy()
    }
}
