//! The product with AVX-512 VNNI: `vpdpwssd` adds two products to each of sixteen sums.

use std::arch::x86_64::*;

use super::{IntegerPanelShape, K_TILE, PAIR, PanelOutput, STRIP, ScaledIntegers};

/// Columns of a register.
const LANES: usize = 16;
/// Registers of a strip.
const WIDTH: usize = STRIP / LANES;
/// Rows whose sums stay in registers.
const ROWS: usize = 6;

/// c += (a · b) · scales. Sound only where `IsaLevel::Avx512` is present.
pub(super) fn multiply(shape: IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &mut [f32]) {
    // SAFETY: `find` returns it only for a level that `IsaLevel::is_present` confirmed.
    unsafe { multiply_avx512(shape, a, b, c) }
}

#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
fn multiply_avx512(shape: IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &mut [f32]) {
    let IntegerPanelShape { n_a, n_pairs, n, a_stride, scale_stride, c_stride, .. } = shape;
    if n_a == 0 || n == 0 {
        return;
    }
    assert!(n <= STRIP && n_pairs <= K_TILE / PAIR, "more than one tile");
    assert!(a.q.len() >= (n_a - 1) * a_stride + n_pairs * PAIR, "a is too short");
    assert!(a.scales.len() > (n_a - 1) * scale_stride, "a has too few scales");
    assert!(b.q.len() >= n_pairs * STRIP * PAIR && b.scales.len() >= STRIP, "b is too short");
    assert!(c.len() >= (n_a - 1) * c_stride + n, "c is too short");
    let mut i = 0;
    // SAFETY: the lengths were compared above; rows i.. are inside.
    unsafe {
        while i + ROWS <= n_a {
            block::<ROWS>(&shape, i, a, b, c);
            i += ROWS;
        }
        while i + 2 <= n_a {
            block::<2>(&shape, i, a, b, c);
            i += 2;
        }
        while i < n_a {
            block::<1>(&shape, i, a, b, c);
            i += 1;
        }
    }
}

/// # Safety
/// AVX-512 with VNNI is present; rows i..i + R of `a` and `c`, and `b`, are as long as `shape` says.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn block<const R: usize>(
    shape: &IntegerPanelShape,
    i: usize,
    a: ScaledIntegers,
    b: ScaledIntegers,
    c: &mut [f32],
) {
    let mut sums = [[_mm512_setzero_si512(); WIDTH]; R];
    // SAFETY: guaranteed by the caller; columns outside the masks are neither read nor written.
    unsafe {
        let rows = a.q.as_ptr().add(i * shape.a_stride);
        let columns: *const __m512i = b.q.as_ptr().cast();
        for k in 0..shape.n_pairs {
            let mut b = [_mm512_setzero_si512(); WIDTH];
            for s in 0..WIDTH {
                b[s] = _mm512_loadu_si512(columns.add(k * WIDTH + s));
            }
            for r in 0..R {
                let pair: *const i32 = rows.add(r * shape.a_stride + k * PAIR).cast();
                let a = _mm512_set1_epi32(pair.read_unaligned());
                for s in 0..WIDTH {
                    sums[r][s] = _mm512_dpwssd_epi32(sums[r][s], a, b[s]);
                }
            }
        }
        for s in 0..shape.n.div_ceil(LANES) {
            let mask = u16::MAX >> LANES.saturating_sub(shape.n - s * LANES);
            let scales = _mm512_loadu_ps(b.scales.as_ptr().add(s * LANES));
            for r in 0..R {
                let scale = _mm512_set1_ps(*a.scales.get_unchecked((i + r) * shape.scale_stride));
                let c = c.as_mut_ptr().add((i + r) * shape.c_stride + s * LANES);
                let before = match shape.output {
                    PanelOutput::Overwrite => _mm512_setzero_ps(),
                    PanelOutput::Add => _mm512_maskz_loadu_ps(mask, c),
                };
                let sum = _mm512_cvtepi32_ps(sums[r][s]);
                _mm512_mask_storeu_ps(c, mask, _mm512_fmadd_ps(sum, _mm512_mul_ps(scale, scales), before));
            }
        }
    }
}
