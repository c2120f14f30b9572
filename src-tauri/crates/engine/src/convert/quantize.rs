//! Converts one tensor to its new format: rows are decoded, encoded and compared in order, on all threads and in
//! bounded memory.

use std::io::{self, Write};
use std::ops::Range;

use weights::{DType, SharedBytes, TensorView};

use super::rearrange::{Permutation, Rearrangement};
use super::{ConversionTarget, TensorReport};

/// Values that one thread holds at a time: 4 MiB of float32.
const CHUNK_VALUES: usize = 1 << 20;

/// Values of a tensor and how to read them.
pub(crate) struct EncodeJob {
    pub dtype: DType,
    /// Whole rows, piece after piece.
    pieces: Vec<SharedBytes>,
    pub(super) rearrangement: Rearrangement,
}

impl EncodeJob {
    pub fn of(view: &TensorView<'_>) -> Self {
        Self::new(view.dtype, vec![view.data.clone()])
    }

    pub fn new(dtype: DType, pieces: Vec<SharedBytes>) -> Self {
        Self { dtype, pieces, rearrangement: Rearrangement::default() }
    }

    /// Wraps a small float32 tensor.
    pub fn values(values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::new(DType::F32, vec![SharedBytes::from_vec(bytes)])
    }

    /// Appends another tensor's pieces, group by group for `n_groups` equal groups. Returns false if their formats
    /// differ.
    pub fn join(&mut self, other: Self, n_groups: usize) -> bool {
        let (n_own, n_other) = (self.pieces.len() / n_groups, other.pieces.len() / n_groups);
        if self.dtype != other.dtype || n_own == 0 || n_other == 0 {
            return false;
        }
        let groups = self.pieces.chunks(n_own).zip(other.pieces.chunks(n_other));
        self.pieces = groups.flat_map(|(own, other)| own.iter().chain(other)).cloned().collect();
        true
    }

    /// Appends the first row `n` times.
    pub fn repeat_first_row(&mut self, n: usize, n_cols: usize) {
        let Some(first) = self.pieces.first().map(|piece| piece.slice(0..self.dtype.row_bytes(n_cols)))
        else {
            return;
        };
        self.pieces.extend(std::iter::repeat_n(first, n));
    }

    /// Returns whether the new tensor has the same bytes.
    fn is_copied(&self, dtype: DType) -> bool {
        self.dtype == dtype && self.rearrangement.is_none()
    }

    /// Returns the values of some rows of the new tensor. (rows, n_cols)
    pub fn decode(&self, rows: Range<usize>, n_cols: usize) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * n_cols];
        match self.rearrangement.rows {
            Permutation::AsStored => self.decode_stored(rows, n_cols, &mut values),
            order @ (Permutation::Interleaved { .. } | Permutation::Heads { .. }) => {
                for (row, out) in rows.zip(values.chunks_exact_mut(n_cols)) {
                    let from = order.source_of(row);
                    self.decode_stored(from..from + 1, n_cols, out);
                }
            }
        }
        self.rearrangement.apply_within_rows(&mut values, n_cols);
        values
    }

    /// Decodes rows in stored order. `out`: (rows, n_cols)
    fn decode_stored(&self, rows: Range<usize>, n_cols: usize, out: &mut [f32]) {
        let codec = self.dtype.codec().expect("a model's tensors were checked to be readable");
        let row_bytes = self.dtype.row_bytes(n_cols);
        let mut first = 0;
        for bytes in &self.pieces {
            let n_rows = bytes.len() / row_bytes;
            let (start, end) = (rows.start.max(first), rows.end.min(first + n_rows));
            if start < end {
                let from = (start - rows.start) * n_cols..(end - rows.start) * n_cols;
                (codec.decode)(
                    &bytes[(start - first) * row_bytes..(end - first) * row_bytes],
                    &mut out[from],
                );
            }
            first += n_rows;
        }
    }
}

/// Sum of squared differences, sum of squared source values, and number of values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct QuantizationError {
    pub differences: f64,
    pub squares: f64,
    pub n: usize,
}

impl QuantizationError {
    pub fn between(before: &[f32], after: &[f32]) -> Self {
        let mut sum = Self { n: before.len(), ..Self::default() };
        for (a, b) in before.iter().zip(after) {
            sum.differences += f64::from(a - b).powi(2);
            sum.squares += f64::from(*a).powi(2);
        }
        sum
    }

    pub fn add(&mut self, other: Self) {
        self.differences += other.differences;
        self.squares += other.squares;
        self.n += other.n;
    }

    pub fn rmse(self) -> f64 {
        (self.differences / self.n.max(1) as f64).sqrt()
    }

    /// Returns the squared noise-to-signal ratio. 0 for a tensor of zeros.
    pub fn relative_square(self) -> f64 {
        if self.squares == 0.0 { 0.0 } else { self.differences / self.squares }
    }
}

