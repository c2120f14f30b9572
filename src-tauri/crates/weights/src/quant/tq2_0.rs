//! TQ2_0: 256 numbers out of −1, 0, 1 under one half-precision factor, two bits each. Value = d · (q − 1). For models
//! that were trained with such weights.
//!
//! | bytes | what |
//! |---|---|
//! | 0..64 | q, packed as in Q2_K |
//! | 64..66 | d, f16 |

use super::q2_k::place;
use super::search::inverse_of;
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of TQ2_0.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 66;
const FACTOR: usize = 64;

/// The factor with the smallest squared error: the mean of the n largest magnitudes, which become ±1. It reduces the error
/// of zeros by (Σ)² / n; the best n wins.
pub fn fit_factor(values: &[f32; K_LEN]) -> f32 {
    let mut magnitudes = values.map(f32::abs);
    magnitudes.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut best, mut factor) = (0.0, 0.0, 0.0);
    for (i, magnitude) in magnitudes.iter().filter(|m| m.is_finite()).enumerate() {
        let n = (i + 1) as f32;
        sum += magnitude;
        if sum * (sum / n) > best {
            (best, factor) = (sum * (sum / n), sum / n);
        }
    }
    factor
}

/// 0, 1 or 2 for a value over the factor.
#[inline]
pub fn trit(x: f32) -> u8 {
    1 + u8::from(x > 0.5) - u8::from(x < -0.5)
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, FACTOR);
        for (i, o) in out.iter_mut().enumerate() {
            let (byte, shift) = place(i);
            *o = (f32::from(block[byte] >> shift & 3) - 1.0) * d;
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; K_LEN], block: &mut [u8; BYTES]| {
        block.fill(0);
        let inverse = inverse_of(write_f16(block, FACTOR, fit_factor(values)));
        for (i, v) in values.iter().enumerate() {
            let (byte, shift) = place(i);
            block[byte] |= trit(v * inverse) << shift;
        }
    });
}
