//! The product with AVX2: `vpmaddwd` adds two products for each of eight columns. With AVX-VNNI, `vpdpwssd` adds them to the
//! sums as well.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{IntegerPanelShape, K_TILE, PAIR, PanelOutput, STRIP, ScaledIntegers};

/// Columns of a register.
const LANES: usize = 8;
/// Registers of a strip.
const WIDTH: usize = STRIP / LANES;
/// Rows and registers of columns at a time: twelve sums, and as many operands as the other four registers hold.
const ROWS: usize = 6;
const COLUMNS: usize = 2;

/// c += (a · b) · scales. Sound only where `IsaLevel::Avx2` is present.
pub(super) fn multiply(shape: IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &mut [f32]) {
    check(&shape, a, b, c);
    // SAFETY: `find` returns it only for a level that `IsaLevel::is_present` confirmed; the lengths were compared.
    unsafe { strips::<false>(&shape, a, b, c) }
}

/// c += (a · b) · scales. Sound only where `IsaLevel::AvxVnni` is present.
pub(super) fn multiply_vnni(shape: IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &mut [f32]) {
    check(&shape, a, b, c);
    // SAFETY: as in `multiply`.
    unsafe { strips::<true>(&shape, a, b, c) }
}

fn check(shape: &IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &[f32]) {
    let IntegerPanelShape { n_a, n_pairs, n, a_stride, scale_stride, c_stride, .. } = *shape;
    let rows_before = n_a.saturating_sub(1);
    assert!(n <= STRIP && n_pairs <= K_TILE / PAIR, "more than one tile");
    assert!(n_a == 0 || a.q.len() >= rows_before * a_stride + n_pairs * PAIR, "a is too short");
    assert!(n_a == 0 || a.scales.len() > rows_before * scale_stride, "a has too few scales");
    assert!(b.q.len() >= n_pairs * STRIP * PAIR && b.scales.len() >= STRIP, "b is too short");
    assert!(n_a == 0 || c.len() >= rows_before * c_stride + n, "c is too short");
}

/// All rows and columns.
///
/// # Safety
/// AVX2 is present, for `VNNI` AVX-VNNI too; `a`, `b` and `c` are as long as `shape` says.
#[target_feature(enable = "avx2,fma")]
unsafe fn strips<const VNNI: bool>(
    shape: &IntegerPanelShape,
    a: ScaledIntegers,
    b: ScaledIntegers,
    c: &mut [f32],
) {
    let n_registers = shape.n.div_ceil(LANES);
    // SAFETY: guaranteed by the caller; the registers first.. have columns of the strip.
    unsafe {
        for first in (0..n_registers).step_by(COLUMNS) {
            match n_registers - first {
                1 => rows::<VNNI, 1>(shape, first, a, b, c),
                _ => rows::<VNNI, COLUMNS>(shape, first, a, b, c),
            }
        }
    }
}

/// All rows of the `S` registers of columns from `first` on.
///
/// # Safety
/// As of `strips`; the registers have columns of `shape`.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const VNNI: bool, const S: usize>(
    shape: &IntegerPanelShape,
    first: usize,
    a: ScaledIntegers,
    b: ScaledIntegers,
    c: &mut [f32],
) {
    let mut i = 0;
    // SAFETY: guaranteed by the caller; rows i.. are inside.
    unsafe {
        while i + ROWS <= shape.n_a {
            block::<VNNI, ROWS, S>(shape, (i, first), a, b, c);
            i += ROWS;
        }
        while i + 2 <= shape.n_a {
            block::<VNNI, 2, S>(shape, (i, first), a, b, c);
            i += 2;
        }
        while i < shape.n_a {
            block::<VNNI, 1, S>(shape, (i, first), a, b, c);
            i += 1;
        }
    }
}

/// # Safety
/// As of `rows`; rows i..i + R of `a` and `c` are as long as `shape` says.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn block<const VNNI: bool, const R: usize, const S: usize>(
    shape: &IntegerPanelShape,
    (i, first): (usize, usize),
    a: ScaledIntegers,
    b: ScaledIntegers,
    c: &mut [f32],
) {
    let mut sums = [[_mm256_setzero_si256(); S]; R];
    // SAFETY: guaranteed by the caller; columns outside the masks are neither read nor written.
    unsafe {
        let rows = a.q.as_ptr().add(i * shape.a_stride);
        let columns: *const __m256i = b.q.as_ptr().cast::<__m256i>().add(first);
        for k in 0..shape.n_pairs {
            let mut b = [_mm256_setzero_si256(); S];
            for s in 0..S {
                b[s] = _mm256_loadu_si256(columns.add(k * WIDTH + s));
            }
            for r in 0..R {
                let pair: *const i32 = rows.add(r * shape.a_stride + k * PAIR).cast();
                let a = _mm256_set1_epi32(pair.read_unaligned());
                for s in 0..S {
                    sums[r][s] = add_products::<VNNI>(sums[r][s], a, b[s]);
                }
            }
        }
        for s in 0..S {
            let at = (first + s) * LANES;
            let mask = mask(shape.n - at);
            let scales = _mm256_loadu_ps(b.scales.as_ptr().add(at));
            for r in 0..R {
                let scale = _mm256_set1_ps(*a.scales.get_unchecked((i + r) * shape.scale_stride));
                let c = c.as_mut_ptr().add((i + r) * shape.c_stride + at);
                let before = match shape.output {
                    PanelOutput::Overwrite => _mm256_setzero_ps(),
                    PanelOutput::Add => _mm256_maskload_ps(c, mask),
                };
                let sum = _mm256_cvtepi32_ps(sums[r][s]);
                _mm256_maskstore_ps(c, mask, _mm256_fmadd_ps(sum, _mm256_mul_ps(scale, scales), before));
            }
        }
    }
}

/// The first `n` lanes, at most all.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn mask(n: usize) -> __m256i {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(LANES) as i32), lanes)
}

/// Adds two products to each sum. The intrinsic of VNNI is avoided: the compiler would split it in two.
///
/// # Safety
/// AVX2 is present, for `VNNI` AVX-VNNI too.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_products<const VNNI: bool>(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
    if !VNNI {
        return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
    }
    let mut sums = sums;
    // SAFETY: the instruction is present, as the caller guarantees, and touches nothing but these registers.
    unsafe {
        asm!(
            "{{vex}} vpdpwssd {sums}, {a}, {b}",
            sums = inout(ymm_reg) sums,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
