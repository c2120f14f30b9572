//! Q1_0: 128 signs under one half-precision scale. Value = ±scale. For models trained with such weights: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..18 | a bit for each element, low bits first; set: plus |

use super::{Codec, decode_blocks, read_f16};

/// Codec of Q1_0.
pub const CODEC: Codec = Codec { decode, encode: None };

const LEN: usize = 128;
const BYTES: usize = 18;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        for (i, o) in out.iter_mut().enumerate() {
            *o = if block[2 + i / 8] >> (i % 8) & 1 == 1 { scale } else { -scale };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_bit_is_plus() {
        let mut block = [0u8; BYTES];
        crate::quant::write_f16(&mut block, 0, 0.5);
        (block[2], block[3]) = (0b10, 0b1);
        let mut out = [0.0; LEN];
        decode(&block, &mut out);
        assert_eq!((out[0], out[1], out[8], out[9]), (-0.5, 0.5, 0.5, -0.5));
    }
}
