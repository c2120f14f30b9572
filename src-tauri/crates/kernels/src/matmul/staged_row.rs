//! The workgroup memory of kernels that bring a row of x there in stages: see `staged_row.wgsl`.

use super::partial_sums::{BLOCK, PARTIAL_SUMS};

/// Bytes of the elements of a block, and of one vector more, so that lanes use different memory banks.
const PITCH_BYTES: u32 = (BLOCK as u32 + 4) * 4;

/// The bytes of a stage with `stages` blocks for each lane of a sum.
pub const fn shared_bytes(stages: u32) -> u32 {
    stages * PARTIAL_SUMS * PITCH_BYTES
}

/// Workgroup memory that every GPU has.
const SMALLEST_MEMORY: u32 = 16_384;
const _: () = assert!(shared_bytes(super::partial_sums::ONE_ROW.stages) <= SMALLEST_MEMORY);
const _: () = assert!(shared_bytes(super::gated::GATED_LANES.stages) <= SMALLEST_MEMORY);
