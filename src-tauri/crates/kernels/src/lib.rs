//! Operations on a device: a checked graph, a plan for it, and backends that run it.
//! `Scalar` is the specification, written to be read; `Cpu` is the fast path, tested against it.
//! Guarantees: on one backend and one instruction-set level a token's numbers do not depend on batch mates, chunk
//! boundaries, page placement or thread count; no heap allocation in `Executor::run` once a row bucket has been used.
//! Knows nothing of models, files, clocks or tokens' meaning.
#![deny(unsafe_code)]
#![allow(clippy::extra_unused_type_parameters)] // bodies compiled for each level have one form

mod backend;
pub mod backends;
pub mod check;
mod compare;
#[allow(unsafe_code)] // threads, SIMD and shared buffers: each block argues its safety
pub mod cpu;
pub mod devices;
mod effort;
mod error;
#[allow(unsafe_code)] // F16C intrinsics
mod f16_convert;
mod fault;
mod gone;
#[cfg(feature = "gpu")]
pub mod gpu;
mod graph;
mod interrupt;
mod known;
pub mod matmul;
pub mod ops;
mod plan;
mod precision;
mod profile;
mod scalar;
mod sharing;
mod tensor;
#[cfg(test)]
mod twins;

pub use backend::{Backend, BackendKind, Retain, Told};
pub use compare::{Difference, compare};
pub use cpu::{Cpu, CpuOptions, WeightBudget};
pub use effort::{Effort, Now};
pub use error::KernelError;
pub use fault::{FaultPlan, GpuFault};
pub use graph::{
    Activation, AttentionShape, Columns, ConvShape, DeltaShape, DeviceId, Experts, Graph, GraphBuilder,
    HeadOrder, KvDType, KvLayerLayout, KvLayout, Lookup, Mask, NO_PAGE, Node, Op, PAGE_LEN, Retention,
    RopeShape, RopeStyle, Routing, Rows, Value, ValueId,
};
pub use interrupt::Interrupt;
pub use known::{CardKey, Known, Notebook};
pub use ops::likeliest::Likely;
pub use plan::{Batch, Capacity, Executor, Returned, arena_bytes};
pub use precision::Precision;
pub use profile::{Cost, Observer, Ran, Span};
pub use scalar::Scalar;
pub use sharing::Sharing;
pub use tensor::Tensor;
