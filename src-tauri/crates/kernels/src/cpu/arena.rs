//! Cache-line-aligned memory: an arena with spans borrowed out of it, and views of raw bytes as numbers.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use crate::error::KernelError;

/// Alignment in bytes: one cache line, one AVX-512 register.
pub const ALIGN: usize = 64;

/// A zeroed slice of plain numbers, aligned to `ALIGN`. Untouched pages take no memory.
pub struct AlignedVec<T: Pod> {
    start: NonNull<T>,
    len: usize,
    /// The allocation, which contains `start`.
    block: NonNull<u8>,
}

/// Types for which every bit pattern, including zero, is a valid value.
///
/// # Safety
/// Implement only for such types.
pub unsafe trait Pod: Copy + Send + Sync {}
// SAFETY: every bit pattern is a value of these.
unsafe impl Pod for u8 {}
// SAFETY: as above.
unsafe impl Pod for i8 {}
// SAFETY: as above.
unsafe impl Pod for u16 {}
// SAFETY: as above.
unsafe impl Pod for i16 {}
// SAFETY: as above.
unsafe impl Pod for i32 {}
// SAFETY: as above.
unsafe impl Pod for f32 {}

// SAFETY: owns its memory like a Box<[T]>.
unsafe impl<T: Pod> Send for AlignedVec<T> {}
// SAFETY: as above; shared access is read-only.
unsafe impl<T: Pod> Sync for AlignedVec<T> {}

impl<T: Pod> AlignedVec<T> {
    /// Allocates `len` zeros. Errors: out of memory; `what` names the purpose.
    pub fn zeroed(len: usize, what: &'static str) -> Result<Self, KernelError> {
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len: 0, block: NonNull::dangling() });
        }
        let bytes = len.saturating_mul(size_of::<T>());
        let error = KernelError::Memory { what, bytes };
        let layout = Self::layout(len).ok_or_else(|| error.clone())?;
        // SAFETY: the layout has a size above zero.
        let block = unsafe { alloc_zeroed(layout) };
        let block = NonNull::new(block).ok_or(error)?;
        // SAFETY: at most ALIGN - 1 bytes further; `layout` reserves space for `len` numbers after that.
        let start = unsafe { block.add(block.as_ptr().align_offset(ALIGN)) };
        Ok(Self { start: start.cast(), len, block })
    }

    /// Requests huge pages for this memory, if the system has them. A long context is read once per token and
    /// would miss the TLB on every 4 KB page. The first touch of a page then takes up to 2 MB.
    pub fn in_huge_pages(self) -> Self {
        #[cfg(target_os = "linux")]
        if self.len > 0 {
            let layout = Self::layout(self.len).expect("the same layout was valid when it was allocated");
            advise_huge_pages(self.block.as_ptr(), layout.size());
        }
        self
    }

    /// Returns the whole system pages in `range` to the system, if it supports that. Their contents are lost.
    pub fn release(&mut self, range: Range<usize>) {
        let part = &mut self[range];
        #[cfg(target_os = "linux")]
        release_pages(part.as_mut_ptr().cast(), size_of_val(part));
        #[cfg(not(target_os = "linux"))]
        let _ = part;
    }

    /// Returns the layout with space to align the start in. With a larger alignment the allocator would
    /// clear, and so touch, every page. `None`: larger than the address space.
    fn layout(len: usize) -> Option<Layout> {
        let bytes = len.checked_mul(size_of::<T>())?.checked_add(ALIGN)?;
        Layout::from_size_align(bytes, align_of::<T>()).ok()
    }
}

#[cfg(target_os = "linux")]
// SAFETY: the declaration in the system's manual.
unsafe extern "C" {
    fn madvise(start: *mut std::ffi::c_void, n_bytes: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
}

/// Smallest page size. Systems with larger pages refuse ranges that are not whole pages.
#[cfg(target_os = "linux")]
const SYSTEM_PAGE: usize = 4096;

/// Zeroes the whole pages in this range and returns their memory. Does nothing if the system refuses.
#[cfg(target_os = "linux")]
fn release_pages(start: *mut u8, n_bytes: usize) {
    const MADV_DONTNEED: std::ffi::c_int = 4;
    let within = start.align_offset(SYSTEM_PAGE);
    let Some(n_whole) = n_bytes.checked_sub(within).map(|n| n / SYSTEM_PAGE * SYSTEM_PAGE) else { return };
    if n_whole > 0 {
        // SAFETY: whole pages of anonymous memory, borrowed exclusively by the caller. Each stays as it is or
        // becomes zeros, and every bit pattern is a value of a `Pod` type.
        unsafe { madvise(start.add(within).cast(), n_whole, MADV_DONTNEED) };
    }
}

/// Advises huge pages; a system that refuses keeps small ones.
#[cfg(target_os = "linux")]
fn advise_huge_pages(start: *mut u8, n_bytes: usize) {
    const MADV_HUGEPAGE: std::ffi::c_int = 14;
    let within = start.align_offset(SYSTEM_PAGE);
    if within < n_bytes {
        // SAFETY: this advice changes no byte and no mapping, only the page size. The range starts at a page
        // boundary and ends where the allocation does; the system rounds it up to its page.
        unsafe { madvise(start.add(within).cast(), n_bytes - within, MADV_HUGEPAGE) };
    }
}

impl<T: Pod> Drop for AlignedVec<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            let layout = Self::layout(self.len).expect("the same layout was valid when it was allocated");
            // SAFETY: allocated in `zeroed` with this layout.
            unsafe { dealloc(self.block.as_ptr(), layout) }
        }
    }
}

