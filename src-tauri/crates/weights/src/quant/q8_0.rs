//! Q8_0: 32 signed bytes under one half-precision scale. Value = scale · q.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..34 | q, i8 each |

use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q8_0.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 34;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        for (o, &q) in out.iter_mut().zip(&block[2..]) {
            *o = scale * f32::from(q as i8);
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        let scale = largest / 127.0;
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        write_f16(block, 0, scale);
        for (q, v) in block[2..].iter_mut().zip(values) {
            *q = (v * inverse).round() as i8 as u8;
        }
    });
}
