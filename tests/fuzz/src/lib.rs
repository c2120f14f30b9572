//! Fuzz targets: what reads bytes of others, and what must hold for every input.
//!
//! A target panics where an invariant breaks, and `run` ends the process where its memory does. `make fuzz` runs the
//! targets with libFuzzer; `tests/replay.rs` runs the kept inputs in every `make test`.

#![deny(unsafe_code)]

#[cfg(feature = "checkpoint")]
mod checkpoint;
#[cfg(feature = "gguf")]
mod gguf;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "import")]
mod import;
mod limited_allocator;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(any(feature = "gguf", feature = "safetensors"))]
mod model_file;
#[cfg(feature = "office")]
mod office;
mod panic_log;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(feature = "reply")]
mod reply;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "schema")]
mod schema;
#[allow(dead_code, reason = "few targets use all of it")]
mod sections;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "template")]
mod template;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "tokenizer")]
mod tokenizer;
#[cfg(any(feature = "import", feature = "office"))]
mod zip;

#[cfg(feature = "checkpoint")]
pub use checkpoint::CHECKPOINT;
#[cfg(feature = "gguf")]
pub use gguf::GGUF;
#[cfg(feature = "http")]
pub use http::HTTP;
#[cfg(feature = "image")]
pub use image::IMAGE;
#[cfg(feature = "import")]
pub use import::IMPORT;
#[cfg(feature = "mcp")]
pub use mcp::MCP;
#[cfg(feature = "office")]
pub use office::OFFICE;
pub use panic_log::report_panics;
#[cfg(feature = "pdf")]
pub use pdf::PDF;
#[cfg(feature = "reply")]
pub use reply::REPLY;
#[cfg(feature = "safetensors")]
pub use safetensors::SAFETENSORS;
#[cfg(feature = "schema")]
pub use schema::SCHEMA;
#[cfg(feature = "sse")]
pub use sse::SSE;
#[cfg(feature = "template")]
pub use template::TEMPLATE;
#[cfg(feature = "text")]
pub use text::TEXT;
#[cfg(feature = "tokenizer")]
pub use tokenizer::TOKENIZER;

/// What is fuzzed.
pub struct FuzzTarget {
    /// Name, also of its folders and its program.
    pub name: &'static str,
    /// Reads one input. Panics where an invariant breaks.
    pub read: fn(&[u8]),
    /// Heap that one input may take at once, beyond what the target keeps between inputs.
    pub max_bytes: usize,
}

/// Every target.
pub static TARGETS: &[&FuzzTarget] = &[
    #[cfg(feature = "checkpoint")]
    &CHECKPOINT,
    #[cfg(feature = "gguf")]
    &GGUF,
    #[cfg(feature = "http")]
    &HTTP,
    #[cfg(feature = "image")]
    &IMAGE,
    #[cfg(feature = "import")]
    &IMPORT,
    #[cfg(feature = "mcp")]
    &MCP,
    #[cfg(feature = "office")]
    &OFFICE,
    #[cfg(feature = "pdf")]
    &PDF,
    #[cfg(feature = "reply")]
    &REPLY,
    #[cfg(feature = "safetensors")]
    &SAFETENSORS,
    #[cfg(feature = "schema")]
    &SCHEMA,
    #[cfg(feature = "sse")]
    &SSE,
    #[cfg(feature = "template")]
    &TEMPLATE,
    #[cfg(feature = "text")]
    &TEXT,
    #[cfg(feature = "tokenizer")]
    &TOKENIZER,
];

/// Runs one input. Ends the process if it takes more memory than the target allows.
pub fn run(target: &FuzzTarget, input: &[u8]) {
    limited_allocator::within(target.max_bytes, || (target.read)(input));
}

/// The functions that libFuzzer calls.
#[cfg(feature = "libfuzzer")]
#[macro_export]
macro_rules! fuzz_main {
    ($target:ident) => {
        libfuzzer_sys::fuzz_target!(
            init: $crate::report_panics(),
            |input: &[u8]| $crate::run(&$crate::$target, input)
        );
    };
}