impl<T: Pod> Deref for AlignedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements, owned by self; dangling only when empty.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for AlignedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Borrows several spans of one slice at once: `reads` shared, `writes` exclusive.
/// Panics if a span is out of bounds or a write overlaps any other span.
pub fn borrow<const R: usize, const W: usize>(
    arena: &mut [f32],
    reads: [Range<usize>; R],
    writes: [Range<usize>; W],
) -> ([&[f32]; R], [&mut [f32]; W]) {
    let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    for span in reads.iter().chain(&writes) {
        assert!(span.start <= span.end && span.end <= arena.len(), "span {span:?} of {}", arena.len());
    }
    for (i, w) in writes.iter().enumerate() {
        assert!(!reads.iter().any(|r| overlap(r, w)), "a value is read and written at once: {w:?}");
        assert!(!writes[..i].iter().any(|v| overlap(v, w)), "two values share memory: {w:?}");
    }
    let start = arena.as_mut_ptr();
    // SAFETY: all spans lie inside the exclusively borrowed slice, and no write overlaps another span.
    unsafe {
        (
            reads.map(|r| std::slice::from_raw_parts(start.add(r.start), r.len())),
            writes.map(|w| std::slice::from_raw_parts_mut(start.add(w.start), w.len())),
        )
    }
}

/// Views bytes as numbers. Panics if the slice is misaligned or has a remainder.
pub fn view<T: Pod>(bytes: &[u8]) -> &[T] {
    // SAFETY: every bit pattern is a value of a `Pod` type.
    let (head, out, tail) = unsafe { bytes.align_to::<T>() };
    assert!(head.is_empty() && tail.is_empty(), "bytes are not whole numbers");
    out
}

/// Views bytes as mutable numbers. Panics if the slice is misaligned or has a remainder.
pub fn view_mut<T: Pod>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: every bit pattern is a value of a `Pod` type.
    let (head, out, tail) = unsafe { bytes.align_to_mut::<T>() };
    assert!(head.is_empty() && tail.is_empty(), "bytes are not whole numbers");
    out
}

/// Views numbers as bytes.
pub fn bytes_of<T: Pod>(numbers: &[T]) -> &[u8] {
    // SAFETY: `Pod` types have no padding, and every byte is a value.
    let (head, out, tail) = unsafe { numbers.align_to::<u8>() };
    assert!(head.is_empty() && tail.is_empty(), "bytes need no alignment");
    out
}

/// Views numbers as mutable bytes.
pub fn bytes_of_mut<T: Pod>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: `Pod` types have no padding, and every bit pattern is a value.
    let (head, out, tail) = unsafe { numbers.align_to_mut::<u8>() };
    assert!(head.is_empty() && tail.is_empty(), "bytes need no alignment");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_start_on_a_cache_line_and_hold_zeros() {
        for len in [1, 3, 64, 1000, 100_000] {
            let mut numbers = AlignedVec::<f32>::zeroed(len, "a test").unwrap();
            assert_eq!((numbers.as_ptr() as usize % ALIGN, numbers.len()), (0, len));
            assert!(numbers.iter().all(|x| *x == 0.0));
            numbers.fill(1.0);
        }
        assert!(AlignedVec::<f32>::zeroed(usize::MAX / 2, "a test").is_err());
        assert!(AlignedVec::<u8>::zeroed(0, "a test").unwrap().is_empty());
    }

    /// The memory of a context is allocated at once and filled over hours.
    #[test]
    #[cfg(target_os = "linux")]
    fn untouched_memory_costs_nothing() {
        let resident = || -> u64 {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let before = resident();
        let mut pages = AlignedVec::<u8>::zeroed(4 << 30, "a test").unwrap();
        pages[1 << 30] = 1;
        assert!(resident() < before + (1 << 30), "four gigabytes allocated, one byte written");
    }
}
