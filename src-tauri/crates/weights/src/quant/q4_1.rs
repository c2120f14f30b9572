//! Q4_1: 32 four-bit numbers under a half-precision scale, above a half-precision minimum. Value = scale · q + min.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..4 | min, f16 |
//! | 4..20 | q: low nibbles are elements 0..16, high nibbles 16..32 |

use super::search::{OffsetRange, fit_affine};
use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q4_1.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 20;
const Q_MAX: f32 = 15.0;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let (scale, min) = (read_f16(block, 0), read_f16(block, 2));
        let (low, high) = out.split_at_mut(LEN / 2);
        for ((&byte, low), high) in block[4..].iter().zip(low).zip(high) {
            *low = scale * f32::from(byte & 15) + min;
            *high = scale * f32::from(byte >> 4) + min;
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let mut fit = fit_affine(values, Q_MAX, OffsetRange::Any);
        fit.step = write_f16(block, 0, fit.step);
        fit.offset = -write_f16(block, 2, -fit.offset);
        let q = |v: f32| fit.quantise(v, Q_MAX) as u8;
        for (i, byte) in block[4..].iter_mut().enumerate() {
            *byte = q(values[i]) | q(values[i + LEN / 2]) << 4;
        }
    });
}
