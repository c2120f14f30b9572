//! Q4_K: 256 four-bit numbers in eight groups of 32, each group with a six-bit scale and a six-bit minimum under two
//! half-precision factors. Value = (d · scale) · q − (dmin · min).
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..4 | dmin, f16 |
//! | 4..16 | eight scales and eight minima, six bits each, packed (see [`scale_min`]) |
//! | 16..144 | q: 32 bytes for each pair of groups: low nibbles the first group, high nibbles the second |

use super::affine_groups::{AffineGroupFit, AffineLimits};
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q4_K.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 144;
/// Groups of a block.
pub const GROUPS: usize = 8;
/// Elements of a group.
pub const GROUP_LEN: usize = 32;
const LIMITS: AffineLimits = AffineLimits { q_max: 15.0, scale_max: 63.0 };

/// Scale and minimum of a group, from the twelve packed bytes.
#[inline]
pub fn scale_min(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let low = packed[group + 4];
        (low & 15 | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4)
    }
}

/// The inverse of [`scale_min`]; `packed` is zero before the first group, groups come in order.
fn pack_scale_min(packed: &mut [u8], group: usize, scale: u8, min: u8) {
    if group < 4 {
        packed[group] = scale;
        packed[group + 4] = min;
    } else {
        packed[group + 4] = scale & 15 | min << 4;
        packed[group - 4] |= scale >> 4 << 6;
        packed[group] |= min >> 4 << 6;
    }
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let (d, dmin) = (read_f16(block, 0), read_f16(block, 2));
        for (group, out) in out.chunks_exact_mut(GROUP_LEN).enumerate() {
            let (scale, min) = scale_min(&block[4..16], group);
            let (step, offset) = (d * f32::from(scale), dmin * f32::from(min));
            let qs = &block[16 + group / 2 * GROUP_LEN..][..GROUP_LEN];
            for (o, &byte) in out.iter_mut().zip(qs) {
                let q = byte >> (group % 2 * 4) & 15;
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
            let qs = &mut block[16 + group / 2 * GROUP_LEN..][..GROUP_LEN];
            for (byte, &v) in qs.iter_mut().zip(values) {
                *byte |= (fit.quantise(v, LIMITS.q_max) as u8) << (group % 2 * 4);
            }
        }
    });
}

/// Factors, scales and minima, into the first 16 bytes of a block of zeros.
pub fn write_header(choice: &AffineGroupFit<GROUPS>, block: &mut [u8]) {
    write_f16(block, 0, choice.d);
    write_f16(block, 2, choice.dmin);
    for (group, (scale, min)) in choice.scales.iter().zip(&choice.mins).enumerate() {
        pack_scale_min(&mut block[4..16], group, *scale as u8, *min as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_and_minima_pack_and_unpack() {
        let mut packed = [0u8; 12];
        let wanted: Vec<(u8, u8)> = (0..8).map(|g| (63 - g * 7, g * 9)).collect();
        for (group, &(scale, min)) in wanted.iter().enumerate() {
            pack_scale_min(&mut packed, group, scale, min);
        }
        let got: Vec<(u8, u8)> = (0..8).map(|g| scale_min(&packed, g)).collect();
        assert_eq!(got, wanted);
    }
}
