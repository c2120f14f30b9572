//! Q6_K: 256 six-bit numbers in sixteen groups of 16, each group with a signed byte as scale under one
//! half-precision factor. Value = (d · scale) · (q − 32).
//!
//! | bytes | what |
//! |---|---|
//! | 0..128 | lower four bits: 64 bytes for each half of the block |
//! | 128..192 | upper two bits: 32 bytes for each half |
//! | 192..208 | scales, i8 each |
//! | 208..210 | d, f16 |
//!
//! In each half of 128 elements, element `l + 32·k` (l < 32, k < 4) has its lower bits in byte `l + 32·(k mod 2)` of
//! the half's 64. They are the low nibble for k < 2 and the high nibble otherwise. Its upper bits are bits 2k and 2k+1
//! of byte `l` of the half's 32.

use super::search::SignedRange;
use super::signed_groups::SignedGroupFit;
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of Q6_K.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 210;
const GROUPS: usize = 16;
const GROUP_LEN: usize = 16;
const HIGH: usize = 128;
const SCALES: usize = 192;
const FACTOR: usize = 208;
/// q − 32 lies in −Q_HALF..Q_HALF.
const Q_HALF: i32 = 32;
/// Scales lie in −128..128.
const SCALE_END: f32 = 128.0;

/// Where element `i` of a block lies: byte and shift of its lower bits, byte and shift of its upper bits.
#[inline]
fn place(i: usize) -> (usize, u32, usize, u32) {
    let (half, k, l) = (i / 128, i % 128 / 32, i % 32);
    (half * 64 + k % 2 * 32 + l, (k / 2 * 4) as u32, HIGH + half * 32 + l, (k * 2) as u32)
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, FACTOR);
        for (group, out) in out.chunks_exact_mut(GROUP_LEN).enumerate() {
            // the elements of a group lie side by side, at the same shifts
            let (low, low_shift, high, high_shift) = place(group * GROUP_LEN);
            let bytes = block[low..][..GROUP_LEN].iter().zip(&block[high..][..GROUP_LEN]);
            let step = d * f32::from(block[SCALES + group] as i8);
            for (o, (low, high)) in out.iter_mut().zip(bytes) {
                let q = (low >> low_shift & 15) | (high >> high_shift & 3) << 4;
                *o = step * (i32::from(q) - Q_HALF) as f32;
            }
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values, block: &mut [u8; BYTES]| {
        let choice = SignedGroupFit::<SignedRange<Q_HALF>, GROUPS>::find(values, SCALE_END);
        block.fill(0);
        write_f16(block, FACTOR, choice.d);
        for (group, scale) in choice.scales.iter().enumerate() {
            block[SCALES + group] = *scale as i8 as u8;
        }
        for (i, &v) in values.iter().enumerate() {
            let q = (choice.quantise(v, i / GROUP_LEN) as i32 + Q_HALF) as u8;
            let (low, low_shift, high, high_shift) = place(i);
            block[low] |= (q & 15) << low_shift;
            block[high] |= q >> 4 << high_shift;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_own_bits() {
        let mut seen = [0u8; SCALES];
        for i in 0..K_LEN {
            let (low, low_shift, high, high_shift) = place(i);
            for (byte, mask) in [(low, 15 << low_shift), (high, 3 << high_shift)] {
                assert_eq!(seen[byte] & mask, 0, "element {i}");
                seen[byte] |= mask;
            }
        }
        assert!(seen.iter().all(|&bits| bits == 0xFF));
    }
}