/// Encodes rows. Returns the bytes and the error.
pub(super) fn encoded(values: &[f32], n_cols: usize, dtype: DType) -> (Vec<u8>, QuantizationError) {
    let encode = dtype.encoder().expect("only formats with an encoder are chosen");
    let codec = dtype.codec().expect("every encoded format can be decoded");
    let mut bytes = vec![0; values.len() / n_cols * dtype.row_bytes(n_cols)];
    encode(values, &mut bytes);
    let mut back = vec![0.0; values.len()];
    (codec.decode)(&bytes, &mut back);
    let error = QuantizationError::between(values, &back);
    (bytes, error)
}

/// Writes the tensor's blocks.
///
/// Errors: the sink's, or a value that the format cannot hold.
pub(super) fn write(
    target: &ConversionTarget,
    threads: usize,
    out: &mut dyn Write,
) -> io::Result<TensorReport> {
    // A vector's rows are its elements.
    let is_permuted_vector =
        target.job.rearrangement.rows != Permutation::AsStored && target.shape.len() == 1;
    let (n_rows, n_cols) = match is_permuted_vector {
        true => (target.n_cols(), 1),
        false => (target.n_rows(), target.n_cols()),
    };
    let mut error = QuantizationError::default();
    if target.job.is_copied(target.dtype) {
        target.job.pieces.iter().try_for_each(|piece| out.write_all(piece))?;
    } else {
        let rows_at_once = (CHUNK_VALUES / n_cols).clamp(1, n_rows.max(1));
        let starts: Vec<usize> = (0..n_rows).step_by(rows_at_once).collect();
        let chunk = |start: usize| {
            let values = target.job.decode(start..(start + rows_at_once).min(n_rows), n_cols);
            encoded(&values, n_cols, target.dtype)
        };
        for wave in starts.chunks(threads.max(1)) {
            for (bytes, of_chunk) in in_parallel(wave, &chunk)? {
                out.write_all(&bytes)?;
                error.add(of_chunk);
            }
        }
        check_finite(target, error)?;
    }
    Ok(TensorReport {
        name: target.name.clone(),
        from: target.job.dtype.name().into(),
        to: target.dtype.name().into(),
        shape: target.shape.clone(),
        bytes: target.n_bytes(target.dtype),
        rmse: error.rmse(),
        relative: error.relative_square().sqrt(),
    })
}

/// Maps the items, one thread each. Results keep the order of the items.
fn in_parallel<T: Send>(items: &[usize], work: &(impl Fn(usize) -> T + Sync)) -> io::Result<Vec<T>> {
    if let &[item] = items {
        return Ok(vec![work(item)]);
    }
    std::thread::scope(|scope| {
        let spawned: Vec<_> = items.iter().map(|&item| scope.spawn(move || work(item))).collect();
        let joined = spawned.into_iter().map(|thread| thread.join());
        joined.map(|result| result.map_err(|_| io::Error::other("a thread panicked"))).collect()
    })
}

fn check_finite(target: &ConversionTarget, error: QuantizationError) -> io::Result<()> {
    if error.differences.is_finite() && error.squares.is_finite() {
        return Ok(());
    }
    let cause = match error.squares.is_finite() {
        true => format!("{} has values too large for {}", target.name, target.dtype.name()),
        false => format!("{} has values that are not finite numbers", target.name),
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, cause))
}

#[cfg(test)]
mod tests {
    use super::super::rearrange::ValueChange;
    use super::*;

    #[test]
    fn pieces_are_joined_group_by_group() {
        let piece = |values: &[f32]| EncodeJob::values(values).pieces.remove(0);
        let mut gate = EncodeJob::new(DType::F32, vec![piece(&[1.0, 2.0]), piece(&[3.0, 4.0])]);
        let up =
            EncodeJob::new(DType::F32, vec![piece(&[5.0, 6.0, 7.0, 8.0]), piece(&[9.0, 10.0, 11.0, 12.0])]);
        assert!(gate.join(up, 2));
        assert_eq!(gate.decode(0..6, 2), [1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 3.0, 4.0, 9.0, 10.0, 11.0, 12.0]);
        assert_eq!(gate.decode(2..4, 2), [7.0, 8.0, 3.0, 4.0]);
        gate.rearrangement.change = ValueChange::Add(1.0);
        assert_eq!(gate.decode(3..4, 2), [4.0, 5.0]);
    }

    #[test]
    fn missing_rows_are_the_first() {
        let mut table = EncodeJob::values(&[1.0, 2.0, 3.0, 4.0]);
        table.repeat_first_row(2, 2);
        assert_eq!(table.decode(0..4, 2), [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 1.0, 2.0]);
        table.repeat_first_row(0, 2);
        assert_eq!(table.decode(3..4, 2), [1.0, 2.0]);
    }
}
