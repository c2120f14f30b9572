//! Q8_K: 256 signed bytes under one single-precision scale, and the sums of each 16 of them. Value = scale · q.
//! Meant for activations beside weights of the K formats.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | scale, f32 |
//! | 4..260 | q, i8 each |
//! | 260..292 | sixteen sums of q, i16 each |

use super::search::inverse_of;
use super::{Codec, K_LEN, decode_blocks, encode_blocks};

/// Codec of Q8_K.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 292;
const SUMS: usize = 260;
const SUM_LEN: usize = 16;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let scale = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        for (o, &q) in out.iter_mut().zip(&block[4..SUMS]) {
            *o = scale * f32::from(q as i8);
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; K_LEN], block: &mut [u8; BYTES]| {
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        let scale = largest / 127.0;
        let inverse = inverse_of(scale);
        block[..4].copy_from_slice(&scale.to_le_bytes());
        let (quants, sums) = block[4..].split_at_mut(K_LEN);
        for (byte, v) in quants.iter_mut().zip(values) {
            *byte = (v * inverse).round() as i8 as u8;
        }
        for (sum, quants) in sums.as_chunks_mut::<2>().0.iter_mut().zip(quants.chunks_exact(SUM_LEN)) {
            *sum = quants.iter().map(|&q| i16::from(q as i8)).sum::<i16>().to_le_bytes();
        }
    });
}
