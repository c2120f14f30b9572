//! Sizes of a model's tensors in a file, from names and shapes alone. Reads no values, so a header is enough.

use std::collections::HashSet;

use weights::{DType, TensorView, WeightFile};

use super::assistant::clusters_tensor;
use super::tensor_names::{self, TensorForm};
use super::{Family, fp8, tensor_missing};
use crate::error::Result;
use crate::spec::{ModelSpec, Role};

/// A tensor of a file, or an expert matrix, under the first of its roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTensor {
    /// First role of the tensor.
    pub role: Role,
    /// Layer index; `None` outside the layers.
    pub layer: Option<usize>,
    /// Data type that is computed with.
    pub dtype: DType,
    /// Bytes of the loaded tensor.
    pub n_bytes: u64,
    /// Number of values.
    pub n_values: u64,
}

/// Lists every tensor of the spec. One that several roles share is listed once.
///
/// Errors: `model.tensor_missing`.
pub fn stored_tensors(file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<Vec<StoredTensor>> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (role, layer, shape) in spec.tensors().into_iter().chain(clusters_tensor(spec)) {
        let Some((tensor_name, name)) = tensor_names::find(file, family, role, layer) else {
            return Err(tensor_missing(&tensor_names::expected_name(file.container(), family, role, layer)));
        };
        if !seen.insert(name.clone()) {
            continue;
        }
        let n_experts = if name.contains('#') { shape[0] } else { 1 };
        for expert in 0..n_experts {
            let name = name.replace('#', &expert.to_string());
            let view = file.tensor(&name).ok_or_else(|| tensor_missing(&name))?;
            let scales = match tensor_name.form {
                TensorForm::Mxfp4(_) => file.tensor(&name.replace("_blocks", "_scales")),
                TensorForm::Whole
                | TensorForm::ByKeyHead
                | TensorForm::Flat
                | TensorForm::HeadKeys
                | TensorForm::HeadValues
                | TensorForm::Rows(_)
                | TensorForm::After(_)
                | TensorForm::Frame { .. }
                | TensorForm::Places
                | TensorForm::Interleaved(_)
                | TensorForm::Transposed(_)
                | TensorForm::TransposedInterleaved(_) => None,
            };
            let n_bytes = bytes_of(&view) + scales.as_ref().map_or(0, bytes_of);
            let n_values = values_of(&view, tensor_name.form);
            let (dtype, n_bytes) = fp8::loaded_size(view.dtype, n_bytes);
            all.push(StoredTensor { role, layer, dtype, n_bytes, n_values });
        }
    }
    Ok(all)
}

/// Computed from the shape: a header has no data.
fn bytes_of(view: &TensorView<'_>) -> u64 {
    let Some((n_cols, outer)) = view.shape.split_last() else { return 0 };
    let rows = outer.iter().fold(1u64, |product, n| product.saturating_mul(*n as u64));
    rows.saturating_mul(view.dtype.row_bytes(*n_cols) as u64)
}

/// If scales are stored separately, a byte holds two values.
fn values_of(view: &TensorView<'_>, form: TensorForm) -> u64 {
    let n = view.shape.iter().fold(1u64, |product, n| product.saturating_mul(*n as u64));
    match form {
        TensorForm::Mxfp4(_) => n.saturating_mul(2),
        TensorForm::Whole
        | TensorForm::ByKeyHead
        | TensorForm::Flat
        | TensorForm::HeadKeys
        | TensorForm::HeadValues
        | TensorForm::Rows(_)
        | TensorForm::After(_)
        | TensorForm::Frame { .. }
        | TensorForm::Places
        | TensorForm::Interleaved(_)
        | TensorForm::Transposed(_)
        | TensorForm::TransposedInterleaved(_) => n,
    }
}
