//! Q4_0: 32 four-bit numbers under one half-precision scale. Value = scale · (q − 8).
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..18 | q: low nibbles are elements 0..16, high nibbles 16..32 |

use super::search::{QuantGrid, SignedRange, fit_scale, inverse_of};
use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q4_0.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 18;
/// q, less the offset.
type Q4Range = SignedRange<8>;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        let (low, high) = out.split_at_mut(LEN / 2);
        for ((&byte, low), high) in block[2..].iter().zip(low).zip(high) {
            *low = scale * (f32::from(byte & 15) - 8.0);
            *high = scale * (f32::from(byte >> 4) - 8.0);
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let scale = write_f16(block, 0, fit_scale::<Q4Range>(values));
        let inverse = inverse_of(scale);
        let q = |v: f32| (Q4Range::nearest(v * inverse) + 8.0) as u8;
        for (i, byte) in block[2..].iter_mut().enumerate() {
            *byte = q(values[i]) | q(values[i + LEN / 2]) << 4;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_are_split_by_half_blocks() {
        let mut block = [0u8; BYTES];
        write_f16(&mut block, 0, 0.5);
        block[2] = 0xF0; // element 0: −8, element 16: 7
        let mut out = [0.0; LEN];
        decode(&block, &mut out);
        assert_eq!((out[0], out[16]), (-4.0, 3.5));
    }
}
