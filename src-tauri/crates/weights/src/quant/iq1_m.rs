//! IQ1_M: 256 numbers as groups of eight from the grid of IQ1_S, a three-bit scale for each 16 and a shift for
//! each eight, under one half-precision factor. Value = d · (2 · scale + 1) · (point ± ⅛). Encoding needs a
//! calibration text: read only.
//!
//! | bytes | what |
//! |---|---|
//! | 0..32 | lower eight bits of the grid indices, a byte for each eight elements |
//! | 32..48 | a nibble for each eight elements, low one first: three upper bits, shift (set: down) |
//! | 48..56 | four little-endian u16: scales of 64 elements in twelve bits, and four bits of d, f16 |

use super::iq_grid::read_u16;
use super::iq1_s::eight_values;
use super::{Codec, K_LEN, decode_blocks};

/// Codec of IQ1_M.
pub const CODEC: Codec = Codec { decode, encode: None };

const BYTES: usize = 56;
const UPPER: usize = 32;
const SCALES: usize = 48;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let scales: [u16; 4] = std::array::from_fn(|i| read_u16(block, SCALES + i * 2));
        let bits = (0..4).fold(0, |bits, i| bits | scales[i] >> 12 << (4 * i));
        let d = half::f16::from_bits(bits).to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let scale = scales[i / 8] >> (i % 8 / 2 * 3) & 7;
            let step = d * f32::from(2 * scale + 1);
            let nibble = block[UPPER + i / 2] >> (i % 2 * 4) & 15;
            let index = u16::from(block[i]) | u16::from(nibble & 7) << 8;
            eight_values(step, usize::from(index), nibble >> 3 == 1, out);
        }
    });
}
