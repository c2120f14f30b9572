//! Q5_1: 32 five-bit numbers under a half-precision scale, above a half-precision minimum. Value = scale · q + min.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..4 | min, f16 |
//! | 4..8 | fifth bits, little-endian: bit i is of element i |
//! | 8..24 | q: low nibbles are elements 0..16, high nibbles 16..32 |

use super::search::{OffsetRange, fit_affine};
use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q5_1.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 24;
const Q_MAX: f32 = 31.0;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let (scale, min) = (read_f16(block, 0), read_f16(block, 2));
        let fifth = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
        let q = |nibble: u8, i: usize| nibble | ((fifth >> i & 1) as u8) << 4;
        for (i, &byte) in block[8..].iter().enumerate() {
            out[i] = scale * f32::from(q(byte & 15, i)) + min;
            out[i + LEN / 2] = scale * f32::from(q(byte >> 4, i + LEN / 2)) + min;
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let mut fit = fit_affine(values, Q_MAX, OffsetRange::Any);
        fit.step = write_f16(block, 0, fit.step);
        fit.offset = -write_f16(block, 2, -fit.offset);
        let q = values.map(|v| fit.quantise(v, Q_MAX) as u8);
        let fifth = q.iter().enumerate().fold(0u32, |bits, (i, q)| bits | u32::from(q >> 4) << i);
        block[4..8].copy_from_slice(&fifth.to_le_bytes());
        for (i, byte) in block[8..].iter_mut().enumerate() {
            *byte = q[i] & 15 | (q[i + LEN / 2] & 15) << 4;
        }
    });
}
