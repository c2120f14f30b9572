//! How lanes of a graphics card's kernels hand each other numbers.

/// Either way gives the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// by the card's subgroups, where it has them
    #[default]
    Subgroups,
    /// by the memory of their workgroup, which every card has: slower, and there is less that a driver can do wrong
    Memory,
}
