//! F16: little-endian IEEE half precision; rounds to nearest even.

use half::f16;

use super::{Codec, decode_blocks, encode_blocks};

/// Codec of F16.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |b: &[u8; 2], o: &mut [f32; 1]| o[0] = f16::from_le_bytes(*b).to_f32());
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |v: &[f32; 1], b: &mut [u8; 2]| *b = f16::from_f32(v[0]).to_le_bytes());
}
