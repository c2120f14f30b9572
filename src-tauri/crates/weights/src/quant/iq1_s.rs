//! IQ1_S: 256 numbers as groups of eight from a grid of 2048, a three-bit scale and a shift for each 32, under one
//! half-precision factor. Value = d · (2 · scale + 1) · (point ± ⅛). Encoding needs a calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..34 | lower eight bits of the grid indices, a byte for each eight elements |
//! | 34..50 | for each 32 elements a little-endian u16: four times three upper bits, scale, shift (set: down) |

use super::iq_grid::{read_u16, two_bits};
use super::{Codec, K_LEN, decode_blocks, iq_grid_tables, read_f16};

/// Codec of IQ1_S.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 50;
const LOWER: usize = 2;
const UPPER: usize = 34;
/// The shift of a group's points.
const SHIFT: f32 = 0.125;

/// Eight values of the grid, which IQ1_M has as well; the point −1, 0 or 1 is two bits less one.
#[inline]
pub fn eight_values(step: f32, index: usize, is_down: bool, out: &mut [f32]) {
    let shift = if is_down { -SHIFT } else { SHIFT };
    let group = iq_grid_tables::IQ1_S[index];
    for (j, o) in out.iter_mut().enumerate() {
        *o = step * (two_bits(group, j) as f32 - 1.0 + shift);
    }
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let upper = read_u16(block, UPPER + i / 4 * 2);
            let step = d * f32::from(2 * (upper >> 12 & 7) + 1);
            let index = u16::from(block[LOWER + i]) | (upper >> (i % 4 * 3) & 7) << 8;
            eight_values(step, usize::from(index), upper >> 15 == 1, out);
        }
    });
}
