//! Multiplies with the numbers of a page in any layout, for as many queries at a time as the registers hold, so that
//! loading and unpacking serve all of them.

use super::rows::PageRows;
use super::{PagePrefetcher, PageSimd, STEP, by_queries};

/// Operands of c (n_a, n) += a (n_a, k) · b (k, n), with checked lengths.
#[derive(Clone, Copy)]
pub struct PagePanel {
    pub n_a: usize,
    pub k: usize,
    pub n: usize,
    pub a: *const f32,
    /// floats between rows
    pub a_stride: usize,
    pub b: *const u8,
    /// bytes between rows
    pub b_stride: usize,
    pub c: *mut f32,
    /// floats between rows
    pub c_stride: usize,
}

/// Adds row k of b, V registers from column j on, times column k of R rows of a.
///
/// # Safety
/// As for `PageSimd`: these rows and columns lie within the operands.
#[inline(always)]
unsafe fn add<W: PageSimd, S: PageRows, const R: usize, const V: usize>(
    p: &PagePanel,
    a: &[*const f32; R],
    j: usize,
    k: usize,
    sums: &mut [[W::F; V]; R],
) {
    // SAFETY: row k of b and element k of the rows of a, which the caller vouches for.
    unsafe {
        let row = p.b.add(k * p.b_stride);
        let mut b = [W::zero(); V];
        for (v, b) in b.iter_mut().enumerate() {
            *b = S::load::<W>(row, j + v * W::LEN);
        }
        for r in 0..R {
            let a = W::splat(*a[r].add(k));
            for v in 0..V {
                sums[r][v] = W::fma(a, b[v], sums[r][v]);
            }
        }
    }
}

/// c += a · b for rows i..i + R of c, V registers from column j on.
///
/// # Safety
/// As for `PageSimd`: these rows and columns lie within the operands.
#[inline(always)]
unsafe fn tile<W: PageSimd, S: PageRows, const R: usize, const V: usize>(
    p: &PagePanel,
    i: usize,
    j: usize,
    ahead: &mut PagePrefetcher,
) {
    // SAFETY: rows below i + R and columns below j + V · LEN, which the caller vouches for.
    unsafe {
        let a: [*const f32; R] = std::array::from_fn(|r| p.a.add((i + r) * p.a_stride));
        let c: [*mut f32; R] = std::array::from_fn(|r| p.c.add((i + r) * p.c_stride + j));
        let mut sums = [[W::zero(); V]; R];
        for r in 0..R {
            for v in 0..V {
                sums[r][v] = W::load(c[r].add(v * W::LEN));
            }
        }
        for k in (1..p.k).step_by(2) {
            ahead.prefetch_for_two_steps::<W>();
            add::<W, S, R, V>(p, &a, j, k - 1, &mut sums);
            add::<W, S, R, V>(p, &a, j, k, &mut sums);
        }
        if !p.k.is_multiple_of(2) {
            add::<W, S, R, V>(p, &a, j, p.k - 1, &mut sums);
        }
        for r in 0..R {
            for v in 0..V {
                W::store(c[r].add(v * W::LEN), sums[r][v]);
            }
        }
    }
}

/// As `tile`, for one element.
///
/// # Safety
/// As for `PageSimd`: they lie within the operands.
#[inline(always)]
unsafe fn element<S: PageRows>(p: &PagePanel, i: usize, j: usize) {
    // SAFETY: row i and column j, which the caller vouches for.
    unsafe {
        let c = p.c.add(i * p.c_stride + j);
        for k in 0..p.k {
            *c = (*p.a.add(i * p.a_stride + k)).mul_add(S::get(p.b.add(k * p.b_stride), j), *c);
        }
    }
}

/// c += a · b. Each element is summed over k in rising order.
///
/// # Safety
/// As for `PageSimd`: all operands have the shape.
#[inline(always)]
pub unsafe fn multiply<W: PageSimd, S: PageRows>(p: &PagePanel, ahead: &mut PagePrefetcher) {
    let mut j = 0;
    // SAFETY: rows and columns of the shape; the caller's.
    unsafe {
        while j + STEP * W::LEN <= p.n {
            by_queries!(W, p.n_a, |i, R| tile::<W, S, R, STEP>(p, i, j, ahead));
            j += STEP * W::LEN;
        }
        while j + W::LEN <= p.n {
            by_queries!(W, p.n_a, |i, R| tile::<W, S, R, 1>(p, i, j, ahead));
            j += W::LEN;
        }
        while j < p.n {
            (0..p.n_a).for_each(|i| element::<S>(p, i, j));
            j += 1;
        }
    }
}
