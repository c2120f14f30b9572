//! Q3_K: 256 three-bit numbers in sixteen groups of 16, each group with a signed six-bit scale under one
//! half-precision factor. Value = d · (scale − 32) · (q − 4).
//!
//! | bytes | what |
//! |---|---|
//! | 0..32 | upper bits of q: bit b of byte l is of element 32·b + l |
//! | 32..96 | lower two bits of q, as in Q2_K |
//! | 96..108 | sixteen scales, six bits each, packed (see `scale`) |
//! | 108..110 | d, f16 |

use super::q2_k::place;
use super::search::SignedRange;
use super::signed_groups::SignedGroupFit;
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q3_K.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 110;
const GROUPS: usize = 16;
const GROUP_LEN: usize = 16;
const LOWER: usize = 32;
const SCALES: usize = 96;
const FACTOR: usize = 108;
/// q − 4 lies in −Q_HALF..Q_HALF.
const Q_HALF: i32 = 4;
/// Scales lie in −32..32.
const SCALE_END: i32 = 32;

/// Scale of a group from the twelve packed bytes, less its offset: the lower four bits are nibbles of bytes 0..8, the
/// upper two those of bytes 8..12.
#[inline]
fn scale(packed: &[u8], group: usize) -> i32 {
    let lower = packed[group % 8] >> (group / 8 * 4) & 15;
    let upper = packed[8 + group % 4] >> (group / 4 * 2) & 3;
    i32::from(lower | upper << 4) - SCALE_END
}

/// The inverse of [`scale`]; `packed` is zero before the first group.
fn pack_scale(packed: &mut [u8], group: usize, scale: i32) {
    let stored = (scale + SCALE_END) as u8;
    packed[group % 8] |= (stored & 15) << (group / 8 * 4);
    packed[8 + group % 4] |= stored >> 4 << (group / 4 * 2);
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, FACTOR);
        for (group, out) in out.chunks_exact_mut(GROUP_LEN).enumerate() {
            let step = d * scale(&block[SCALES..FACTOR], group) as f32;
            let first = group * GROUP_LEN;
            let (byte, shift) = place(first);
            let lower = &block[LOWER + byte..][..GROUP_LEN];
            let upper = &block[first % 32..][..GROUP_LEN];
            for ((o, &lower), &upper) in out.iter_mut().zip(lower).zip(upper) {
                let q = lower >> shift & 3 | (upper >> (first / 32) & 1) << 2;
                *o = step * (i32::from(q) - Q_HALF) as f32;
            }
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values, block: &mut [u8; BYTES]| {
        let choice = SignedGroupFit::<SignedRange<Q_HALF>, GROUPS>::find(values, SCALE_END as f32);
        block.fill(0);
        write_f16(block, FACTOR, choice.d);
        for (group, &scale) in choice.scales.iter().enumerate() {
            pack_scale(&mut block[SCALES..FACTOR], group, scale as i32);
        }
        for (i, &v) in values.iter().enumerate() {
            let q = (choice.quantise(v, i / GROUP_LEN) as i32 + Q_HALF) as u8;
            let (byte, shift) = place(i);
            block[LOWER + byte] |= (q & 3) << shift;
            block[i % 32] |= q >> 2 << (i / 32);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_pack_and_unpack() {
        let mut packed = [0u8; 12];
        let wanted: Vec<i32> = (0..16).map(|g| (g * 37) % 64 - 32).collect();
        for (group, &scale) in wanted.iter().enumerate() {
            pack_scale(&mut packed, group, scale);
        }
        let got: Vec<i32> = (0..16).map(|g| scale(&packed, g)).collect();
        assert_eq!(got, wanted);
    }
}
