//! Q4_K: 256 four-bit numbers in eight groups of 32, each group with a six-bit scale and a six-bit minimum under two
//! half-precision factors. Value = (d · scale) · q − (dmin · min).
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | d, f16 |
//! | 2..4 | dmin, f16 |
//! | 4..16 | eight scales and eight minima, six bits each, packed (see [`scale_min`]) |
//! | 16..144 | q: 32 bytes for each pair of groups: low nibbles the first group, high nibbles the second |

use super::search::{Affine, fit_affine};
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 144;
const GROUPS: usize = 8;
const GROUP_LEN: usize = 32;
/// Largest q, and largest scale and minimum.
const Q_MAX: f32 = 15.0;
const SIX_BITS: f32 = 63.0;

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

/// A choice of everything but the q, which follow from it.
#[derive(Clone, Copy)]
struct Choice {
    d: f32,
    dmin: f32,
    scales: [f32; GROUPS],
    mins: [f32; GROUPS],
}

impl Choice {
    fn group(&self, group: usize) -> Affine {
        Affine { step: self.d * self.scales[group], offset: self.dmin * self.mins[group] }
    }

    fn squared_error(&self, values: &[f32; K_LEN]) -> f32 {
        values.chunks_exact(GROUP_LEN).enumerate().map(|(g, v)| self.group(g).squared_error(v, Q_MAX)).sum()
    }

    /// Factors that hold the largest step and offset, and the six-bit numbers nearest to the others.
    fn from_fits(fits: &[Affine; GROUPS]) -> Self {
        let largest = |f: fn(&Affine) -> f32| fits.iter().map(f).fold(0f32, f32::max);
        let (d, dmin) = (rounded(largest(|a| a.step) / SIX_BITS), rounded(largest(|a| a.offset) / SIX_BITS));
        Self {
            d,
            dmin,
            scales: fits.map(|a| six_bits(a.step, d)),
            mins: fits.map(|a| six_bits(a.offset, dmin)),
        }
    }

    /// Moves each group's numbers by one where that is better.
    fn improve_groups(&mut self, values: &[f32; K_LEN]) {
        for (group, values) in values.chunks_exact(GROUP_LEN).enumerate() {
            let (scale, min) = (self.scales[group], self.mins[group]);
            let mut best = (self.group(group).squared_error(values, Q_MAX), scale, min);
            for (s, m) in (-1..=1).flat_map(|s| (-1..=1).map(move |m| (s as f32, m as f32))) {
                let (s, m) = ((scale + s).clamp(0.0, SIX_BITS), (min + m).clamp(0.0, SIX_BITS));
                let error = Affine { step: self.d * s, offset: self.dmin * m }.squared_error(values, Q_MAX);
                if error < best.0 {
                    best = (error, s, m);
                }
            }
            (self.scales[group], self.mins[group]) = (best.1, best.2);
        }
    }

    /// Least squares for the two factors, all other numbers kept.
    fn improve_factors(&mut self, values: &[f32; K_LEN]) {
        let (mut aa, mut ab, mut bb, mut xa, mut xb) = (0f32, 0f32, 0f32, 0f32, 0f32);
        for (group, values) in values.chunks_exact(GROUP_LEN).enumerate() {
            let fit = self.group(group);
            let b = -self.mins[group];
            for &v in values {
                let a = self.scales[group] * fit.quantise(v, Q_MAX);
                aa += a * a;
                ab += a * b;
                bb += b * b;
                xa += v * a;
                xb += v * b;
            }
        }
        let determinant = aa * bb - ab * ab;
        let (d, dmin) = if determinant > 1e-6 * aa * bb {
            ((xa * bb - xb * ab) / determinant, (xb * aa - xa * ab) / determinant)
        } else if aa > 0.0 {
            (xa / aa, self.dmin)
        } else {
            return;
        };
        (self.d, self.dmin) = (rounded(d), rounded(dmin));
    }
}

/// What a half can hold of it.
fn rounded(value: f32) -> f32 {
    half::f16::from_f32(value).to_f32()
}

fn six_bits(value: f32, factor: f32) -> f32 {
    if factor > 0.0 { (value / factor).round().clamp(0.0, SIX_BITS) } else { 0.0 }
}

/// Rounds of improvement after the first choice; the gain of a fourth is below a thousandth.
const ROUNDS: usize = 3;

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, encode_block);
}

fn encode_block(values: &[f32; K_LEN], block: &mut [u8; BYTES]) {
    let mut fits = [Affine::default(); GROUPS];
    for (fit, values) in fits.iter_mut().zip(values.chunks_exact(GROUP_LEN)) {
        *fit = fit_affine(values, Q_MAX);
    }
    let mut choice = Choice::from_fits(&fits);
    let mut best = (choice.squared_error(values), choice);
    for _ in 0..ROUNDS {
        choice.improve_groups(values);
        choice.improve_factors(values);
        let error = choice.squared_error(values);
        if error < best.0 {
            best = (error, choice);
        }
    }
    write_block(values, &best.1, block);
}

fn write_block(values: &[f32; K_LEN], choice: &Choice, block: &mut [u8; BYTES]) {
    block.fill(0);
    write_f16(block, 0, choice.d);
    write_f16(block, 2, choice.dmin);
    for (group, values) in values.chunks_exact(GROUP_LEN).enumerate() {
        pack_scale_min(&mut block[4..16], group, choice.scales[group] as u8, choice.mins[group] as u8);
        let fit = choice.group(group);
        let qs = &mut block[16 + group / 2 * GROUP_LEN..][..GROUP_LEN];
        for (byte, &v) in qs.iter_mut().zip(values) {
            *byte |= (fit.quantise(v, Q_MAX) as u8) << (group % 2 * 4);
        }
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
