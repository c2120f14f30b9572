//! MXFP4: 32 four-bit floats (one bit of mantissa) under one power of two. Value = 2^(e − 128) · code, with twice
//! the floats' values as codes so that all are whole numbers.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | e |
//! | 1..17 | indices into [`CODES`]: low nibbles are elements 0..16, high nibbles 16..32 |

use super::{Codec, decode_blocks, encode_blocks};

/// Codec of MXFP4.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const LEN: usize = 32;
const BYTES: usize = 17;

/// Twice the value of each four-bit float: the upper bit is the sign.
pub const CODES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
const SIGN: u8 = 8;
/// Halfway between neighbouring magnitudes.
const BORDERS: [f32; 7] = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0];

/// 2^(e − 128), where that is small as a subnormal.
#[inline]
pub fn scale(e: u8) -> f32 {
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { u32::from(e - 1) << 23 })
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; LEN]| {
        let scale = scale(block[0]);
        let (low, high) = out.split_at_mut(LEN / 2);
        for ((&byte, low), high) in block[1..].iter().zip(low).zip(high) {
            *low = scale * f32::from(CODES[usize::from(byte & 15)]);
            *high = scale * f32::from(CODES[usize::from(byte >> 4)]);
        }
    });
}

/// The index of the nearest magnitude.
#[inline]
fn nearest(magnitude: f32, borders: &[f32; 7]) -> u8 {
    borders.iter().map(|&border| u8::from(magnitude > border)).sum()
}

/// The borders under a scale, and Σ (value − nearest)².
fn attempt(values: &[f32; LEN], e: u8) -> ([f32; 7], f32) {
    let scale = scale(e);
    let borders = BORDERS.map(|border| border * scale);
    let error = |v: &f32| {
        let code = CODES[usize::from(nearest(v.abs(), &borders))];
        (v.abs() - scale * f32::from(code)).powi(2)
    };
    (borders, values.iter().map(error).sum())
}

/// The exponent under which the largest value lies between the codes 8 and 16.
fn obvious_exponent(values: &[f32; LEN]) -> u8 {
    let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
    // The biased exponent of `largest`; code 8 is 2³, and 2^(e − 128) has the biased exponent e − 1.
    ((largest.to_bits() >> 23) as u8).saturating_sub(2)
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; LEN], block: &mut [u8; BYTES]| {
        let e = obvious_exponent(values);
        let mut best = (e, attempt(values, e));
        // One more where the largest value lies beyond the last code; one less where it alone is large.
        for e in [e.saturating_add(1), e.saturating_sub(1)] {
            let attempt = attempt(values, e);
            if attempt.1 < best.1.1 {
                best = (e, attempt);
            }
        }
        let (e, (borders, _)) = best;
        let q = |v: f32| nearest(v.abs(), &borders) | if v < 0.0 { SIGN } else { 0 };
        block[0] = e;
        for (i, byte) in block[1..].iter_mut().enumerate() {
            *byte = q(values[i]) | q(values[i + LEN / 2]) << 4;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two_down_to_subnormals() {
        for e in 0..=255u8 {
            assert_eq!(f64::from(scale(e)), 2f64.powi(i32::from(e) - 128), "{e}");
        }
    }

    #[test]
    fn what_can_be_said_exactly_is() {
        for e in [1, 2, 3, 100, 128, 250] {
            let values: [f32; LEN] = std::array::from_fn(|i| scale(e) * f32::from(CODES[i % 16]));
            let (mut block, mut back) = ([0; BYTES], [0.0; LEN]);
            encode(&values, &mut block);
            decode(&block, &mut back);
            assert_eq!(values, back, "{e}");
        }
    }
}
