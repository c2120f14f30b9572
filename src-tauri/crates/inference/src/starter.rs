//! The model that ships inside the program.

pub use contract::STARTER_ID as ID;

/// What people see.
pub const NAME: &str = "Starter";

/// Tensors in a GGUF lie at multiples of 32 bytes from its beginning, and vector loads want them there.
#[repr(C, align(64))]
struct AlignedBytes<T: ?Sized>(T);

static FILE: &AlignedBytes<[u8]> = &AlignedBytes(*include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../models/starter/starter.gguf"
)));

/// The GGUF file.
pub fn bytes() -> &'static [u8] {
    &FILE.0
}
