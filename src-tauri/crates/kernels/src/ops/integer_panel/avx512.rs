//! The product with AVX-512 VNNI: `vpdpwssd` adds two products to each of sixteen sums.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{IntegerPanelShape, K_TILE, PAIR, PanelOutput, STRIP, ScaledIntegers};

/// Columns of a register.
const LANES: usize = 16;
/// Registers of a strip.
const WIDTH: usize = STRIP / LANES;

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
    // SAFETY: the lengths were compared above.
    unsafe {
        match n.div_ceil(LANES) {
            1 => rows::<12, 1>(&shape, a, b, c),
            2 => rows::<12, 2>(&shape, a, b, c),
            3 => rows::<8, 3>(&shape, a, b, c),
            _ => rows::<6, 4>(&shape, a, b, c),
        }
    }
}

/// All rows of `S` registers of columns, `R` at a time: as many as the registers hold sums of.
///
/// # Safety
/// AVX-512 with VNNI is present; `a`, `b` and `c` are as long as `shape` says, which has the columns of `S` registers.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn rows<const R: usize, const S: usize>(
    shape: &IntegerPanelShape,
    a: ScaledIntegers,
    b: ScaledIntegers,
    c: &mut [f32],
) {
    let mut i = 0;
    // SAFETY: guaranteed by the caller; rows i.. are inside.
    unsafe {
        while i + R <= shape.n_a {
            block::<R, S>(shape, i, a, b, c);
            i += R;
        }
        while i + 2 <= shape.n_a {
            block::<2, S>(shape, i, a, b, c);
            i += 2;
        }
        while i < shape.n_a {
            block::<1, S>(shape, i, a, b, c);
            i += 1;
        }
    }
}

/// # Safety
/// AVX-512 with VNNI is present; rows i..i + R of `a` and `c`, and `b`, are as long as `shape` says, which has the columns
/// of `S` registers.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn block<const R: usize, const S: usize>(
    shape: &IntegerPanelShape,
    i: usize,
    a: ScaledIntegers,
    b: ScaledIntegers,
    c: &mut [f32],
) {
    let mut sums = [[_mm512_setzero_si512(); S]; R];
    // SAFETY: guaranteed by the caller; columns outside the masks are neither read nor written.
    unsafe {
        let rows = a.q.as_ptr().add(i * shape.a_stride);
        let columns: *const __m512i = b.q.as_ptr().cast();
        for k in 0..shape.n_pairs {
            let mut b = [_mm512_setzero_si512(); S];
            for s in 0..S {
                b[s] = _mm512_loadu_si512(columns.add(k * WIDTH + s));
            }
            for r in 0..R {
                let pair: *const i32 = rows.add(r * shape.a_stride + k * PAIR).cast();
                let a = _mm512_set1_epi32(pair.read_unaligned());
                for s in 0..S {
                    sums[r][s] = add_products(sums[r][s], a, b[s]);
                }
            }
        }
        for s in 0..S {
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

/// `_mm512_dpwssd_epi32`, which the compiler would split into two instructions: a product and a sum.
///
/// # Safety
/// AVX-512 with VNNI is present.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn add_products(sums: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let mut sums = sums;
    // SAFETY: the instruction is present, as the caller guarantees, and touches nothing but these registers.
    unsafe {
        asm!(
            "vpdpwssd {sums}, {a}, {b}",
            sums = inout(zmm_reg) sums,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
