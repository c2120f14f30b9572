//! F32: little-endian IEEE single precision.

use super::{Codec, decode_blocks, encode_blocks};

/// Codec of F32.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |b: &[u8; 4], o: &mut [f32; 1]| o[0] = f32::from_le_bytes(*b));
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |v: &[f32; 1], b: &mut [u8; 4]| *b = v[0].to_le_bytes());
}
