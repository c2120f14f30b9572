//! Projections of latent attention, stored for all heads in one matrix: each head's rows for keys, then those for values.

use weights::{DType, SharedBytes, TensorView};

use super::{TensorForm, TensorPart};
use crate::arch::{check_shape, codec};
use crate::error::Result;
use crate::spec::Role;

/// Returns the rows of each head, for keys and values together. `shape` is the role's.
///
/// Errors: `model.tensor_shape`.
pub(super) fn rows_per_head(
    view: &TensorView<'_>,
    form: TensorForm,
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> Result<usize> {
    let n_heads = shape[0];
    let (n_rows, rank) = match form {
        TensorForm::HeadKeys => (shape[2] + rows_of(Role::LatentValues).unwrap_or(0), shape[1]),
        _ => (view.shape.first().map_or(0, |n| n / n_heads).max(shape[1] + 1), shape[2]),
    };
    check_shape(view, &[n_heads.saturating_mul(n_rows), rank])?;
    Ok(n_rows)
}

/// Reads one matrix per head: `[value_dim, rank]` as stored, or `[rank, nope_dim]`, transposed. A block format, whose
/// blocks run the other way, is decoded for that.
///
/// Errors: `model.tensor_shape`, `model.dtype_unsupported`.
pub(super) fn split(
    view: &TensorView<'_>,
    form: TensorForm,
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> Result<Vec<TensorPart>> {
    let codec = codec(view)?;
    let n_rows = rows_per_head(view, form, shape, rows_of)?;
    let rows = |first: usize, n: usize, row_bytes: usize| first * row_bytes..(first + n) * row_bytes;
    let one = |head: usize| match form {
        TensorForm::HeadKeys => {
            let (rank, n) = (shape[1], shape[2]);
            let data = view.data.slice(rows(head * n_rows, n, view.dtype.row_bytes(rank)));
            let (dtype, data) = match view.dtype.block_len() {
                1 => (view.dtype, transposed(&data, rank, view.dtype.block_bytes())),
                _ => {
                    let mut values = vec![0.0f32; n * rank];
                    (codec.decode)(&data, &mut values);
                    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                    (DType::F32, transposed(&bytes, rank, size_of::<f32>()))
                }
            };
            let name = view.name.to_owned();
            TensorPart { name, dtype, shape: shape[1..].to_vec(), data: SharedBytes::from_vec(data) }
        }
        _ => {
            let (n, rank) = (shape[1], shape[2]);
            let range = rows((head + 1) * n_rows - n, n, view.dtype.row_bytes(rank));
            TensorPart::of(view, &shape[1..], view.data.slice(range))
        }
    };
    Ok((0..shape[0]).map(one).collect())
}

/// Transposes rows of `n_cols` elements of `n_bytes`.
fn transposed(data: &[u8], n_cols: usize, n_bytes: usize) -> Vec<u8> {
    let n_rows = data.len() / (n_cols * n_bytes);
    let mut out = Vec::with_capacity(data.len());
    for column in 0..n_cols {
        for row in 0..n_rows {
            let at = (row * n_cols + column) * n_bytes;
            out.extend_from_slice(&data[at..at + n_bytes]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_alternate_keys_and_values() {
        // two heads with two rows for keys and one for values, rank 2
        let values: Vec<u8> = (0..12u8).flat_map(|x| f32::from(x).to_le_bytes()).collect();
        let data = SharedBytes::from_vec(values);
        let view = TensorView { name: "kv_b", dtype: DType::F32, shape: &[6, 2], data };
        let rows_of = |role: Role| (role == Role::LatentValues).then_some(1);
        let read = |form, shape: &[usize]| {
            let parts = split(&view, form, shape, &rows_of).unwrap();
            let floats = |part: &TensorPart| {
                part.data.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
            };
            parts.iter().map(floats).collect::<Vec<Vec<f32>>>()
        };
        let keys = read(TensorForm::HeadKeys, &[2, 2, 2]);
        assert_eq!(keys, [[0.0, 2.0, 1.0, 3.0], [6.0, 8.0, 7.0, 9.0]]);
        assert_eq!(read(TensorForm::HeadValues, &[2, 1, 2]), [[4.0, 5.0], [10.0, 11.0]]);
        assert!(split(&view, TensorForm::HeadKeys, &[2, 2, 3], &rows_of).is_err());
        assert!(split(&view, TensorForm::HeadValues, &[2, 3, 2], &rows_of).is_err());
        assert!(split(&view, TensorForm::HeadValues, &[4, 1, 2], &rows_of).is_err());
    }
}
