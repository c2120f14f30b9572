//! IQ3_XXS: 256 numbers as groups of four from a grid of 256, a four-bit scale for each 32, under one
//! half-precision factor. Value = d · (scale + ½) / 2 · ±magnitude. Encoding needs a calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..66 | grid indices, a byte for each four elements |
//! | 66..98 | for each 32 elements a little-endian u32: four times seven signs, scale |

use super::iq_grid::{read_u32, signed, signs_with_parity, three_bits};
use super::{Codec, K_LEN, decode_blocks, iq_grid_tables, read_f16};

/// Codec of IQ3_XXS.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 98;
const SIGNS: usize = 66;
const MAGNITUDES: [f32; 8] = [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0];

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let signs_scale = read_u32(block, SIGNS + i / 4 * 4);
            let step = d * (0.5 + (signs_scale >> 28) as f32) * 0.5;
            let signs = signs_with_parity(signs_scale >> (i % 4 * 7));
            for (j, o) in out.iter_mut().enumerate() {
                let group = iq_grid_tables::IQ3_XXS[usize::from(block[2 + i * 2 + j / 4])];
                *o = signed(step * MAGNITUDES[three_bits(group, j % 4)], signs, j);
            }
        }
    });
}
