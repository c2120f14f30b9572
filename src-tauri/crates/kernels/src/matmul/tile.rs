//! The shape of the kernels that compute a tile of products: weights of some outputs, decoded once into the memory of a
//! workgroup, by many rows.

use super::partial_sums::{BLOCK, ShaderConstants};

/// Rows of x of one lane, which it has as a vector.
const LANE_ROWS: u32 = 4;
/// Bytes of a row of a tile: a block, and one more vector so that lanes meet different banks of memory.
const PITCH_BYTES: u32 = (BLOCK as u32 + 4) * 4;
/// The same of halves for matrices.
const HALVED_PITCH_BYTES: u32 = (BLOCK as u32 + 8) * 2;

/// What of a workgroup computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileMethod {
    /// each by itself, in the order that `partial_sums.rs` says
    Lanes,
    /// those of a subgroup together, by matrices of 16 by 16
    CooperativeMatrices,
}

/// A workgroup's tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulTile {
    /// rows of the matrix
    pub outputs: u32,
    /// rows of x
    pub rows: u32,
    /// of the outputs, those that one lane has, by `LANE_ROWS` rows
    pub lane_outputs: u32,
    pub method: TileMethod,
}

/// Of prompts: each weight is decoded once for 64 rows.
pub const LARGE: MatMulTile =
    MatMulTile { outputs: 128, rows: 64, lane_outputs: 8, method: TileMethod::Lanes };
/// Of cards with less memory for a workgroup, and of experts, to whom few rows of a batch go.
pub const SMALL: MatMulTile =
    MatMulTile { outputs: 64, rows: 32, lane_outputs: 4, method: TileMethod::Lanes };

/// Of prompts on cards that have work for more workgroups than large tiles give them.
pub const SQUARE: MatMulTile =
    MatMulTile { outputs: 64, rows: 64, lane_outputs: 4, method: TileMethod::Lanes };

/// Of cooperative matrices: four subgroups of 32 lanes have a quarter each, of two by two matrices.
pub const COOPERATIVE: MatMulTile =
    MatMulTile { outputs: 64, rows: 64, lane_outputs: 8, method: TileMethod::CooperativeMatrices };

/// Up to so many rows lanes share sums.
pub const MAX_REDUCTION_ROWS: usize = 32;
/// Up to so many tokens experts take their slots one by one.
pub const MAX_SLOTWISE_TOKENS: usize = 8;

impl MatMulTile {
    /// Lanes of its workgroup.
    pub fn lanes(&self) -> u32 {
        self.outputs / self.lane_outputs * (self.rows / LANE_ROWS)
    }

    /// Memory that its workgroup shares, where operands are floats.
    pub fn shared_bytes(&self) -> u32 {
        match self.method {
            TileMethod::Lanes => (self.outputs + self.rows) * PITCH_BYTES,
            // and the sums of all as floats
            TileMethod::CooperativeMatrices => {
                (self.outputs + self.rows) * HALVED_PITCH_BYTES + self.outputs * self.rows * 4
            }
        }
    }

    /// What the shader is told.
    pub fn constants(&self) -> ShaderConstants {
        vec![
            ("LANES", self.lanes()),
            ("TILE_OUTPUTS", self.outputs),
            ("TILE_ROWS", self.rows),
            ("LANE_OUTPUTS", self.lane_outputs),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_shared_out_evenly() {
        for tile in [LARGE, SQUARE, SMALL, COOPERATIVE] {
            assert!(tile.outputs.is_multiple_of(tile.lane_outputs) && tile.rows.is_multiple_of(LANE_ROWS));
            // the least that every card must offer: the small one fits everywhere
            assert!(tile.lanes() <= 256);
        }
        assert!(SMALL.shared_bytes() <= 16384 && LARGE.shared_bytes() <= 32768);
        // as `cooperative.wgsl` shares it out
        let MatMulTile { outputs, rows, .. } = COOPERATIVE;
        assert_eq!((outputs, rows, COOPERATIVE.lanes()), (64, 64, 4 * 32));
    }
}
