//! Q5_0: 32 five-bit numbers under one half-precision scale. Value = scale · (q − 16). Published K presets fall back
//! to it for rows that are not a whole number of 256-blocks.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..6 | fifth bits, little-endian: bit i is of element i |
//! | 6..22 | q: low nibbles are elements 0..16, high nibbles 16..32 |

use super::search::{QuantGrid, SignedRange, fit_scale, inverse_of};
use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q5_0.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 22;
/// q, less the offset.
type Q5Range = SignedRange<16>;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        let fifth = u32::from_le_bytes([block[2], block[3], block[4], block[5]]);
        let q = |nibble: u8, i: usize| nibble | ((fifth >> i & 1) as u8) << 4;
        for (i, &byte) in block[6..].iter().enumerate() {
            out[i] = scale * (f32::from(q(byte & 15, i)) - 16.0);
            out[i + LEN / 2] = scale * (f32::from(q(byte >> 4, i + LEN / 2)) - 16.0);
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let scale = write_f16(block, 0, fit_scale::<Q5Range>(values));
        let inverse = inverse_of(scale);
        let q = values.map(|v| (Q5Range::nearest(v * inverse) + 16.0) as u8);
        let fifth = q.iter().enumerate().fold(0u32, |bits, (i, q)| bits | u32::from(q >> 4) << i);
        block[2..6].copy_from_slice(&fifth.to_le_bytes());
        for (i, byte) in block[6..].iter_mut().enumerate() {
            *byte = q[i] & 15 | (q[i + LEN / 2] & 15) << 4;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_bit_joins_its_nibble() {
        let mut block = [0u8; BYTES];
        write_f16(&mut block, 0, 0.5);
        block[2] = 1; // fifth bit of element 0
        block[6] = 0xF2; // element 0: 16 + 2, element 16: 15
        let mut out = [0.0; LEN];
        decode(&block, &mut out);
        assert_eq!((out[0], out[16], out[1]), (1.0, -0.5, -8.0));
    }
}
