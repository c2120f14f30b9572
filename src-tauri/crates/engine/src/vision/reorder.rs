//! Tensors of towers whose rows, columns or numbers are stored in another order than the graph takes them.

use kernels::Tensor;
use weights::{DType, SharedBytes, TensorView};

use crate::arch::TensorPart;
use crate::error::{DAMAGED, EngineError, Result};

/// Exchanges the second and third quarter of every head's rows. Dimensions that rotate together within halves of a
/// head are then half a head apart.
pub(super) fn exchange_middle_quarters(part: &mut TensorPart, head_dim: usize) {
    let row_len: usize = part.shape[1..].iter().product();
    let n_bytes = part.dtype.row_bytes(row_len);
    let quarter = head_dim / 4;
    let mut data = Vec::with_capacity(part.data.len());
    for head in part.data.chunks_exact((head_dim * n_bytes).max(1)) {
        for index in [0, 2, 1, 3] {
            data.extend_from_slice(&head[index * quarter * n_bytes..(index + 1) * quarter * n_bytes]);
        }
    }
    part.data = SharedBytes::from_vec(data);
}

/// Reorders the columns of a matrix over blocks of `n` patches from (channel, patch) to (patch, channel), as float32.
pub(super) fn join_channels(part: &mut TensorPart, n: usize) -> Result<()> {
    let values = Tensor::host(&part.view())?.decode();
    let n_cols: usize = part.shape[1..].iter().product();
    let n_channels = n_cols / n;
    let mut data = Vec::with_capacity(values.len() * size_of::<f32>());
    for row in values.chunks_exact(n_cols.max(1)) {
        for (patch, channel) in (0..n).flat_map(|patch| (0..n_channels).map(move |channel| (patch, channel)))
        {
            data.extend_from_slice(&row[channel * n + patch].to_le_bytes());
        }
    }
    (part.dtype, part.data) = (DType::F32, SharedBytes::from_vec(data));
    Ok(())
}

/// Reads a tensor that is one number, with or without dimensions.
///
/// Errors: `model.tensor_shape`, `model.dtype_unsupported`.
pub(super) fn number(view: &TensorView<'_>) -> Result<f32> {
    let one = TensorView { shape: &[1], ..view.clone() };
    if view.shape.iter().product::<usize>() != 1 {
        let message = format!("{} has shape {:?}, the model needs one number", view.name, view.shape);
        return Err(EngineError::new("model.tensor_shape", message, DAMAGED));
    }
    Ok(Tensor::host(&one)?.decode()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(shape: &[usize]) -> TensorPart {
        let n: usize = shape.iter().product();
        let data = (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let data = SharedBytes::from_vec(data);
        TensorPart { name: "x".into(), dtype: DType::F32, shape: shape.to_vec(), data }
    }

    fn values(part: &TensorPart) -> Vec<f32> {
        Tensor::host(&part.view()).unwrap().decode()
    }

    #[test]
    fn quarters_of_heads_change_places() {
        let mut vector = part(&[8]);
        exchange_middle_quarters(&mut vector, 8);
        assert_eq!(values(&vector), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
        let mut matrix = part(&[8, 1]);
        exchange_middle_quarters(&mut matrix, 4);
        assert_eq!(values(&matrix), [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
    }

    #[test]
    fn columns_of_blocks_follow_their_patches() {
        let mut matrix = part(&[2, 6]);
        join_channels(&mut matrix, 2).unwrap();
        assert_eq!(values(&matrix), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0, 6.0, 8.0, 10.0, 7.0, 9.0, 11.0]);
    }

    #[test]
    fn a_number_needs_no_dimension() {
        let scalar = TensorPart { shape: Vec::new(), ..part(&[1]) };
        assert_eq!(number(&scalar.view()).unwrap(), 0.0);
        assert_eq!(number(&part(&[2]).view()).unwrap_err().code(), "model.tensor_shape");
    }
}
