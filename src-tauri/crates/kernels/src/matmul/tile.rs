//! The shapes of GPU kernels that compute a tile of products. Weights of some outputs are decoded once into
//! workgroup memory and multiplied with many rows.

use super::cooperative::{LANES, SIDE};
use super::partial_sums::{BLOCK, ShaderConstants};

/// Rows of x per lane, held as one vector.
const LANE_ROWS: u32 = 4;
/// Bytes of a tile row: a block and one more vector, so that lanes use different memory banks.
const PITCH_BYTES: u32 = (BLOCK as u32 + 4) * 4;
/// Bytes of the sums of a cooperative matrix.
const SUMS_BYTES: u32 = SIDE * SIDE * 4;

/// How a workgroup computes its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileMethod {
    /// Each lane by itself, in the order described in `partial_sums.rs`.
    Lanes {
        /// Outputs per lane, for `LANE_ROWS` rows each.
        outputs: u32,
    },
    /// The lanes of a subgroup together, by cooperative matrices of 16 × 16.
    CooperativeMatrices {
        /// Matrices per subgroup: below each other, and beside each other.
        matrices: [u32; 2],
        /// Blocks of k in workgroup memory at a time.
        blocks: u32,
    },
}

/// The tile of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulTile {
    /// Rows of the matrix.
    pub outputs: u32,
    /// Rows of x.
    pub rows: u32,
    /// How the tile is computed.
    pub method: TileMethod,
}

/// For prompts: each weight is decoded once for 64 rows.
pub const LARGE: MatMulTile = MatMulTile { outputs: 128, rows: 64, method: TileMethod::Lanes { outputs: 8 } };
/// For GPUs with less workgroup memory, and for experts, which get few rows of a batch.
pub const SMALL: MatMulTile = MatMulTile { outputs: 64, rows: 32, method: TileMethod::Lanes { outputs: 4 } };
/// For prompts on GPUs that can run more workgroups than large tiles give them.
pub const SQUARE: MatMulTile = MatMulTile { outputs: 64, rows: 64, method: TileMethod::Lanes { outputs: 4 } };

/// For cooperative matrices.
pub const COOPERATIVE: MatMulTile = MatMulTile {
    outputs: 128,
    rows: 128,
    method: TileMethod::CooperativeMatrices { matrices: [4, 2], blocks: 2 },
};
/// The same for experts, which get few rows of a batch, and for GPUs with less workgroup memory.
pub const COOPERATIVE_SMALL: MatMulTile = MatMulTile {
    outputs: 64,
    rows: 64,
    method: TileMethod::CooperativeMatrices { matrices: [2, 2], blocks: 2 },
};

/// Up to this many rows, lanes share sums instead of using tiles.
pub const MAX_REDUCTION_ROWS: usize = 32;
/// Up to this many tokens, experts process their slots one by one.
pub const MAX_SLOTWISE_TOKENS: usize = 8;

impl MatMulTile {
    /// Returns the lanes of the workgroup.
    pub fn lanes(&self) -> u32 {
        match self.method {
            TileMethod::Lanes { outputs } => self.outputs / outputs * (self.rows / LANE_ROWS),
            TileMethod::CooperativeMatrices { matrices: [below, beside], .. } => {
                self.outputs / (beside * SIDE) * (self.rows / (below * SIDE)) * LANES
            }
        }
    }

    /// Returns the bytes of workgroup memory when operands are floats, or halves of cooperative matrices.
    pub fn shared_bytes(&self) -> u32 {
        match self.method {
            TileMethod::Lanes { .. } => (self.outputs + self.rows) * PITCH_BYTES,
            // two more vectors of halves in each row, and a matrix of sums for each subgroup
            TileMethod::CooperativeMatrices { blocks, .. } => {
                let pitch_bytes = (blocks * BLOCK as u32 + 8) * 2;
                (self.outputs + self.rows) * pitch_bytes + self.lanes() / LANES * SUMS_BYTES
            }
        }
    }

    /// Returns the constants of the shader.
    pub fn constants(&self) -> ShaderConstants {
        let lanes = self.lanes();
        let mut constants = vec![("LANES", lanes), ("TILE_OUTPUTS", self.outputs), ("TILE_ROWS", self.rows)];
        match self.method {
            TileMethod::Lanes { outputs } => constants.push(("LANE_OUTPUTS", outputs)),
            TileMethod::CooperativeMatrices { matrices: [below, beside], blocks } => constants.extend([
                ("SUB_ROWS", below),
                ("SUB_OUTPUTS", beside),
                ("N_BLOCKS", blocks),
                ("K_STEPS", blocks * BLOCK as u32 / SIDE),
                // blocks of weights and quads of x that a lane reads
                ("W_READS", self.outputs * blocks / lanes),
                ("X_READS", self.rows * blocks * BLOCK as u32 / 4 / lanes),
            ]),
        }
        constants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_shared_out_evenly() {
        for tile in [LARGE, SQUARE, SMALL] {
            let TileMethod::Lanes { outputs } = tile.method else { panic!("{tile:?}") };
            assert!(tile.outputs.is_multiple_of(outputs) && tile.rows.is_multiple_of(LANE_ROWS));
            // the minimum every GPU must offer: the small tile fits everywhere
            assert!(tile.lanes() <= 256);
        }
        assert!(SMALL.shared_bytes() <= 16384 && LARGE.shared_bytes() <= 32768);
        for tile in [COOPERATIVE, COOPERATIVE_SMALL] {
            let TileMethod::CooperativeMatrices { matrices: [below, beside], blocks } = tile.method else {
                panic!("{tile:?}")
            };
            assert!(tile.rows.is_multiple_of(below * SIDE) && tile.outputs.is_multiple_of(beside * SIDE));
            // as divided in `cooperative.wgsl`
            let (lanes, n_quads) = (tile.lanes(), blocks * BLOCK as u32 / 4);
            assert!(lanes <= 256 && tile.shared_bytes() <= 49152, "{tile:?}");
            assert!((tile.outputs * blocks).is_multiple_of(lanes), "{tile:?}");
            assert!((tile.rows * n_quads).is_multiple_of(lanes), "{tile:?}");
        }
    }
}
