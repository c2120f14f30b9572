//! A matrix [out, in] in any block format, packed as integers of 16 bits for products.

use std::ops::Range;

use kernels::cpu::isa::IsaLevel;
use kernels::ops::integer_panel::{K_TILE, MAX_B, PAIR, QUANTIZE_B, QUANTIZE_COLUMNS, STRIP};

use super::matrix::{Direction, MAX_BLOCK, Matrix};

/// Columns packed by one task.
pub(super) const GROUP: usize = MAX_BLOCK;
// Tiles and groups begin where blocks do.
const _: () = assert!(K_TILE == MAX_BLOCK && GROUP.is_multiple_of(STRIP));

/// Packs the right operand of a product, strip by strip.
pub(super) struct GroupPacker<'a> {
    pub w: Matrix<'a>,
    pub direction: Direction,
    pub level: IsaLevel,
}

impl GroupPacker<'_> {
    /// Packs one tile of k of a group of columns: q (strips, K_TILE / PAIR, STRIP, PAIR) and scales (GROUP).
    pub fn pack(&self, k: &Range<usize>, columns: Range<usize>, q: &mut [i16], scales: &mut [f32]) {
        match self.direction {
            Direction::Forward => self.pack_rows(columns, k, q, scales),
            Direction::Backward => self.pack_columns(k, columns, q, scales),
        }
    }

    /// Columns of the product are rows of the matrix.
    fn pack_rows(&self, rows: Range<usize>, k: &Range<usize>, q: &mut [i16], scales: &mut [f32]) {
        // The distance avoids that all rows fall into the same lines of the cache.
        const DISTANCE: usize = K_TILE + 32;
        let quantize = QUANTIZE_B.at(self.level);
        let (mut decoded, mut strip) = ([0.0; K_TILE], vec![0i16; STRIP * DISTANCE]);
        let width = k.len().next_multiple_of(PAIR);
        let strips = q.chunks_exact_mut(STRIP * K_TILE).zip(scales.chunks_exact_mut(STRIP));
        for (first, (q, scales)) in rows.clone().step_by(STRIP).zip(strips) {
            let n = STRIP.min(rows.end - first);
            scales.fill(0.0);
            for (i, scale) in scales[..n].iter_mut().enumerate() {
                self.w.decode(first + i, k, &mut decoded[..k.len()]);
                *scale = quantize(&decoded[..k.len()], &mut strip[i * DISTANCE..][..width]);
            }
            for (pair, q) in q.chunks_exact_mut(STRIP * PAIR).take(width / PAIR).enumerate() {
                for (i, q) in q.chunks_exact_mut(PAIR).enumerate() {
                    q.copy_from_slice(&strip[i * DISTANCE + pair * PAIR..][..PAIR]);
                }
            }
        }
    }

    /// Columns of the product are columns of the matrix.
    fn pack_columns(&self, rows: &Range<usize>, columns: Range<usize>, q: &mut [i16], scales: &mut [f32]) {
        let quantize = QUANTIZE_COLUMNS.at(self.level);
        let mut decoded = vec![0.0; rows.len() * GROUP];
        for (row, decoded) in rows.clone().zip(decoded.chunks_exact_mut(GROUP)) {
            self.w.decode(row, &columns, &mut decoded[..columns.len()]);
        }
        let strips = q.chunks_exact_mut(STRIP * K_TILE).zip(scales.chunks_exact_mut(STRIP));
        for (first, (q, scales)) in (0..columns.len()).step_by(STRIP).zip(strips) {
            quantize(&decoded[first..], GROUP, STRIP.min(columns.len() - first), MAX_B, q, scales);
        }
    }
}
