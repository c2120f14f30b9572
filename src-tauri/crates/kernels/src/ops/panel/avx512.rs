//! The product with AVX-512: tiles of up to 64 columns whose sums stay in registers. The compiler does not keep as many
//! of the portable loop's sums there, which halves its speed.

use std::arch::x86_64::*;

use super::PanelShape;

/// Floats of a register.
const LANES: usize = 16;
/// Most registers side by side.
const WIDTH: usize = 4;

/// c += a · b. Sound only where `IsaLevel::Avx512` is present.
pub(super) fn multiply(shape: PanelShape, a: &[f32], b: &[f32], c: &mut [f32]) {
    // SAFETY: `Levels::at` is called only with levels that `IsaLevel::is_present` confirmed.
    unsafe { multiply_avx512(shape, a, b, c) }
}

#[target_feature(enable = "avx2,fma,avx512f")]
fn multiply_avx512(shape: PanelShape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let PanelShape { n_a, k, n, a_stride, b_stride, c_stride } = shape;
    if n_a == 0 || n == 0 {
        return;
    }
    assert!(a.len() >= (n_a - 1) * a_stride + k, "a is too short");
    assert!(k == 0 || b.len() >= (k - 1) * b_stride + n, "b is too short");
    assert!(c.len() >= (n_a - 1) * c_stride + n, "c is too short");
    for j in (0..n).step_by(LANES * WIDTH) {
        let n = (n - j).min(LANES * WIDTH);
        let last = n - (n - 1) / LANES * LANES;
        let mask = u16::MAX >> (LANES - last);
        // SAFETY: the lengths were compared above; rows i.. and columns j..j + n are inside.
        unsafe {
            match n.div_ceil(LANES) {
                1 => rows::<12, 1>(&shape, a, b.as_ptr().wrapping_add(j), &mut c[j..], mask),
                2 => rows::<12, 2>(&shape, a, b.as_ptr().wrapping_add(j), &mut c[j..], mask),
                3 => rows::<8, 3>(&shape, a, b.as_ptr().wrapping_add(j), &mut c[j..], mask),
                _ => rows::<6, 4>(&shape, a, b.as_ptr().wrapping_add(j), &mut c[j..], mask),
            }
        }
    }
}

/// All rows of `S` registers of columns, `R` at a time. `mask`: the columns in the last register.
///
/// # Safety
/// AVX-512 is present; `a`, `b` and `c` have the rows and columns of `shape`.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f")]
unsafe fn rows<const R: usize, const S: usize>(
    shape: &PanelShape,
    a: &[f32],
    b: *const f32,
    c: &mut [f32],
    mask: u16,
) {
    let mut i = 0;
    // SAFETY: guaranteed by the caller; rows i..i + R are inside.
    unsafe {
        while i + R <= shape.n_a {
            block::<R, S>(
                shape,
                a[i * shape.a_stride..].as_ptr(),
                b,
                c[i * shape.c_stride..].as_mut_ptr(),
                mask,
            );
            i += R;
        }
        while i + 4 <= shape.n_a {
            block::<4, S>(
                shape,
                a[i * shape.a_stride..].as_ptr(),
                b,
                c[i * shape.c_stride..].as_mut_ptr(),
                mask,
            );
            i += 4;
        }
        while i < shape.n_a {
            block::<1, S>(
                shape,
                a[i * shape.a_stride..].as_ptr(),
                b,
                c[i * shape.c_stride..].as_mut_ptr(),
                mask,
            );
            i += 1;
        }
    }
}

/// # Safety
/// AVX-512 is present. `R` rows of `a` and `c` and `shape.k` rows of `b` are readable, and those of `c` writable. They
/// have the columns of `S` registers, of which the last has those in `mask`.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f")]
unsafe fn block<const R: usize, const S: usize>(
    shape: &PanelShape,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    mask: u16,
) {
    let mut masks = [u16::MAX; S];
    masks[S - 1] = mask;
    let mut sums = [[_mm512_setzero_ps(); S]; R];
    // SAFETY: guaranteed by the caller; lanes outside the mask are neither read nor written.
    unsafe {
        for r in 0..R {
            for s in 0..S {
                sums[r][s] = _mm512_maskz_loadu_ps(masks[s], c.add(r * shape.c_stride + s * LANES));
            }
        }
        for k in 0..shape.k {
            let b = b.add(k * shape.b_stride);
            let mut columns = [_mm512_setzero_ps(); S];
            for s in 0..S {
                columns[s] = _mm512_maskz_loadu_ps(masks[s], b.add(s * LANES));
            }
            for r in 0..R {
                let a = _mm512_set1_ps(*a.add(r * shape.a_stride + k));
                for s in 0..S {
                    sums[r][s] = _mm512_fmadd_ps(a, columns[s], sums[r][s]);
                }
            }
        }
        for r in 0..R {
            for s in 0..S {
                _mm512_mask_storeu_ps(c.add(r * shape.c_stride + s * LANES), masks[s], sums[r][s]);
            }
        }
    }
}
