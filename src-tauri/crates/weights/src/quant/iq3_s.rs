//! IQ3_S: 256 numbers as groups of four from a grid of 512, a four-bit scale for each 32, under one
//! half-precision factor. Value = d · (2 · scale + 1) · ±magnitude. Encoding needs a calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..66 | lower eight bits of the grid indices, a byte for each four elements |
//! | 66..74 | ninth bits of the indices, eight to a byte |
//! | 74..106 | signs, a byte for each eight elements |
//! | 106..110 | scales: a byte for each 64 elements, low nibble its first half |

use super::iq_grid::{signed, three_bits};
use super::{Codec, K_LEN, decode_blocks, iq_grid_tables, read_f16};

/// Codec of IQ3_S.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 110;
const LOWER: usize = 2;
const NINTH: usize = 66;
const SIGNS: usize = 74;
const SCALES: usize = 106;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        for (i, out) in out.chunks_exact_mut(4).enumerate() {
            let scale = block[SCALES + i / 16] >> (i / 8 % 2 * 4) & 15;
            let step = d * f32::from(1 + 2 * scale);
            let ninth = usize::from(block[NINTH + i / 8] >> (i % 8) & 1);
            let group = iq_grid_tables::IQ3_S[usize::from(block[LOWER + i]) | ninth << 8];
            let signs = block[SIGNS + i / 2] >> (i % 2 * 4);
            for (j, o) in out.iter_mut().enumerate() {
                let magnitude = (1 + 2 * three_bits(group, j)) as f32;
                *o = signed(step * magnitude, signs, j);
            }
        }
    });
}
