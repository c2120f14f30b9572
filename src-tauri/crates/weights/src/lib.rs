//! Bytes on disk and what they mean: GGUF and safetensors, mapped and wholly validated when opened, and the block
//! formats that weights are stored in. Knows nothing of models: which tensors and keys there must be is decided above.

#![deny(unsafe_code)]

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
