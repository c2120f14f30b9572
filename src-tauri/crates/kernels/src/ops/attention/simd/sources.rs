//! How numbers lie in the rows of a page, as floats and as pairs of integers.

use super::{BLOCK_LEN, Wide};
use crate::graph::PAGE_LEN;

/// How numbers lie in a row.
pub trait Source {
    /// Bytes before element `i`, a multiple of the register.
    fn offset(i: usize) -> usize;

    /// `W::LEN` elements from `i`.
    ///
    /// # Safety
    /// As for `Wide`: they lie in the row that begins at `row`.
    unsafe fn load<W: Wide>(row: *const u8, i: usize) -> W::F;

    /// Element `i`.
    ///
    /// # Safety
    /// It lies in the row that begins at `row`.
    unsafe fn get(row: *const u8, i: usize) -> f32;
}

pub struct Floats;
pub struct Halves;
/// Signed bytes, without their scale.
pub struct Bytes;
/// 16 bytes for 32 nibbles, the low ones first, less 8 and without their scale.
pub struct Nibbles;

impl Source for Floats {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        4 * i
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: Wide>(row: *const u8, i: usize) -> W::F {
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

impl Source for Halves {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        2 * i
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: Wide>(row: *const u8, i: usize) -> W::F {
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

impl Source for Bytes {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        i
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: Wide>(row: *const u8, i: usize) -> W::F {
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

impl Nibbles {
    /// Bits below element `i` in its byte.
    #[inline(always)]
    fn shift(i: usize) -> u32 {
        if i % BLOCK_LEN < BLOCK_LEN / 2 { 0 } else { 4 }
    }
}

impl Source for Nibbles {
    #[inline(always)]
    fn offset(i: usize) -> usize {
        i / BLOCK_LEN * (BLOCK_LEN / 2) + i % (BLOCK_LEN / 2)
    }

    // SAFETY: asked of the caller by the trait.
    #[inline(always)]
    unsafe fn load<W: Wide>(row: *const u8, i: usize) -> W::F {
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

/// How quantised keys lie in a block of a page: integers, then a scale for each `BLOCK_LEN` elements and slot.
pub trait Keys {
    /// Pairs of elements of all slots that lie together.
    const PAIRS: usize;
    /// Bytes of such a group.
    const GROUP_BYTES: usize;

    /// Pair `pair` of the group at `group`, for `W::LEN` slots from `slot`.
    ///
    /// # Safety
    /// As for `Wide`: a whole group lies at `group`.
    unsafe fn load<W: Wide>(group: *const u8, slot: usize, pair: usize) -> W::I;
}

impl Keys for Bytes {
    const PAIRS: usize = 1;
    const GROUP_BYTES: usize = 2 * PAGE_LEN;

    #[inline(always)]
    // SAFETY: asked of the caller by the trait.
    unsafe fn load<W: Wide>(group: *const u8, slot: usize, _pair: usize) -> W::I {
        // SAFETY: the caller's: two bytes for each slot.
        unsafe { W::byte_pairs(group.add(2 * slot).cast()) }
    }
}

impl Keys for Nibbles {
    const PAIRS: usize = 2;
    const GROUP_BYTES: usize = 2 * PAGE_LEN;

    #[inline(always)]
    // SAFETY: asked of the caller by the trait.
    unsafe fn load<W: Wide>(group: *const u8, slot: usize, pair: usize) -> W::I {
        // SAFETY: the caller's: two bytes for each slot, whose low nibbles are the first pair.
        unsafe { W::nibble_pairs(group.add(2 * slot), 4 * pair as u32) }
    }
}
