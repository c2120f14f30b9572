//! Precision of a CPU's products of unquantized numbers.

/// How a CPU multiplies activations with unquantized weights, and queries with keys and values that every row sees.
/// Quantized weights are always multiplied as their format says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuPrecision {
    /// Single precision.
    #[default]
    F32,
    /// Operands rounded to integers that share a scale (`ops::integer_panel`), at twice the speed. The error is about that
    /// of bfloat16. A row still has the same bits in any batch. As `F32` on processors without such products.
    I16,
}
