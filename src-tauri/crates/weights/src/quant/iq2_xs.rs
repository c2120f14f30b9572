//! IQ2_XS: 256 numbers as groups of eight from a grid of 512, a four-bit scale for each 16, under one
//! half-precision factor. Value = d · (scale + ½) / 4 · ±magnitude. Encoding needs a calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..66 | for each eight elements a little-endian u16: grid index in nine bits, seven signs |
//! | 66..74 | scales: a byte for each 32 elements, low nibble its first half |

use super::iq_grid::{eight_values, read_u16, signs_with_parity};
use super::{Codec, K_LEN, decode_blocks, iq_grid_tables, read_f16};

/// Codec of IQ2_XS.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 74;
const SCALES: usize = 66;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let scale = block[SCALES + i / 4] >> (i / 2 % 2 * 4) & 15;
            let step = d * (0.5 + f32::from(scale)) * 0.25;
            let code = read_u16(block, 2 + i * 2);
            let group = iq_grid_tables::IQ2_XS[usize::from(code & 511)];
            eight_values(step, group, signs_with_parity(u32::from(code >> 9)), out);
        }
    });
}
