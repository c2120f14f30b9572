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
//! In each half of 128 elements: element `l + 32·k` (l < 32, k < 4) has its lower bits in byte `l + 32·(k mod 2)`
//! of the half's 64, low nibble for k < 2, high nibble else; its upper bits are bits 2k, 2k+1 of byte `l` of the 32.

use super::search::fit_scale;
use super::{Codec, K_LEN, decode_blocks, encode_blocks, read_f16, write_f16};

pub const CODEC: Codec = Codec { decode, encode: Some(encode) };

const BYTES: usize = 210;
const GROUPS: usize = 16;
const GROUP_LEN: usize = 16;
const HIGH: usize = 128;
const SCALES: usize = 192;
const FACTOR: usize = 208;
/// q − 32 lies in −Q_HALF..Q_HALF.
const Q_HALF: i32 = 32;

/// Where element `i` of a block lies: byte and shift of its lower bits, byte and shift of its upper bits.
#[inline]
fn place(i: usize) -> (usize, u32, usize, u32) {
    let (half, k, l) = (i / 128, i % 128 / 32, i % 32);
    (half * 64 + k % 2 * 32 + l, (k / 2 * 4) as u32, HIGH + half * 32 + l, (k * 2) as u32)
}

fn decode(bytes: &[u8], out: &mut [f32]) {
    decode_blocks(bytes, out, |block: &[u8; BYTES], out: &mut [f32; K_LEN]| {
        let d = read_f16(block, FACTOR);
        for (i, o) in out.iter_mut().enumerate() {
            let (low, low_shift, high, high_shift) = place(i);
            let q = (block[low] >> low_shift & 15) | (block[high] >> high_shift & 3) << 4;
            let step = d * f32::from(block[SCALES + i / GROUP_LEN] as i8);
            *o = step * (i32::from(q) - Q_HALF) as f32;
        }
    });
}

/// A choice of everything but the q, which follow from it.
#[derive(Clone, Copy)]
struct Choice {
    d: f32,
    scales: [f32; GROUPS],
}

#[inline]
fn quantise(value: f32, step: f32) -> f32 {
    let inverse = if step != 0.0 { 1.0 / step } else { 0.0 };
    (value * inverse).round_ties_even().clamp(-Q_HALF as f32, (Q_HALF - 1) as f32)
}

fn group_error(values: &[f32], step: f32) -> f32 {
    values.iter().map(|&v| (v - step * quantise(v, step)).powi(2)).sum()
}

impl Choice {
    /// The group with the largest step gets −128, so that the whole range of a byte is used.
    fn from_steps(steps: &[f32; GROUPS]) -> Self {
        let largest = steps.iter().fold(0f32, |m, s| if s.abs() > m.abs() { *s } else { m });
        let d = half::f16::from_f32(largest / -128.0).to_f32();
        let scale = |s: f32| if d != 0.0 { (s / d).round().clamp(-128.0, 127.0) } else { 0.0 };
        Self { d, scales: steps.map(scale) }
    }

    fn squared_error(&self, values: &[f32; K_LEN]) -> f32 {
        values.chunks_exact(GROUP_LEN).zip(&self.scales).map(|(v, s)| group_error(v, self.d * s)).sum()
    }

    /// Moves each group's scale by one where that is better.
    fn improve_groups(&mut self, values: &[f32; K_LEN]) {
        for (values, scale) in values.chunks_exact(GROUP_LEN).zip(&mut self.scales) {
            let mut best = (group_error(values, self.d * *scale), *scale);
            for candidate in [*scale - 1.0, *scale + 1.0] {
                let candidate = candidate.clamp(-128.0, 127.0);
                let error = group_error(values, self.d * candidate);
                if error < best.0 {
                    best = (error, candidate);
                }
            }
            *scale = best.1;
        }
    }

    /// Least squares for the factor, all other numbers kept.
    fn improve_factor(&mut self, values: &[f32; K_LEN]) {
        let (mut xa, mut aa) = (0f32, 0f32);
        for (values, scale) in values.chunks_exact(GROUP_LEN).zip(&self.scales) {
            for &v in values {
                let a = scale * quantise(v, self.d * scale);
                xa += v * a;
                aa += a * a;
            }
        }
        if aa > 0.0 {
            self.d = half::f16::from_f32(xa / aa).to_f32();
        }
    }
}

/// Rounds of improvement after the first choice.
const ROUNDS: usize = 2;

fn encode(values: &[f32], out: &mut [u8]) {
    encode_blocks(values, out, encode_block);
}

fn encode_block(values: &[f32; K_LEN], block: &mut [u8; BYTES]) {
    let mut steps = [0f32; GROUPS];
    for (step, values) in steps.iter_mut().zip(values.chunks_exact(GROUP_LEN)) {
        // −32..31 is lopsided, and a scale may have either sign: take the better.
        let sides = [fit_scale(values, Q_HALF, 1.0), fit_scale(values, Q_HALF, -1.0)];
        let errors = sides.map(|s| group_error(values, s));
        *step = if errors[0] <= errors[1] { sides[0] } else { sides[1] };
    }
    let mut choice = Choice::from_steps(&steps);
    let mut best = (choice.squared_error(values), choice);
    for _ in 0..ROUNDS {
        choice.improve_groups(values);
        choice.improve_factor(values);
        let error = choice.squared_error(values);
        if error < best.0 {
            best = (error, choice);
        }
    }
    write_block(values, &best.1, block);
}

fn write_block(values: &[f32; K_LEN], choice: &Choice, block: &mut [u8; BYTES]) {
    block.fill(0);
    write_f16(block, FACTOR, choice.d);
    for (group, scale) in choice.scales.iter().enumerate() {
        block[SCALES + group] = *scale as i8 as u8;
    }
    for (i, &v) in values.iter().enumerate() {
        let q = (quantise(v, choice.d * choice.scales[i / GROUP_LEN]) as i32 + Q_HALF) as u8;
        let (low, low_shift, high, high_shift) = place(i);
        block[low] |= (q & 15) << low_shift;
        block[high] |= q >> 4 << high_shift;
    }
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
