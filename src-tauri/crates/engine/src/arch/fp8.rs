//! FP8 weights of published repositories (DeepSeek V3, Qwen's FP8 releases): bytes of E4M3, and beside each matrix a
//! factor for every block of it. They are loaded as BF16, which keeps every bit of a byte and the factor to 1/256.

use serde_json::Value;
use weights::{DType, SharedBytes, TensorView, WeightFile};

use super::wrong_shape;
use crate::error::{DAMAGED, EngineError, Result};

/// Name in config.json's `quantization_config.quant_method`.
pub(super) const METHOD: &str = "fp8";
/// What the name of a matrix's factors ends with.
const SCALES: &str = "_scale_inv";
const STORED: DType = DType::F8_E4M3;
const LOADED: DType = DType::BF16;
const BLOCK_SIZE: &str = "weight_block_size";
/// The longest side of a block. Published files have 128.
const MAX_BLOCK: u64 = 1 << 16;

/// Returns whether weights are FP8 in a form that is read here.
pub(super) fn is_read(quantization: &Value) -> bool {
    let is_e4m3 = quantization.get("fmt").is_none_or(|format| format == "e4m3");
    is_e4m3
        && quantization.get("quant_method").is_some_and(|method| method == METHOD)
        && blocks(quantization).is_some()
}

/// Reads the rows and columns of a block.
fn blocks(quantization: &Value) -> Option<[usize; 2]> {
    let side = |value: &Value| value.as_u64().filter(|n| (1..=MAX_BLOCK).contains(n)).map(|n| n as usize);
    match quantization.get(BLOCK_SIZE)?.as_array()?.as_slice() {
        [rows, columns] => Some([side(rows)?, side(columns)?]),
        _ => None,
    }
}

/// Returns the format and the bytes of a stored tensor once it is loaded.
pub(super) fn loaded_size(dtype: DType, n_bytes: u64) -> (DType, u64) {
    match dtype == STORED {
        true => (LOADED, n_bytes.saturating_mul(LOADED.block_bytes() as u64)),
        false => (dtype, n_bytes),
    }
}

/// Returns a tensor in a format that can be computed with: FP8 as BF16, others as they are.
///
/// Errors: `model.tensor_missing` and `model.tensor_shape` of the factors.
pub(super) fn readable<'a>(file: &'a WeightFile, view: TensorView<'a>) -> Result<TensorView<'a>> {
    if view.dtype != STORED {
        return Ok(view);
    }
    let Some(block) = file.metadata().config().get("quantization_config").and_then(blocks) else {
        let message = format!("{} is FP8, and config.json has no {BLOCK_SIZE}", view.name);
        return Err(EngineError::new("model.dtype_unsupported", message, "Get the model in BF16."));
    };
    let name = format!("{}{SCALES}", view.name);
    let scales = file.tensor(&name).ok_or_else(|| super::tensor_missing(&name))?;
    let data = SharedBytes::from_vec(decoded(&view, &scales, block)?);
    Ok(TensorView { dtype: LOADED, data, ..view })
}

/// Multiplies every value with the factor of its block: (.., rows, columns) → BF16
fn decoded(view: &TensorView<'_>, scales: &TensorView<'_>, block: [usize; 2]) -> Result<Vec<u8>> {
    let [outer @ .., n_rows, n_columns] = view.shape else { return Err(wrong_shape(view, &[0, 0])) };
    let grid = [n_rows.div_ceil(block[0]), n_columns.div_ceil(block[1])];
    let expected = [outer, &grid[..]].concat();
    let (Some(codec), true) = (scales.dtype.codec(), scales.shape == expected) else {
        return Err(wrong_shape(scales, &expected));
    };
    let n_scales = expected.iter().product();
    let mut factors = vec![0.0; n_scales];
    (codec.decode)(&scales.data, &mut factors);
    let encode = LOADED.encoder().ok_or_else(|| {
        EngineError::new("model.dtype_unsupported", format!("{LOADED} cannot be written"), DAMAGED)
    })?;
    let values = values_of_bytes();
    let mut row = vec![0.0; *n_columns];
    let mut out = vec![0; view.data.len() * LOADED.block_bytes()];
    let rows = view
        .data
        .chunks_exact((*n_columns).max(1))
        .zip(out.chunks_exact_mut(LOADED.row_bytes(*n_columns).max(1)));
    for (index, (bytes, encoded)) in rows.enumerate() {
        let (matrix, at) = (index / n_rows, index % n_rows);
        let of_row = &factors[(matrix * grid[0] + at / block[0]) * grid[1]..][..grid[1]];
        for ((value, byte), column) in row.iter_mut().zip(bytes).zip(0..) {
            *value = values[usize::from(*byte)] * of_row[column / block[1]];
        }
        encode(&row, encoded);
    }
    Ok(out)
}

/// The value of every byte: a sign, four bits of an exponent with a bias of 7, three of a mantissa; no infinities.
fn values_of_bytes() -> [f32; 256] {
    std::array::from_fn(|byte| {
        let (exponent, mantissa) = ((byte >> 3) & 0xF, (byte & 7) as f32 / 8.0);
        let size = match exponent {
            0 => mantissa * 2f32.powi(-6),
            0xF if byte & 7 == 7 => f32::NAN,
            exponent => (1.0 + mantissa) * 2f32.powi(exponent as i32 - 7),
        };
        if byte & 0x80 == 0 { size } else { -size }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_have_the_values_of_e4m3() {
        // By the definition of the format: OCP 8-bit floating point, table 1.
        let values = values_of_bytes();
        for (byte, expected) in
            [(0x00, 0.0), (0x01, 0.001_953_125), (0x08, 0.015_625), (0x38, 1.0), (0x39, 1.125), (0x7E, 448.0)]
        {
            assert_eq!((values[byte], values[byte | 0x80]), (expected, -expected), "{byte:#x}");
        }
        assert!(values[0x7F].is_nan() && values[0xFF].is_nan());
    }

    #[test]
    fn only_blocks_of_e4m3_are_read() {
        let check = |config: Value, expected: bool| assert_eq!(is_read(&config), expected, "{config}");
        check(json!({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}), true);
        check(json!({"quant_method": "fp8", "weight_block_size": [128, 128]}), true);
        check(json!({"quant_method": "fp8", "fmt": "e5m2", "weight_block_size": [128, 128]}), false);
        check(json!({"quant_method": "fp8"}), false);
        check(json!({"quant_method": "fp8", "weight_block_size": [0, 128]}), false);
        check(json!({"quant_method": "awq", "weight_block_size": [128, 128]}), false);
    }
}
