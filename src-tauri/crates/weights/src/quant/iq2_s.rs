//! IQ2_S: 256 numbers as groups of eight from a grid of 1024, a four-bit scale for each 16, under one
//! half-precision factor. Value = d · (scale + ½) / 4 · ±magnitude. Encoding needs a calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..34 | lower eight bits of the grid indices, a byte for each eight elements |
//! | 34..66 | signs, a byte for each eight elements |
//! | 66..74 | upper two bits of the indices, four to a byte |
//! | 74..82 | scales: a byte for each 32 elements, low nibble its first half |

use super::iq_grid::eight_values;
use super::{Codec, K_LEN, decode_blocks, iq_grid_tables, read_f16};

/// Codec of IQ2_S.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 82;
const LOWER: usize = 2;
const SIGNS: usize = 34;
const UPPER: usize = 66;
const SCALES: usize = 74;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let scale = block[SCALES + i / 4] >> (i / 2 % 2 * 4) & 15;
            let step = d * (0.5 + f32::from(scale)) * 0.25;
            let upper = usize::from(block[UPPER + i / 4] >> (i % 4 * 2) & 3);
            let group = iq_grid_tables::IQ2_S[usize::from(block[LOWER + i]) | upper << 8];
            eight_values(step, group, block[SIGNS + i], out);
        }
    });
}
