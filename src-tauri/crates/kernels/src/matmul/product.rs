//! Products of rows with one matrix or with its transpose, as training needs both. `product.wgsl` computes tiles of them;
//! here is what they are.

use crate::error::KernelError;
use crate::tensor::Tensor;

/// Which way a matrix W [n, k] is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// x · Wᵀ: (rows, k) to (rows, n)
    Forward,
    /// x · W: (rows, n) to (rows, k)
    Backward,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];

    /// Returns the number of terms of a sum, and the width of the result, for a matrix of this shape.
    pub fn terms_and_width(self, [n, k]: [usize; 2]) -> (usize, usize) {
        match self {
            Self::Forward => (k, n),
            Self::Backward => (n, k),
        }
    }
}

/// A GPU that multiplies rows with single matrices, without a graph, as training needs it.
pub trait RowProducts: Send {
    /// Computes x · Wᵀ or x · W. Matrices are uploaded on first use. Errors: full memory, a lost GPU, wrong results; `out`
    /// is undefined then.
    fn multiply(
        &mut self,
        x: &[f32],
        weight: &Tensor,
        direction: Direction,
        out: &mut [f32],
    ) -> Result<(), KernelError>;

    /// The GPU's name.
    fn name(&self) -> &str;
}

/// Main memory for operands and results on their way to a GPU and back, beside those of the caller.
pub const MAX_STAGED_BYTES: u64 = 4 << 26;

/// Rows and columns of the result that a workgroup computes.
pub const TILE: usize = 64;
/// Lanes of a workgroup.
pub const LANES: u32 = 256;
/// Bytes of workgroup memory: for STEP terms of all rows and columns of a tile.
pub const SHARED_BYTES: u32 = 2 * 32 * TILE as u32 * 4;

/// One element of a product, and the sum of the sizes of its terms, which its rounding error is a part of.
/// `x`: one row.
pub fn element(x: &[f32], weight: &Tensor, direction: Direction, column: usize) -> (f64, f64) {
    let mut row = vec![0.0; weight.n_cols()];
    let add = |(sum, size): (f64, f64), x: f32, w: f32| {
        let term = f64::from(x) * f64::from(w);
        (sum + term, size + term.abs())
    };
    match direction {
        Direction::Forward => {
            weight.decode_row(column, &mut row);
            x.iter().zip(&row).fold((0.0, 0.0), |sums, (x, w)| add(sums, *x, *w))
        }
        Direction::Backward => x.iter().enumerate().fold((0.0, 0.0), |sums, (i, x)| {
            weight.decode_row(i, &mut row);
            add(sums, *x, row[column])
        }),
    }
}
