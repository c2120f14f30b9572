//! Q8_1: 32 signed bytes under one half-precision scale, and their sum. Value = scale · q. Meant for activations;
//! the sum saves work where the other side of a product has an offset.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..4 | scale · Σq, f16 |
//! | 4..36 | q, i8 each |

use super::search::inverse_of;
use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q8_1.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 36;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        for (o, &q) in out.iter_mut().zip(&block[4..]) {
            *o = scale * f32::from(q as i8);
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        let scale = largest / 127.0;
        let inverse = inverse_of(scale);
        let mut sum = 0;
        for (byte, v) in block[4..].iter_mut().zip(values) {
            let q = (v * inverse).round() as i8;
            sum += i32::from(q);
            *byte = q as u8;
        }
        write_f16(block, 0, scale);
        write_f16(block, 2, scale * sum as f32);
    });
}
