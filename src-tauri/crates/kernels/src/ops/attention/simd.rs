//! SIMD kernels of attention with one page, written once for AVX2, AVX-512 and NEON. Several queries share a pass over the
//! page, so that loading and unpacking serve all of them. Every result is one chain of additions over rising positions or
//! elements, independent of the number of queries.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
mod formats;
mod integers;
#[cfg(target_arch = "aarch64")]
pub mod neon;
mod panel;
mod rows;

/// Elements of a quantized row with one scale.
const BLOCK_LEN: usize = 32;
/// Float registers per step along a row of the page.
const STEP: usize = 2;

/// Registers of one instruction set.
///
/// # Safety
/// All functions: the processor has the instruction set, and the caller is compiled for it (otherwise nothing inlines).
/// Functions with pointers: `LEN` elements, or the number they state, are readable or writable at any alignment.
///
/// Call them from loops, never from closures passed to `map` or `from_fn`: those may be compiled without the instruction
/// set (`tests/inlined.rs`).
pub trait PageSimd {
    /// Floats per register.
    const LEN: usize;
    type F: Copy;
    type I: Copy;

    unsafe fn zero() -> Self::F;
    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn load(from: *const f32) -> Self::F;
    unsafe fn store(to: *mut f32, x: Self::F);
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    /// a · b + c, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// f16 as floats.
    unsafe fn halves(from: *const u16) -> Self::F;
    /// Signed bytes as floats.
    unsafe fn bytes(from: *const i8) -> Self::F;
    /// The nibbles above bit `shift` of each byte, less 8, as floats.
    unsafe fn nibbles(from: *const u8, shift: u32) -> Self::F;

    unsafe fn zero_i() -> Self::I;
    unsafe fn to_f(x: Self::I) -> Self::F;
    /// Two i16 in all lanes.
    unsafe fn splat_pair(from: *const i16) -> Self::I;
    /// 2 · `LEN` signed bytes as i16.
    unsafe fn byte_pairs(from: *const i8) -> Self::I;
    /// The nibbles above bit `shift` of 2 · `LEN` bytes, less 8, as i16.
    unsafe fn nibble_pairs(from: *const u8, shift: u32) -> Self::I;
    /// acc + the dot product of the two i16 in each lane.
    unsafe fn dot_pairs(acc: Self::I, a: Self::I, b: Self::I) -> Self::I;

    /// Prefetches the cache line at an address, which need not be readable, into the second-level cache.
    unsafe fn prefetch(at: *const u8);
}

/// Gives every function the attributes and the safety argument that they share.
macro_rules! instructions {
    ($($(#[$attribute:meta])* fn $name:ident ($($a:ident: $t:ty),*) -> $r:ty $body:block)*) => {
        $(
            $(#[$attribute])*
            // SAFETY: asked of the caller by the trait.
            #[inline(always)]
            unsafe fn $name ($($a: $t),*) -> $r {
                // SAFETY: the trait asks the caller for the instruction set and for readable, writable pointers.
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use instructions;

/// Prefetches memory line by line while other memory is processed.
struct PagePrefetcher {
    at: *const u8,
    end: *const u8,
}

const CACHE_LINE: usize = 64;

impl PagePrefetcher {
    fn of(bytes: &[u8]) -> Self {
        let range = bytes.as_ptr_range();
        Self { at: range.start, end: range.end }
    }

    /// Prefetches the next line; at the end, the end again.
    ///
    /// # Safety
    /// As for `PageSimd`.
    #[inline(always)]
    unsafe fn prefetch_line<W: PageSimd>(&mut self) {
        // SAFETY: the caller's.
        unsafe { W::prefetch(self.at) };
        let next = self.at.wrapping_add(CACHE_LINE);
        self.at = if next < self.end { next } else { self.end };
    }

    /// Called once per two steps along a page, prefetches enough lines to cover a page of equal length.
    ///
    /// # Safety
    /// As for `PageSimd`.
    #[inline(always)]
    unsafe fn prefetch_for_two_steps<W: PageSimd>(&mut self) {
        for _ in 0..W::LEN / 8 {
            // SAFETY: the caller's.
            unsafe { self.prefetch_line::<W>() };
        }
    }

    /// Prefetches the rest.
    ///
    /// # Safety
    /// As for `PageSimd`.
    #[inline(always)]
    unsafe fn finish<W: PageSimd>(mut self) {
        while self.at < self.end {
            // SAFETY: the caller's.
            unsafe { self.prefetch_line::<W>() };
        }
    }
}

/// Runs `$body` for all queries, `R` at a time from query `$i` on: as many as fit into the registers.
macro_rules! by_queries {
    ($W:ty, $n:expr, |$i:ident, $R:ident| $body:expr) => {{
        let mut $i = 0;
        macro_rules! step {
            ($count:literal) => {{
                const $R: usize = $count;
                $body;
                $i += $count;
            }};
        }
        while $i < $n {
            match $n - $i {
                1 => step!(1),
                2 => step!(2),
                3 => step!(3),
                4 => step!(4),
                5 if <$W>::LEN == 16 => step!(5),
                6 if <$W>::LEN == 16 => step!(6),
                7 if <$W>::LEN == 16 => step!(7),
                _ if <$W>::LEN == 16 => step!(8),
                _ => step!(4),
            }
        }
    }};
}
pub(crate) use by_queries;
