//! NVFP4: 64 four-bit floats in four groups of 16, each group with an eight-bit float as its scale.
//! Value = scale · code, with the codes of MXFP4 (twice the floats' values) and half the scale.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | scales: unsigned floats, four bits of exponent, three of mantissa |
//! | 4..36 | 8 bytes for each group: low nibbles its first half, high nibbles its second |

use super::mxfp4::CODES;
use super::{Codec, decode_blocks};

/// Codec of NVFP4.
pub const CODEC: Codec = Codec { decode, encode: None };

const LEN: usize = 64;
const BYTES: usize = 36;
const GROUP_LEN: usize = 16;

/// Half the value of a scale byte. 0x7F (NaN) counts as zero; the upper bit is ignored.
fn half_scale(byte: u8) -> f32 {
    let (exponent, mantissa) = (byte >> 3 & 15, f32::from(byte & 7));
    match (byte, exponent) {
        (0x7F, _) => 0.0,
        // 2⁻¹⁰: half the smallest subnormal
        (_, 0) => mantissa / 1024.0,
        (_, _) => (1.0 + mantissa / 8.0) * f32::from_bits((u32::from(exponent) + 127 - 8) << 23),
    }
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let (scales, quants) = block.split_at(4);
        let groups = out.chunks_exact_mut(GROUP_LEN).zip(quants.chunks_exact(GROUP_LEN / 2)).zip(scales);
        for ((out, quants), &scale) in groups {
            let scale = half_scale(scale);
            let (low, high) = out.split_at_mut(GROUP_LEN / 2);
            for ((&byte, low), high) in quants.iter().zip(low).zip(high) {
                *low = scale * f32::from(CODES[usize::from(byte & 15)]);
                *high = scale * f32::from(CODES[usize::from(byte >> 4)]);
            }
        }
    });
}
