//! The shapes of GPU kernels that compute a tile of products. Weights of some outputs are decoded once into
//! workgroup memory and multiplied with many rows.

use super::cooperative::{LANES, SIDE};
use super::partial_sums::{BLOCK, ShaderConstants};

/// Rows of x per lane, held as one vector.
const LANE_ROWS: u32 = 4;
/// Bytes of a tile row: a block and one more vector, so that lanes use different memory banks.
const PITCH_BYTES: u32 = (BLOCK as u32 + 4) * 4;
/// The same for cooperative matrices: two blocks and two vectors, in f16.
const HALVED_PITCH_BYTES: u32 = (2 * BLOCK as u32 + 8) * 2;
/// Bytes of the sums of a cooperative matrix.
const SUMS_BYTES: u32 = SIDE * SIDE * 4;

/// How a workgroup computes its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileMethod {
    /// Each lane by itself, in the order described in `partial_sums.rs`.
    Lanes,
    /// The lanes of a subgroup together, by cooperative matrices of 16 × 16.
    CooperativeMatrices,
}

/// The tile of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulTile {
    /// Rows of the matrix.
    pub outputs: u32,
    /// Rows of x.
    pub rows: u32,
    /// Outputs per lane, for `LANE_ROWS` rows each.
    pub lane_outputs: u32,
    /// How the tile is computed.
    pub method: TileMethod,
}

/// For prompts: each weight is decoded once for 64 rows.
pub const LARGE: MatMulTile =
    MatMulTile { outputs: 128, rows: 64, lane_outputs: 8, method: TileMethod::Lanes };
/// For GPUs with less workgroup memory, and for experts, which get few rows of a batch.
pub const SMALL: MatMulTile =
    MatMulTile { outputs: 64, rows: 32, lane_outputs: 4, method: TileMethod::Lanes };

/// For prompts on GPUs that can run more workgroups than large tiles give them.
pub const SQUARE: MatMulTile =
    MatMulTile { outputs: 64, rows: 64, lane_outputs: 4, method: TileMethod::Lanes };

/// For cooperative matrices: each subgroup computes two by two of them.
pub const COOPERATIVE: MatMulTile =
    MatMulTile { outputs: 128, rows: 64, lane_outputs: 8, method: TileMethod::CooperativeMatrices };
/// The same for matrices of few rows, whose large tiles would leave part of the GPU idle, and for experts.
pub const COOPERATIVE_SMALL: MatMulTile = MatMulTile { outputs: 64, ..COOPERATIVE };
/// Matrices of fewer rows get the small tile.
pub const MIN_COOPERATIVE_OUTPUTS: u32 = 6144;

/// Up to this many rows, lanes share sums instead of using tiles.
pub const MAX_REDUCTION_ROWS: usize = 32;
/// Up to this many tokens, experts process their slots one by one.
pub const MAX_SLOTWISE_TOKENS: usize = 8;

impl MatMulTile {
    /// Returns the lanes of the workgroup.
    pub fn lanes(&self) -> u32 {
        self.outputs / self.lane_outputs * (self.rows / LANE_ROWS)
    }

    /// Returns the bytes of workgroup memory when operands are floats.
    pub fn shared_bytes(&self) -> u32 {
        match self.method {
            TileMethod::Lanes => (self.outputs + self.rows) * PITCH_BYTES,
            // plus a matrix of sums for each subgroup
            TileMethod::CooperativeMatrices => {
                (self.outputs + self.rows) * HALVED_PITCH_BYTES + self.lanes() / LANES * SUMS_BYTES
            }
        }
    }

    /// Returns the constants of the shader.
    pub fn constants(&self) -> ShaderConstants {
        let mut constants = vec![
            ("LANES", self.lanes()),
            ("TILE_OUTPUTS", self.outputs),
            ("TILE_ROWS", self.rows),
            ("LANE_OUTPUTS", self.lane_outputs),
        ];
        if self.method == TileMethod::CooperativeMatrices {
            // quads of two blocks of the tile's rows that a lane reads
            let n_quads = self.rows * 2 * BLOCK as u32 / 4;
            constants.push(("X_READS", n_quads / self.lanes()));
        }
        constants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_shared_out_evenly() {
        for tile in [LARGE, SQUARE, SMALL, COOPERATIVE, COOPERATIVE_SMALL] {
            assert!(tile.outputs.is_multiple_of(tile.lane_outputs) && tile.rows.is_multiple_of(LANE_ROWS));
            // the minimum every GPU must offer: the small tile fits everywhere
            assert!(tile.lanes() <= 256);
        }
        assert!(SMALL.shared_bytes() <= 16384 && LARGE.shared_bytes() <= 32768);
        // as divided in `cooperative.wgsl`
        for tile in [COOPERATIVE, COOPERATIVE_SMALL] {
            assert_eq!((tile.rows, tile.lanes()), (64, 2 * tile.outputs));
        }
    }
}
