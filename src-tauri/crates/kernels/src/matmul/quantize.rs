//! Quantization of activations: signed bytes under a scale per block, with the sums that formats with a zero
//! point need.
//! Rounds to nearest, ties to even. The largest magnitude of a block becomes 127.

use std::hint::black_box;

use crate::cpu::isa::{Mac, levels};

/// Quantizes blocks of 32, one sum each.
#[inline(always)]
fn q8_0<M: Mac>(x: &[f32], q: &mut [i8], scales: &mut [f32], sums: &mut [i32]) {
    quantize_blocks::<32>(x, q, scales);
    for (sum, q) in sums.iter_mut().zip(q.as_chunks::<32>().0) {
        *sum = sum_of(q);
    }
}

/// Quantizes blocks of 256. `sums`: eight pairs of sums of 16, then four pairs of sums of 32, i16 each.
#[inline(always)]
fn q8_k<M: Mac>(x: &[f32], q: &mut [i8], scales: &mut [f32], sums: &mut [i32]) {
    quantize_blocks::<256>(x, q, scales);
    for (sums, q) in sums.as_chunks_mut::<12>().0.iter_mut().zip(q.as_chunks::<256>().0) {
        let mut of_16 = [0; 16];
        for (sum, q) in of_16.iter_mut().zip(q.as_chunks::<16>().0) {
            *sum = sum_of(q);
        }
        // 32 activations of at most 127 fit an i16.
        let pair = |a: i32, b: i32| (a & 0xFFFF) | b << 16;
        for i in 0..8 {
            sums[i] = pair(of_16[2 * i], of_16[2 * i + 1]);
        }
        for i in 0..4 {
            let four = &of_16[4 * i..4 * i + 4];
            sums[8 + i] = pair(four[0] + four[1], four[2] + four[3]);
        }
    }
}

#[inline(always)]
fn sum_of(q: &[i8]) -> i32 {
    q.iter().map(|&q| i32::from(q)).sum()
}

#[inline(always)]
fn quantize_blocks<const LEN: usize>(x: &[f32], q: &mut [i8], scales: &mut [f32]) {
    let (x, rest) = x.as_chunks::<LEN>();
    let (q, _) = q.as_chunks_mut::<LEN>();
    assert!(rest.is_empty() && x.len() == q.len() && x.len() == scales.len());
    for ((x, q), scale) in x.iter().zip(q).zip(scales) {
        // Otherwise the compiler interleaves short blocks, with one load for each element.
        let x = black_box(x);
        let largest = max_magnitude(x);
        *scale = largest / 127.0;
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        for (q, x) in q.iter_mut().zip(x) {
            *q = round_to_i8(x * inverse);
        }
    }
}

/// Rounds a number within -127..=127 to the nearest integer, ties to even.
/// Adding 1.5 · 2²³, whose last bit is worth one, leaves the integer in the last byte. NaN gives an arbitrary
/// integer; its scale is NaN too.
#[inline(always)]
fn round_to_i8(x: f32) -> i8 {
    ((x + 12_582_912.0).to_bits() as i8).max(-127)
}

/// Returns the largest magnitude, or NaN if there is one, so that it shows in the result.
#[inline(always)]
fn max_magnitude(x: &[f32]) -> f32 {
    // Magnitudes order as their bits do, with infinity and NaN above all numbers.
    let bits = x.iter().fold(0u32, |most, x| most.max(x.to_bits() & 0x7FFF_FFFF));
    f32::from_bits(bits)
}

levels!(pub Q8_0 = q8_0(x: &[f32], q: &mut [i8], scales: &mut [f32], sums: &mut [i32]));
levels!(pub Q8_K = q8_k(x: &[f32], q: &mut [i8], scales: &mut [f32], sums: &mut [i32]));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::IsaLevel;

    #[test]
    fn every_level_gives_the_same_quants() {
        let x: Vec<f32> = (0..512).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.013).collect();
        let run = |level: IsaLevel| {
            let (mut q, mut scales, mut sums) = (vec![0; 512], vec![0.0; 2], vec![0; 24]);
            Q8_K.at(level)(&x, &mut q, &mut scales, &mut sums);
            (q, scales, sums)
        };
        for level in IsaLevel::present() {
            assert_eq!(run(level), run(IsaLevel::Portable), "{level}");
        }
        let (q, scales, sums) = run(IsaLevel::Portable);
        assert_eq!(q.iter().map(|q| q.unsigned_abs()).max(), Some(127));
        assert_eq!(sums[1] as i16, q[32..48].iter().map(|&q| i16::from(q)).sum::<i16>());
        assert_eq!((sums[1] >> 16) as i16, q[48..64].iter().map(|&q| i16::from(q)).sum::<i16>());
        assert_eq!(sums[12 + 8] as i16, q[256..288].iter().map(|&q| i16::from(q)).sum::<i16>());
        assert_eq!((sums[12 + 8] >> 16) as i16, q[288..320].iter().map(|&q| i16::from(q)).sum::<i16>());
        for (i, x) in x.iter().enumerate() {
            assert!((x - f32::from(q[i]) * scales[i / 256]).abs() <= scales[i / 256] * 0.5001, "{i}");
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        let mut x = [0.5; 32];
        x[7] = f32::NAN;
        let (mut q, mut scales, mut sums) = ([0; 32], [0.0; 1], [0; 1]);
        Q8_0.at(IsaLevel::Portable)(&x, &mut q, &mut scales, &mut sums);
        assert!(scales[0].is_nan());
    }
}
