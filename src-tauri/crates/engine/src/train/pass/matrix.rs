//! A matrix [out, in] in any block format, decoded piece by piece and packed for products.

use std::ops::Range;

use kernels::Tensor;
pub(super) use kernels::matmul::product::Direction;

/// Rows of a matrix [n_rows, n_cols].
#[derive(Clone, Copy)]
pub(super) enum Matrix<'a> {
    /// Of a file.
    Stored(&'a Tensor),
    /// In memory.
    Dense { values: &'a [f32], n_cols: usize },
}

/// Columns packed side by side: the widest tile of `kernels::ops::panel`.
pub(super) const STRIP: usize = 32;
/// Longest block of any format; column ranges start at multiples of it.
pub(super) const MAX_BLOCK: usize = 256;

impl Matrix<'_> {
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Stored(tensor) => tensor.n_rows(),
            Self::Dense { values, n_cols } => values.len() / n_cols,
        }
    }

    pub fn n_cols(&self) -> usize {
        match self {
            Self::Stored(tensor) => tensor.n_cols(),
            Self::Dense { n_cols, .. } => *n_cols,
        }
    }

    /// Returns the lengths of the sums and the number of columns of a product.
    pub fn k_and_n(&self, direction: Direction) -> (usize, usize) {
        direction.terms_and_width([self.n_rows(), self.n_cols()])
    }

    /// Decodes columns of a row. They start at a multiple of `MAX_BLOCK` and end at one or with the row.
    pub fn decode(&self, row: usize, columns: &Range<usize>, out: &mut [f32]) {
        match self {
            Self::Stored(tensor) => {
                let (dtype, n_bytes) = (tensor.dtype(), tensor.row_bytes());
                let at = |column: usize| row * n_bytes + column / dtype.block_len() * dtype.block_bytes();
                (tensor.codec().decode)(&tensor.bytes()[at(columns.start)..at(columns.end)], out);
            }
            Self::Dense { values, n_cols } => {
                out.copy_from_slice(&values[row * n_cols + columns.start..row * n_cols + columns.end]);
            }
        }
    }

    /// Packs rows as columns of a product, strip by strip: out[strip][k][i] = W[rows.start + 32 · strip + i, k].
    pub fn pack_rows(&self, rows: Range<usize>, k: &Range<usize>, out: &mut [f32]) {
        // The distance avoids that all rows fall into the same lines of the cache.
        const DISTANCE: usize = MAX_BLOCK + 16;
        let mut decoded = vec![0.0; STRIP * DISTANCE];
        let n = k.len();
        for (strip, out) in out.chunks_exact_mut(n * STRIP).enumerate() {
            let first = rows.start + strip * STRIP;
            let n_rows = rows.end.saturating_sub(first).min(STRIP);
            for i in 0..n_rows {
                self.decode(first + i, k, &mut decoded[i * DISTANCE..][..n]);
            }
            for (j, out) in out.chunks_exact_mut(STRIP).enumerate() {
                for (i, out) in out[..n_rows].iter_mut().enumerate() {
                    *out = decoded[i * DISTANCE + j];
                }
                out[n_rows..].fill(0.0);
            }
        }
    }

    /// Packs columns, strip by strip: out[strip][r][i] = W[rows.start + r, columns.start + 32 · strip + i].
    pub fn pack_columns(&self, rows: &Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        let mut decoded = [0.0; MAX_BLOCK];
        let strip_len = rows.len() * STRIP;
        for (r, row) in rows.clone().enumerate() {
            self.decode(row, &columns, &mut decoded[..columns.len()]);
            for (strip, part) in decoded[..columns.len()].chunks(STRIP).enumerate() {
                out[strip * strip_len + r * STRIP..][..part.len()].copy_from_slice(part);
            }
        }
    }
}
