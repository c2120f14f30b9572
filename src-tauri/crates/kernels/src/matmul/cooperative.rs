//! Requirements of tiles computed by a GPU's cooperative matrices.
//! The GPU chooses the order of additions. A row among many is therefore only close to the row alone, without
//! the bit equality of `partial_sums.rs`.

/// Rows and columns of a matrix: f16 factors, f32 sums.
pub const SIDE: u32 = 16;
/// Lanes that hold a matrix together.
pub const LANES: u32 = 32;
