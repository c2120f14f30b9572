//! Q2_K: 256 two-bit numbers in sixteen groups of 16, each group with a four-bit scale and a four-bit minimum under
//! two half-precision factors. Value = (d · scale) · q − (dmin · min).
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | a byte for each group: scale in the low nibble, minimum in the high one |
//! | 16..80 | q (see [`place`]) |
//! | 80..82 | d, f16 |
//! | 82..84 | dmin, f16 |

use super::affine_groups::{AffineGroupFit, AffineLimits};
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q2_K.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 84;
const GROUPS: usize = 16;
const GROUP_LEN: usize = 16;
const QUANTS: usize = 16;
const FACTOR: usize = 80;
const MIN_FACTOR: usize = 82;
const LIMITS: AffineLimits = AffineLimits { q_max: 3.0, scale_max: 15.0 };

/// Byte (of 64) and shift of element `i` where two bits of each element are packed. In each half of 128 elements the
/// four elements that are 32 apart share a byte. Q3_K packs its lower bits in the same way.
#[inline]
pub fn place(i: usize) -> (usize, usize) {
    (i / 128 * 32 + i % 32, i % 128 / 32 * 2)
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let (d, dmin) = (read_f16(block, FACTOR), read_f16(block, MIN_FACTOR));
        for (group, out) in out.chunks_exact_mut(GROUP_LEN).enumerate() {
            let (scale, min) = (block[group] & 15, block[group] >> 4);
            let (step, offset) = (d * f32::from(scale), dmin * f32::from(min));
            let (first, shift) = place(group * GROUP_LEN);
            for (o, &byte) in out.iter_mut().zip(&block[QUANTS + first..]) {
                *o = step * f32::from(byte >> shift & 3) - offset;
            }
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values, block: &mut [u8; BYTES]| {
        let choice = AffineGroupFit::<GROUPS>::find(values, LIMITS);
        block.fill(0);
        write_f16(block, FACTOR, choice.d);
        write_f16(block, MIN_FACTOR, choice.dmin);
        for (group, values) in values.chunks_exact(GROUP_LEN).enumerate() {
            block[group] = choice.scales[group] as u8 | (choice.mins[group] as u8) << 4;
            let fit = choice.group(group);
            let (first, shift) = place(group * GROUP_LEN);
            for (byte, &v) in block[QUANTS + first..].iter_mut().zip(values) {
                *byte |= (fit.quantise(v, LIMITS.q_max) as u8) << shift;
            }
        }
    });
}
