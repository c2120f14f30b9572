//! Layout of numbers in the rows of a page, loaded as floats or as pairs of integers.

use super::{BLOCK_LEN, PageSimd};
use crate::graph::PAGE_LEN;

/// The layout of a row of numbers.
pub trait PageRows {
    /// Byte offset of element `i`, a multiple of the register length.
    fn offset(i: usize) -> usize;

    /// Loads `W::LEN` elements from `i` on.
    ///
    /// # Safety
    /// As for `PageSimd`: they lie in the row that begins at `row`.
    unsafe fn load<W: PageSimd>(row: *const u8, i: usize) -> W::F;

    /// Loads element `i`.
    ///
    /// # Safety
    /// It lies in the row that begins at `row`.
    unsafe fn get(row: *const u8, i: usize) -> f32;
}

/// Single precision.
pub struct RowsF32;
/// Half precision.
pub struct RowsF16;
/// Signed bytes, before scaling.
pub struct RowsI8;
/// Blocks of 32 nibbles in 16 bytes, the low ones first, minus 8 and before scaling.
pub struct RowsI4;

impl PageRows for RowsF32 {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        4 * i
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: PageSimd>(row: *const u8, i: usize) -> W::F {
        // SAFETY: the caller's.
        unsafe { W::load(row.add(Self::offset(i)).cast()) }
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn get(row: *const u8, i: usize) -> f32 {
        // SAFETY: the caller's.
        unsafe { row.add(4 * i).cast::<f32>().read_unaligned() }
    }
}

impl PageRows for RowsF16 {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        2 * i
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: PageSimd>(row: *const u8, i: usize) -> W::F {
        // SAFETY: the caller's.
        unsafe { W::halves(row.add(Self::offset(i)).cast()) }
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn get(row: *const u8, i: usize) -> f32 {
        // SAFETY: the caller's.
        unsafe { half::f16::from_bits(row.add(2 * i).cast::<u16>().read_unaligned()).to_f32() }
    }
}

impl PageRows for RowsI8 {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        i
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: PageSimd>(row: *const u8, i: usize) -> W::F {
        // SAFETY: the caller's.
        unsafe { W::bytes(row.add(Self::offset(i)).cast()) }
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn get(row: *const u8, i: usize) -> f32 {
        // SAFETY: the caller's.
        unsafe { f32::from(row.add(i).read() as i8) }
    }
}

impl RowsI4 {
    /// Bit offset of element `i` in its byte.
    #[inline(always)]
    fn shift(i: usize) -> u32 {
        if i % BLOCK_LEN < BLOCK_LEN / 2 { 0 } else { 4 }
    }
}

impl PageRows for RowsI4 {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        i / BLOCK_LEN * (BLOCK_LEN / 2) + i % (BLOCK_LEN / 2)
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: PageSimd>(row: *const u8, i: usize) -> W::F {
        // SAFETY: the caller's; a register is no longer than half a block.
        unsafe { W::nibbles(row.add(Self::offset(i)), Self::shift(i)) }
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn get(row: *const u8, i: usize) -> f32 {
        // SAFETY: the caller's.
        unsafe { f32::from((row.add(Self::offset(i)).read() >> Self::shift(i)) & 15) - 8.0 }
    }
}

/// The layout of quantized keys in a page: integers, then a scale per `BLOCK_LEN` elements and slot.
pub trait KeyPairs {
    /// Pairs of elements per group, which holds all slots.
    const PAIRS: usize;
    /// Bytes per group.
    const GROUP_BYTES: usize;

    /// Loads pair `pair` of the group at `group`, for `W::LEN` slots from `slot` on.
    ///
    /// # Safety
    /// As for `PageSimd`: a whole group lies at `group`.
    unsafe fn load<W: PageSimd>(group: *const u8, slot: usize, pair: usize) -> W::I;
}

impl KeyPairs for RowsI8 {
    const PAIRS: usize = 1;
    const GROUP_BYTES: usize = 2 * PAGE_LEN;

    #[inline(always)]
    // SAFETY: asked of the caller by the trait.
    unsafe fn load<W: PageSimd>(group: *const u8, slot: usize, _pair: usize) -> W::I {
        // SAFETY: the caller's: two bytes for each slot.
        unsafe { W::byte_pairs(group.add(2 * slot).cast()) }
    }
}

impl KeyPairs for RowsI4 {
    const PAIRS: usize = 2;
    const GROUP_BYTES: usize = 2 * PAGE_LEN;

    #[inline(always)]
    // SAFETY: asked of the caller by the trait.
    unsafe fn load<W: PageSimd>(group: *const u8, slot: usize, pair: usize) -> W::I {
        // SAFETY: the caller's: two bytes for each slot, whose low nibbles are the first pair.
        unsafe { W::nibble_pairs(group.add(2 * slot), 4 * pair as u32) }
    }
}
