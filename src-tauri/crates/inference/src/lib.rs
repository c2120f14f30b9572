//! Local inference: the worker that owns models, its supervisor, what this machine can do, memory estimates and
//! conversion. Speaks the worker protocol of `contract`; knows neither conversations nor the database.

#![forbid(unsafe_code)]

pub mod constraints;
pub mod convert;
pub mod engine_types;
pub mod estimate;
pub mod machine;
pub mod memory_budget;
pub mod model_file;
mod model_name;
pub mod profile;
pub mod starter;
pub mod supervisor;
pub mod tune;
pub mod vision_file;
pub mod worker;

pub use worker::guarded;

pub use engine_types::{engine_sizes, parse_kv_aging, parse_rope_scaling, yarn};
