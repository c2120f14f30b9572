//! Q2_0: 64 two-bit numbers under one half-precision scale. Value = (q − 1) · scale. For models that were trained to
//! be so: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..18 | q, four to a byte, low bits first |

use super::{Codec, decode_blocks, read_f16};

/// Codec of Q2_0.
pub const CODEC: Codec = Codec { decode, encode: None };

const LEN: usize = 64;
const BYTES: usize = 18;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        for (i, o) in out.iter_mut().enumerate() {
            let q = block[2 + i / 4] >> (i % 4 * 2) & 3;
            *o = (f32::from(q) - 1.0) * scale;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_elements_share_a_byte() {
        let mut block = [0u8; BYTES];
        crate::quant::write_f16(&mut block, 0, 0.5);
        block[2] = 0b11_10_01_00;
        let mut out = [0.0; LEN];
        decode(&block, &mut out);
        assert_eq!(out[..5], [-0.5, 0.0, 0.5, 1.0, -0.5]);
    }
}
