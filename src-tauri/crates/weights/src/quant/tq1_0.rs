//! TQ1_0: 256 numbers out of −1, 0, 1 under one half-precision factor, five to a byte. Value = d · (q − 1). For models
//! that were trained with such weights.
//!
//! | bytes | what |
//! |---|---|
//! | 0..32 | elements 0..160: byte m has elements m, m + 32, m + 64 … |
//! | 32..48 | elements 160..240: byte m has elements m, m + 16, m + 32 … of these |
//! | 48..52 | elements 240..256: byte m has elements m, m + 4, m + 8, m + 12 of these |
//! | 52..54 | d, f16 |
//!
//! A byte is a fraction: 256 times the five digits to base three behind the point, rounded up. The next digit is what
//! is carried out when the fraction is tripled.

use super::search::inverse_of;
use super::tq2_0::{fit_factor, trit};
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

/// Codec of TQ1_0.
pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 54;
const FACTOR: usize = 52;

/// First byte, first element, bytes, digits used in each.
const PARTS: [(usize, usize, usize, usize); 3] = [(0, 0, 32, 5), (32, 160, 16, 5), (48, 240, 4, 4)];
const POWERS: [u8; 5] = [1, 3, 9, 27, 81];

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, FACTOR);
        for (byte, first, n_bytes, n_digits) in PARTS {
            let parts = out[first..].chunks_exact_mut(n_bytes).zip(POWERS).take(n_digits);
            for (out, power) in parts {
                for (o, &byte) in out.iter_mut().zip(&block[byte..]) {
                    let q = (u16::from(byte.wrapping_mul(power)) * 3) >> 8;
                    *o = (f32::from(q) - 1.0) * d;
                }
            }
        }
    });
}

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, |values: &[f32; K_LEN], block: &mut [u8; BYTES]| {
        let inverse = inverse_of(write_f16(block, FACTOR, fit_factor(values)));
        for (first_byte, first, n_bytes, n_digits) in PARTS {
            for m in 0..n_bytes {
                let digit = |n: usize| u16::from(trit(values[first + m + n * n_bytes] * inverse));
                let digits = (0..5).fold(0, |sum, n| sum * 3 + if n < n_digits { digit(n) } else { 0 });
                block[first_byte + m] = (digits * 256).div_ceil(243) as u8;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trit_comes_back() {
        let values: [f32; K_LEN] = std::array::from_fn(|i| ((i * i * 7 + i / 3) % 3) as f32 - 1.0);
        let (mut block, mut back) = ([0; BYTES], [0.0; K_LEN]);
        encode(&values, &mut block);
        decode(&block, &mut back);
        assert_eq!(values, back);
    }
}
