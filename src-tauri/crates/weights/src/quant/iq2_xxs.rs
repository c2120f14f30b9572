//! IQ2_XXS: 256 numbers as groups of eight from a grid of 256, a four-bit scale for each 32, under one
//! half-precision factor. Value = d · (scale + ½) / 4 · ±magnitude. Encoding needs a calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..66 | for each 32 elements four grid indices of a byte, then a little-endian u32: four times seven signs, scale |

use super::iq_grid::{eight_values, read_u32, signs_with_parity};
use super::{Codec, K_LEN, decode_blocks, iq_grid_tables, read_f16};

/// Codec of IQ2_XXS.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 66;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        for (part, out) in block[2..].chunks_exact(8).zip(out.chunks_exact_mut(32)) {
            let signs_scale = read_u32(part, 4);
            let step = d * (0.5 + (signs_scale >> 28) as f32) * 0.25;
            for (l, out) in out.chunks_exact_mut(8).enumerate() {
                let signs = signs_with_parity(signs_scale >> (7 * l));
                eight_values(step, iq_grid_tables::IQ2_XXS[usize::from(part[l])], signs, out);
            }
        }
    });
}
