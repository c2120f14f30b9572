//! BF16: the upper half of an IEEE single, little-endian; rounds to nearest even.

use half::bf16;

use super::{Codec, decode_blocks, encode_blocks};

/// Codec of BF16.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |b: &[u8; 2], o: &mut [f32; 1]| {
        o[0] = f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16);
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |v: &[f32; 1], b: &mut [u8; 2]| *b = bf16::from_f32(v[0]).to_le_bytes());
}
