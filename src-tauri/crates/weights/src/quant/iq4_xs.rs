//! IQ4_XS: 256 four-bit indices into the numbers of IQ4_NL in eight groups of 32, each group with a signed six-bit
//! scale under one half-precision factor. Value = `d · (scale − 32) · CODES[q]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..4 | upper two bits of the scales, little-endian: bits 2g, 2g+1 are of group g |
//! | 4..8 | lower four bits of the scales: a nibble for each group, low one first |
//! | 8..136 | q: 16 bytes for each group, low nibbles its first half, high nibbles its second |

use super::iq4_nl::{CODES, Codes, index};
use super::search::inverse_of;
use super::signed_groups::SignedGroupFit;
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of IQ4_XS.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 136;
const GROUPS: usize = 8;
const GROUP_LEN: usize = 32;
const QUANTS: usize = 8;
/// Scales lie in −32..32.
const SCALE_END: i32 = 32;

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, 0);
        let upper = u16::from_le_bytes([block[2], block[3]]);
        for (group, out) in out.chunks_exact_mut(GROUP_LEN).enumerate() {
            let lower = block[4 + group / 2] >> (group % 2 * 4) & 15;
            let scale = i32::from(u16::from(lower) | (upper >> (group * 2) & 3) << 4) - SCALE_END;
            let step = d * scale as f32;
            let (low, high) = out.split_at_mut(GROUP_LEN / 2);
            let qs = &block[QUANTS + group * 16..][..16];
            for ((&byte, low), high) in qs.iter().zip(low).zip(high) {
                *low = step * f32::from(CODES[usize::from(byte & 15)]);
                *high = step * f32::from(CODES[usize::from(byte >> 4)]);
            }
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values, block: &mut [u8; BYTES]| {
        let choice = SignedGroupFit::<Codes, GROUPS>::find(values, SCALE_END as f32);
        block.fill(0);
        write_f16(block, 0, choice.d);
        let mut upper = 0u16;
        for (group, values) in values.chunks_exact(GROUP_LEN).enumerate() {
            let stored = (choice.scales[group] as i32 + SCALE_END) as u16;
            block[4 + group / 2] |= ((stored & 15) as u8) << (group % 2 * 4);
            upper |= stored >> 4 << (group * 2);
            let inverse = inverse_of(choice.d * choice.scales[group]);
            let (low, high) = values.split_at(GROUP_LEN / 2);
            let qs = &mut block[QUANTS + group * 16..][..16];
            for ((byte, low), high) in qs.iter_mut().zip(low).zip(high) {
                *byte = index(low * inverse) | index(high * inverse) << 4;
            }
        }
        block[2..4].copy_from_slice(&upper.to_le_bytes());
    });
}
