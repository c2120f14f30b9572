//! Block formats, one file each: layout, scalar decoder (the specification) and encoder.
//!
//! A codec works on rows: any number of whole blocks.

mod affine_groups;
pub mod bf16;
pub mod f16;
pub mod f32;
pub mod iq1_m;
pub mod iq1_s;
pub mod iq2_s;
pub mod iq2_xs;
pub mod iq2_xxs;
pub mod iq3_s;
pub mod iq3_xxs;
pub mod iq4_nl;
pub mod iq4_xs;
pub mod iq_grid;
pub mod iq_grid_tables;
pub mod mxfp4;
pub mod nvfp4;
pub mod presets;
pub mod q1_0;
pub mod q2_0;
pub mod q2_k;
pub mod q3_k;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q5_0;
pub mod q5_1;
pub mod q5_k;
pub mod q6_k;
pub mod q8_0;
pub mod q8_1;
pub mod q8_k;
mod search;
mod signed_groups;
pub mod tq1_0;
pub mod tq2_0;

/// Decodes blocks to values, exactly as the format defines them.
pub type DecodeFn = fn(&[u8], &mut [f32]);
/// Encodes values to blocks, with the smallest squared error that a bounded search finds.
pub type EncodeFn = fn(&[f32], &mut [u8]);

/// Decoder and encoder of a format. Lengths must match: `n` blocks of bytes and `n · block_len` floats.
pub struct Codec {
    /// Decoder.
    pub decode: DecodeFn,
    /// Encoder; `None` for formats that are useless without a calibration text, so that files are only read.
    pub encode: Option<EncodeFn>,
}

/// Elements of a block of the K formats.
pub const K_LEN: usize = 256;

/// Reads the half-precision number at `at`.
#[inline]
pub(crate) fn read_f16(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Writes `value` rounded to half precision and returns what was written.
pub(crate) fn write_f16(block: &mut [u8], at: usize, value: f32) -> f32 {
    let rounded = half::f16::from_f32(value);
    block[at..at + 2].copy_from_slice(&rounded.to_le_bytes());
    rounded.to_f32()
}

/// Decodes each block with `decode`.
fn decode_blocks<const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    let (blocks, rest) = bytes.as_chunks::<BYTES>();
    let (outs, out_rest) = out.as_chunks_mut::<LEN>();
    assert!(rest.is_empty() && out_rest.is_empty() && blocks.len() == outs.len(), "whole blocks");
    for (block, out) in blocks.iter().zip(outs) {
        decode(block, out);
    }
}

