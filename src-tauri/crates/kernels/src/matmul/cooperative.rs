//! Tiles by a card's cooperative matrices: what they are held to. Their additions run in an order of the card's own, so
//! of a row among many only closeness is promised, not the bits that `partial_sums.rs` promises elsewhere.

/// Rows and columns of a matrix, halves multiplied into floats.
pub const SIDE: u32 = 16;
/// Lanes that hold one together.
pub const LANES: u32 = 32;
