//! Conversion f16 ↔ f32 of whole slices.
//! Values beyond the range of f16 saturate, so that one large key does not turn a whole context into NaN.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use crate::cpu::isa::Levels;

/// Conversions at one level. Both slices have the same length.
#[derive(Clone, Copy)]
pub struct F16Convert {
    /// f16 bits to f32.
    pub to_f32: fn(&[u16], &mut [f32]),
    /// f32 to f16 bits, saturating.
    pub from_f32: fn(&[f32], &mut [u16]),
}

/// Largest finite f16.
const MAX_F16: f32 = 65504.0;

fn to_f32(x: &[u16], out: &mut [f32]) {
    x.reinterpret_cast::<f16>().convert_to_f32_slice(out);
}

fn from_f32(x: &[f32], out: &mut [u16]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f16::from_f32(x.clamp(-MAX_F16, MAX_F16)).to_bits();
    }
}

const PORTABLE: F16Convert = F16Convert { to_f32, from_f32 };

/// Conversions for each level.
#[cfg(target_arch = "x86_64")]
pub static F16_CONVERT: Levels<F16Convert> =
    Levels { portable: PORTABLE, avx2: f16c::F16C, avx512: f16c::F16C, neon: PORTABLE };
/// Conversions for each level.
#[cfg(not(target_arch = "x86_64"))]
pub static F16_CONVERT: Levels<F16Convert> =
    Levels { portable: PORTABLE, avx2: PORTABLE, avx512: PORTABLE, neon: PORTABLE };

#[cfg(target_arch = "x86_64")]
mod f16c {
    use std::arch::x86_64::*;

    use super::{F16Convert, MAX_F16};

    /// Conversions by F16C, eight numbers at a time.
    pub const F16C: F16Convert = F16Convert { to_f32, from_f32 };

    fn to_f32(x: &[u16], out: &mut [f32]) {
        // SAFETY: in the table only for levels whose `is_present` includes F16C and AVX.
        unsafe { to_f32_f16c(x, out) }
    }

    fn from_f32(x: &[f32], out: &mut [u16]) {
        // SAFETY: in the table only for levels whose `is_present` includes F16C and AVX.
        unsafe { from_f32_f16c(x, out) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn to_f32_f16c(x: &[u16], out: &mut [f32]) {
        assert_eq!(x.len(), out.len());
        let whole = x.len() / 8 * 8;
        for i in (0..whole).step_by(8) {
            // SAFETY: i + 8 ≤ len of both slices.
            unsafe {
                let h = _mm_loadu_si128(x.as_ptr().add(i).cast());
                _mm256_storeu_ps(out.as_mut_ptr().add(i), _mm256_cvtph_ps(h));
            }
        }
        super::to_f32(&x[whole..], &mut out[whole..]);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn from_f32_f16c(x: &[f32], out: &mut [u16]) {
        assert_eq!(x.len(), out.len());
        let whole = x.len() / 8 * 8;
        let (low, high) = (_mm256_set1_ps(-MAX_F16), _mm256_set1_ps(MAX_F16));
        for i in (0..whole).step_by(8) {
            // SAFETY: i + 8 ≤ len of both slices. NaN as second operand of min and max is kept.
            unsafe {
                let v = _mm256_loadu_ps(x.as_ptr().add(i));
                let v = _mm256_max_ps(low, _mm256_min_ps(high, v));
                let h = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
                _mm_storeu_si128(out.as_mut_ptr().add(i).cast(), h);
            }
        }
        super::from_f32(&x[whole..], &mut out[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::F16_CONVERT;
    use crate::cpu::isa::IsaLevel;

    #[test]
    fn every_half_survives_the_round_trip_and_large_values_saturate() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        for level in IsaLevel::present() {
            let halves = F16_CONVERT.at(level);
            let (mut x, mut back) = (vec![0.0; bits.len()], vec![0; bits.len()]);
            (halves.to_f32)(&bits, &mut x);
            (halves.from_f32)(&x, &mut back);
            for ((b, x), back) in bits.iter().zip(&x).zip(&back) {
                if x.is_finite() {
                    assert_eq!(b, back, "{level}: {x}");
                }
            }
            let mut out = [0; 9];
            (halves.from_f32)(&[1e9, -1e9, f32::INFINITY, f32::NAN, 1.0, 0.0, -0.0, 65504.0, 7e4], &mut out);
            assert_eq!([out[0], out[1], out[2], out[8]], [0x7bff, 0xfbff, 0x7bff, 0x7bff], "{level}");
            assert!(half::f16::from_bits(out[3]).is_nan(), "{level}");
        }
    }
}