/// Encodes each block with `encode`.
fn encode_blocks<const LEN: usize, const BYTES: usize>(
    values: &[f32],
    out: &mut [u8],
    encode: impl Fn(&[f32; LEN], &mut [u8; BYTES]),
) {
    let (inputs, rest) = values.as_chunks::<LEN>();
    let (blocks, out_rest) = out.as_chunks_mut::<BYTES>();
    assert!(rest.is_empty() && out_rest.is_empty() && blocks.len() == inputs.len(), "whole blocks");
    for (input, block) in inputs.iter().zip(blocks) {
        encode(input, block);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::dtype::{DTypeRow, TABLE};

    /// Values distributed like weights: a bell curve from a fixed seed.
    pub fn bell(n: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        (0..n).map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0).collect()
    }

    /// Root mean square error after encoding and decoding.
    pub fn rmse(row: &DTypeRow, values: &[f32]) -> f64 {
        let codec = row.codec.as_ref().unwrap();
        let mut bytes = vec![0; values.len() / row.block_len * row.block_bytes];
        codec.encode.unwrap()(values, &mut bytes);
        let mut back = vec![0.0; values.len()];
        (codec.decode)(&bytes, &mut back);
        let sum: f64 = values.iter().zip(&back).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        (sum / values.len() as f64).sqrt()
    }

    /// Format, bound on our error on a bell curve, and the errors of ggml's plain encoders (`quantize_row_*_ref`, August
    /// 2026) on the bell curve and on its signed squares. The bound is measured, so that a worse search shows. The
    /// signed squares have long tails.
    const ERRORS: &[(&str, f64, f64, f64)] = &[
        ("Q8_0", 5.28e-3, 5.2785e-3, 1.27939e-2),
        ("Q8_1", 5.28e-3, 5.2785e-3, 1.27939e-2),
        ("Q8_K", 6.78e-3, 6.7704e-3, 1.96294e-2),
        ("Q4_0", 7.97e-2, 8.4797e-2, 1.8664e-1),
        ("Q4_1", 6.85e-2, 7.7241e-2, 1.7201e-1),
        ("Q5_0", 3.94e-2, 4.1898e-2, 9.6084e-2),
        ("Q5_1", 3.27e-2, 3.7263e-2, 8.3109e-2),
        ("Q2_K", 2.62e-1, 2.9301e-1, 6.3238e-1),
        ("Q3_K", 1.42e-1, 1.4851e-1, 2.8782e-1),
        ("Q4_K", 6.87e-2, 7.0032e-2, 1.5390e-1),
        ("Q5_K", 3.37e-2, 3.5474e-2, 7.9074e-2),
        ("Q6_K", 1.69e-2, 1.7380e-2, 3.9120e-2),
        ("IQ4_NL", 7.24e-2, 7.8098e-2, 1.5537e-1),
        ("IQ4_XS", 7.30e-2, 7.5903e-2, 1.5491e-1),
        ("MXFP4", 1.11e-1, 1.1438e-1, 2.2094e-1),
        ("TQ1_0", 4.31e-1, 7.8890e-1, 1.3514),
        ("TQ2_0", 4.31e-1, 7.8890e-1, 1.3514),
    ];

    #[test]
    fn errors_are_as_measured_and_no_larger_than_the_usual_encoders() {
        let bell = bell(64 * K_LEN, 7);
        let tails: Vec<f32> = bell.iter().map(|v| v * v.abs()).collect();
        for &(name, bound, theirs_bell, theirs_tails) in ERRORS {
            let row = TABLE.iter().find(|row| row.name == name).unwrap();
            let (on_bell, on_tails) = (rmse(row, &bell), rmse(row, &tails));
            assert!(on_bell <= bound.min(theirs_bell), "{name}: {on_bell}");
            assert!(on_tails <= theirs_tails, "{name} with tails: {on_tails}");
        }
        let encoders = TABLE.iter().filter(|row| row.block_len > 1 && row.dtype.encoder().is_some());
        assert_eq!(ERRORS.len(), encoders.count());
        for (name, bound) in [("F32", 0.0), ("F16", 2.4e-4), ("BF16", 2.0e-3)] {
            let row = TABLE.iter().find(|row| row.name == name).unwrap();
            assert!(rmse(row, &bell) <= bound, "{name}");
        }
    }

    #[test]
    fn zeros_stay_zeros_and_strange_values_do_no_harm() {
        let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, -0.0];
        for row in TABLE {
            let (Some(codec), Some(encode)) = (&row.codec, row.dtype.encoder()) else { continue };
            let mut bytes = vec![0xAA; K_LEN / row.block_len * row.block_bytes];
            let mut back = vec![1.0; K_LEN];
            encode(&[0.0; K_LEN], &mut bytes);
            (codec.decode)(&bytes, &mut back);
            assert!(back.iter().all(|&v| v == 0.0), "{}", row.name);
            let mixed: Vec<f32> = (0..K_LEN).map(|i| strange[i % strange.len()]).collect();
            encode(&mixed, &mut bytes);
            (codec.decode)(&bytes, &mut back);
        }
    }

    #[test]
    fn any_bytes_decode() {
        for row in TABLE {
            let Some(codec) = &row.codec else { continue };
            let n_bytes = 256 / row.block_len * row.block_bytes;
            for byte in 0..=255 {
                (codec.decode)(&vec![byte; n_bytes], &mut [0.0; 256]);
            }
        }
    }
}
