//! How the lanes of a GPU workgroup combine their partial results.

/// The mechanism of a reduction over lanes. Both give the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneReduction {
    /// subgroup operations, where the GPU has them
    #[default]
    Subgroups,
    /// workgroup memory, which every GPU has: slower, but simpler for the driver to get right
    SharedMemory,
}
