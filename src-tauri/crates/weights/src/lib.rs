//! Model files: GGUF and safetensors, memory-mapped and fully validated when opened, and their quantized block formats.
//!
//! Knows nothing of models: which tensors and keys a file must have is decided in the engine.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod config_json;
pub mod dtype;
pub mod error;
mod fingerprint;
mod folder;
mod gguf;
pub mod metadata;
mod mmap;
mod open;
pub mod quant;
mod safetensors;
mod source_file;
mod split;
mod tensor;
mod weight_file;
pub mod write;

pub use dtype::DType;
pub use error::WeightsError;
pub use folder::is_model_folder;
pub use metadata::{Array, Metadata, Value};
pub use mmap::{Advice, SharedBytes};
pub use quant::{Codec, DecodeFn, EncodeFn};
pub use tensor::{Container, FilePartInfo, TensorView};
pub use weight_file::WeightFile;
