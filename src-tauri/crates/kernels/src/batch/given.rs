//! What a batch says about rows that are of images: their embeddings, their extent, their coordinates.

use super::Batch;
use crate::error::KernelError;
use crate::graph::{Graph, N_COORDINATES};

/// The rows of a batch that are of images. Empty slices where there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenRows<'a> {
    /// rows whose values are given, strictly increasing
    pub rows: &'a [u32],
    /// (given rows, `Graph::given_width`)
    pub values: &'a [f32],
    /// (rows of the batch) first position after the image that each row is in, 0 outside of images. What a row has not
    /// passed of its image must be in the batch.
    pub image_ends: &'a [u32],
    /// (rows of the batch) what rotations take for the position: time, row, column
    pub coordinates: &'a [[u32; N_COORDINATES]],
}

impl GivenRows<'_> {
    /// A batch without images.
    pub const NONE: GivenRows<'static> =
        GivenRows { rows: &[], values: &[], image_ends: &[], coordinates: &[] };

    /// The columns from `start` on of a row's values. None: the row is not given.
    pub fn columns(&self, row: usize, start: usize, width: usize) -> Option<&[f32]> {
        let at = self.rows.binary_search(&u32::try_from(row).ok()?).ok()?;
        let stride = self.values.len() / self.rows.len();
        self.values.get(at * stride + start..at * stride + start + width)
    }

    /// Errors: rows out of order or bounds, values of another length, an image that ends outside the batch.
    pub(super) fn check(&self, batch: &Batch, graph: &Graph) -> Result<(), KernelError> {
        let fail = |what, found, limit| Err(KernelError::Batch { what, found, limit });
        let n = batch.n_rows();
        for (i, row) in self.rows.iter().enumerate() {
            if *row as usize >= n || (i > 0 && self.rows[i - 1] >= *row) {
                return fail("given row", *row as usize, n);
            }
        }
        let n_values = graph.given_width().unwrap_or(0).saturating_mul(self.rows.len());
        if self.values.len() != n_values || (graph.given_width().is_none() && !self.rows.is_empty()) {
            return fail("values of given rows", self.values.len(), n_values);
        }
        for (what, len) in
            [("ends of images", self.image_ends.len()), ("coordinates", self.coordinates.len())]
        {
            if len != 0 && len != n {
                return fail(what, len, n);
            }
        }
        if self.image_ends.iter().all(|end| *end == 0) {
            return Ok(()); // the ends of sequences are allocated
        }
        let ends = batch.ends();
        for (row, end) in self.image_ends.iter().enumerate().filter(|(_, end)| **end > 0) {
            if *end <= batch.positions[row] || *end as usize > ends[row] {
                return fail("end of an image", *end as usize, ends[row]);
            }
        }
        Ok(())
    }
}

impl Batch<'_> {
    /// What rotations take for a row's position.
    pub fn coordinates(&self, row: usize) -> [u32; N_COORDINATES] {
        self.given.coordinates.get(row).copied().unwrap_or([self.positions[row]; N_COORDINATES])
    }
}
