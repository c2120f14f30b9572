//! Matrices of a DeltaNet whose rows alternate by key head.
//!
//! One matrix has each head's query, key, values and gates; one has its write strengths and exponents of decay.

use std::ops::Range;

use serde_json::Value;
use weights::{Container, SharedBytes, TensorView, WeightFile};

use super::{TensorPart, check_shape, codec};
use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::Role;

/// Bound as on other heads.
const MAX_KEY_HEADS: usize = 1 << 12;
/// Of configs that do not say.
const DEFAULT_N_KEY_HEADS: u64 = 16;

/// Gathers a role's rows in the order that the model computes with: all queries, all keys, all values.
///
/// Errors: a number of key heads that does not divide the rows, another shape.
pub(super) fn gather(
    file: &WeightFile,
    view: &TensorView<'_>,
    role: Role,
    shape: &[usize],
    rows_of: &dyn Fn(Role) -> Option<usize>,
) -> Result<TensorPart> {
    codec(view)?;
    let n = n_key_heads(file)?;
    let rows = |role| rows_of(role).unwrap_or(0);
    let (stride, pieces) = match role {
        Role::DeltaBeta | Role::DeltaAlpha => {
            let each = share(view, rows(Role::DeltaBeta), n)?;
            let start = if role == Role::DeltaBeta { 0 } else { each };
            (2 * each, Vec::from([Range { start, end: start + each }]))
        }
        _ => {
            let values = share(view, rows(Role::DeltaGate), n)?;
            let both = rows(Role::DeltaQkv).saturating_sub(rows(Role::DeltaGate));
            let key = share(view, both, 2 * n)?;
            let at = 2 * key;
            let pieces = match role {
                Role::DeltaQkv => vec![0..key, key..at, at..at + values],
                _ => Vec::from([Range { start: at + values, end: at + 2 * values }]),
            };
            (at + 2 * values, pieces)
        }
    };
    let row_len: usize = shape[1..].iter().product();
    check_shape(view, &[n * stride, row_len])?;
    let n_bytes = view.dtype.row_bytes(row_len);
    let mut data = Vec::with_capacity(shape[0] * n_bytes);
    for Range { start, end } in pieces {
        for head in 0..n {
            let first = head * stride;
            data.extend_from_slice(&view.data[(first + start) * n_bytes..(first + end) * n_bytes]);
        }
    }
    let data = SharedBytes::from_vec(data);
    Ok(TensorPart { name: view.name.to_owned(), dtype: view.dtype, shape: shape.to_vec(), data })
}

fn share(view: &TensorView<'_>, rows: usize, n: usize) -> Result<usize> {
    match rows % n {
        0 => Ok(rows / n),
        _ => {
            let message = format!("{}: {n} key heads do not share {rows} rows", view.name);
            Err(EngineError::new("model.tensor_shape", message, DAMAGED))
        }
    }
}

fn n_key_heads(file: &WeightFile) -> Result<usize> {
    let n = match file.container() {
        Container::Gguf { .. } => {
            let architecture = file.metadata().str("general.architecture")?;
            file.metadata().opt_u64(&format!("{architecture}.ssm.group_count"))?
        }
        Container::Safetensors => {
            let config = file.metadata().config();
            let config = config.get("text_config").unwrap_or(config);
            let found = config.get("linear_num_key_heads").filter(|n| !n.is_null());
            found.map_or(Some(DEFAULT_N_KEY_HEADS), Value::as_u64)
        }
    };
    match n.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=MAX_KEY_HEADS).contains(n)) {
        Some(n) => Ok(n),
        None => Err(EngineError::new("model.hyperparameter", "the number of key heads is missing", DAMAGED)),
    }
}
