//! Runs a forward pass: a checked graph of operations, a plan for each device, and backends that execute it.
//! `Scalar` is the specification, written to be read; `Cpu` is the fast path, tested against it; `Gpu` runs the same
//! graph as WGSL. Knows nothing of models, files, clocks or the meaning of tokens.
//!
//! Guarantees: on one backend and one instruction-set level a token's numbers do not depend on its batch, chunk
//! boundaries, page placement or thread count. `Executor::run` does not allocate once a row bucket has been used.
#![warn(missing_docs)]
#![allow(rustdoc::broken_intra_doc_links)] // shapes stand in brackets: [out, in]
#![deny(unsafe_code)]
#![allow(clippy::extra_unused_type_parameters)] // bodies compiled for each level have one form

mod backend;
pub mod backends;
mod batch;
mod capacity;
pub mod check;
mod compare;
#[allow(unsafe_code)] // threads, SIMD and shared buffers: each block argues its safety
pub mod cpu;
mod device_stats;
pub mod devices;
mod error;
mod executor;
#[allow(unsafe_code)] // F16C intrinsics
mod f16_convert;
mod fault;
#[cfg(feature = "gpu")]
pub mod gpu;
mod gpu_cache;
mod gpu_selector;
mod graph;
mod interrupt;
#[cfg(test)]
mod kernel_parity_tests;
mod lane_reduction;
pub mod matmul;
pub mod ops;
mod plan;
mod precision;
mod profile;
mod scalar;
mod tensor;

pub use backend::{Backend, BackendKind, ProgressFn};
pub use batch::{Batch, GivenRows};
pub use capacity::Capacity;
pub use compare::{NodeDifference, compare};
pub use cpu::{Cpu, CpuOptions, CpuPrecision, WeightBudget};
pub use device_stats::{MonotonicClock, SubmissionStats};
pub use error::KernelError;
pub use executor::{Executor, OutputSelection, arena_bytes};
pub use fault::{FaultPlan, GpuFault};
pub use gpu_cache::{GpuCache, GpuFacts, GpuKey};
pub use gpu_selector::{GpuSelector, VerificationScope};
pub use graph::{
    Activation, AttentionShape, Columns, ConvShape, DeltaShape, DeviceId, DraftPart, ExpertChoice,
    ExpertScoring, Experts, Graph, GraphBuilder, GroupLimit, GroupScore, HeadOrder, KvDType, KvLayerLayout,
    KvLayout, KvPrecision, Lookup, MAX_EXPERT_GROUPS, Mask, MixFactors, N_COORDINATES, NO_PAGE, Node, Op,
    PAGE_LEN, Retention, RopeShape, RopeStyle, Routing, RowMerge, Rows, SsmShape, Value, ValueId,
    rotation_width,
};
pub use interrupt::Interrupt;
pub use lane_reduction::LaneReduction;
pub use ops::top_k::TopKEntry;
pub use plan::layout::ValueLifetime;
pub use precision::{MIN_PROMPT_ROWS, Precision};
pub use profile::{Observer, StepCost, StepProfile, TimeSpan};
pub use scalar::Scalar;
pub use tensor::Tensor;
