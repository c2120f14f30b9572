//! The row of an operation in the table of operations.

/// Describes one variant of `Op`.
pub struct OpRow {
    /// name in profiles and comparisons
    pub name: &'static str,
    /// what the operation computes
    pub formula: &'static str,
}
