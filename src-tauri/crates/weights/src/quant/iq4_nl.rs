//! IQ4_NL: 32 four-bit indices into sixteen unevenly spaced numbers, under one half-precision scale.
//! Value = `scale · CODES[q]`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | scale, f16 |
//! | 2..18 | q: low nibbles are elements 0..16, high nibbles 16..32 |

use super::search::{QuantGrid, fit_scale, inverse_of};
use super::{Codec, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of IQ4_NL.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 18;

/// Value of each index: dense around zero, as weights are. IQ4_XS uses the same values.
pub const CODES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Index of the nearest code in steps of ½ from −127: `NEAREST[⌊2 · (x + 127)⌋]`. Borders between codes are multiples of ½,
/// so rounding down is exact.
static NEAREST: [u8; 512] = {
    let mut nearest = [0; 512];
    let mut i = 0;
    while i < nearest.len() {
        // Twice the middle of the half, times two: whole.
        let x = 2 * i as i32 + 1 - 4 * 127;
        let mut index = 0;
        while index < 15 && x > 2 * (CODES[index] as i32 + CODES[index + 1] as i32) {
            index += 1;
        }
        nearest[i] = index as u8;
        i += 1;
    }
    nearest
};

/// The index of the code nearest to `x`; any for NaN.
#[inline]
pub fn index(x: f32) -> u8 {
    // Adding 2²³ removes the fraction: the lowest bits are the rounded number. Subtracting half a step first gives ⌊ ⌋.
    let half = (x * 2.0 + 253.5).clamp(0.0, 480.0) + 8_388_608.0;
    NEAREST[(half.to_bits() & 511) as usize]
}

/// The codes as a grid.
#[derive(Clone, Copy)]
pub struct Codes;

impl QuantGrid for Codes {
    const END: f32 = 127.0;
    const SPACING: f32 = 3.0;

    #[inline]
    fn nearest(x: f32) -> f32 {
        f32::from(CODES[usize::from(index(x))])
    }
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = read_f16(block, 0);
        let (low, high) = out.split_at_mut(LEN / 2);
        for ((&byte, low), high) in block[2..].iter().zip(low).zip(high) {
            *low = scale * f32::from(CODES[usize::from(byte & 15)]);
            *high = scale * f32::from(CODES[usize::from(byte >> 4)]);
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let inverse = inverse_of(write_f16(block, 0, fit_scale::<Codes>(values)));
        for (i, byte) in block[2..].iter_mut().enumerate() {
            *byte = index(values[i] * inverse) | index(values[i + LEN / 2] * inverse) << 4;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_code_is_found() {
        for i in -1600..1600 {
            let x = i as f32 * 0.09;
            let best = CODES.iter().map(|&code| (x - f32::from(code)).abs()).fold(f32::INFINITY, f32::min);
            // At a border either will do.
            assert!((x - Codes::nearest(x)).abs() <= best + 1e-4, "{x}");
        }
        assert!(index(f32::NAN) < 16 && index(f32::INFINITY) == 15 && index(f32::NEG_INFINITY) == 0);
    }
}
