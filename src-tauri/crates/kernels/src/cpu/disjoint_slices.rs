//! A slice that several workers write at once, each a separate part, and the output tile of a matrix product.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice shared among workers. Every access names its range; ranges in use at the same time must
/// not overlap, which the `unsafe` of `slice_mut` requires.
pub struct DisjointSlices<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a `&mut [T]` handed out piecewise; sending the pieces to other threads needs `T: Send`.
unsafe impl<T: Send> Sync for DisjointSlices<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for DisjointSlices<'_, T> {}

impl<'a, T> DisjointSlices<'a, T> {
    /// Shares `slice`.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Borrows `range` mutably. Panics if it is out of bounds.
    ///
    /// # Safety
    /// While the returned slice lives, no other range in use, read or written, may overlap it.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "range {range:?} of {}", self.len);
        // SAFETY: inside the borrowed slice by the assertion; unaliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Borrows `range` for reading. Panics if it is out of bounds.
    ///
    /// # Safety
    /// While the returned slice lives, no thread may write one of its elements.
    pub unsafe fn slice(&self, range: Range<usize>) -> &[T] {
        assert!(range.start <= range.end && range.end <= self.len, "range {range:?} of {}", self.len);
        // SAFETY: inside the borrowed slice by the assertion; not written by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }
}

/// Where a matrix product writes: columns `0..n_rows` (one per weight row) of `n_tokens` rows, which are
/// `stride` floats apart in a larger matrix.
pub struct OutTile<'a> {
    start: *mut f32,
    stride: usize,
    n_tokens: usize,
    n_rows: usize,
    slice: PhantomData<&'a mut [f32]>,
}

impl<'a> OutTile<'a> {
    /// Covers a whole (n_tokens, n_rows) matrix.
    pub fn whole(out: &'a mut [f32], n_rows: usize) -> Self {
        let n_tokens = out.len().checked_div(n_rows).unwrap_or(0);
        Self { start: out.as_mut_ptr(), stride: n_rows, n_tokens, n_rows, slice: PhantomData }
    }

    /// Covers tokens `tokens` and columns `columns` of the (.., stride) matrix that starts at `start` in
    /// `out`. Panics if they are out of bounds.
    ///
    /// # Safety
    /// While the tile lives, no other reference may reach one of its elements.
    pub unsafe fn of(
        out: &'a DisjointSlices<f32>,
        start: usize,
        stride: usize,
        tokens: Range<usize>,
        columns: Range<usize>,
    ) -> Self {
        assert!(
            columns.end <= stride && start + tokens.end * stride <= out.len(),
            "{tokens:?} × {columns:?}"
        );
        assert!(columns.start <= columns.end && tokens.start <= tokens.end);
        // SAFETY: the assertions keep the start, and every element of the tile, inside the slice.
        let start = unsafe { out.start.add(start + tokens.start * stride + columns.start) };
        Self { start, stride, n_tokens: tokens.len(), n_rows: columns.len(), slice: PhantomData }
    }

    /// Returns the number of tokens.
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// Returns the number of weight rows, which are columns of the output.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the outputs of token `t`: (n_rows).
    #[inline]
    pub fn token(&mut self, t: usize) -> &mut [f32] {
        assert!(t < self.n_tokens);
        // SAFETY: rows of the tile are inside the slice by construction, and borrowed through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(t * self.stride), self.n_rows) }
    }

    /// Sets the output of token `t` and weight row `r`.
    #[inline]
    pub fn set(&mut self, t: usize, r: usize, value: f32) {
        assert!(t < self.n_tokens && r < self.n_rows);
        // SAFETY: inside the tile by the assertion.
        unsafe { *self.start.add(t * self.stride + r) = value }
    }
}
