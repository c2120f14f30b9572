//! Q5_K: 256 five-bit numbers in eight groups of 32, with scales and minima as in Q4_K.
//! Value = (d · scale) · q − (dmin · min).
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..4 | dmin, f16 |
//! | 4..16 | eight scales and eight minima, six bits each, packed as in Q4_K |
//! | 16..48 | fifth bits: bit g of byte l is of element l of group g |
//! | 48..176 | lower bits: 32 bytes for each pair of groups, low nibbles the first group, high nibbles the second |

use super::affine_groups::{AffineGroupFit, AffineLimits};
use super::q4_k::{GROUP_LEN, scale_min, write_header};
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16};

/// Codec of Q5_K.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 176;
const FIFTH: usize = 16;
const LOWER: usize = 48;
const LIMITS: AffineLimits = AffineLimits { q_max: 31.0, scale_max: 63.0 };

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let (d, dmin) = (read_f16(block, 0), read_f16(block, 2));
        for (group, out) in out.chunks_exact_mut(GROUP_LEN).enumerate() {
            let (scale, min) = scale_min(&block[4..FIFTH], group);
            let (step, offset) = (d * f32::from(scale), dmin * f32::from(min));
            let lower = &block[LOWER + group / 2 * GROUP_LEN..][..GROUP_LEN];
            for ((o, &byte), &fifth) in out.iter_mut().zip(lower).zip(&block[FIFTH..LOWER]) {
                let q = byte >> (group % 2 * 4) & 15 | (fifth >> group & 1) << 4;
                *o = step * f32::from(q) - offset;
            }
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values, block: &mut [u8; BYTES]| {
        let choice = AffineGroupFit::find(values, LIMITS);
        block.fill(0);
        write_header(&choice, block);
        for (group, values) in values.chunks_exact(GROUP_LEN).enumerate() {
            let fit = choice.group(group);
            for (l, &v) in values.iter().enumerate() {
                let q = fit.quantise(v, LIMITS.q_max) as u8;
                block[FIFTH + l] |= q >> 4 << group;
                block[LOWER + group / 2 * GROUP_LEN + l] |= (q & 15) << (group % 2 * 4);
            }
        }
    });
}
