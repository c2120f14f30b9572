//! IQ formats whose integers come from a codebook (llama.cpp: grid): 32 signed bytes are looked up row by
//! row.
//! They are then multiplied like those of other 256-element formats.

use super::blocks256::{Block256, Block256Header, ZeroPoint, GroupVisitor};
use super::simd::{Simd, MAX_ROWS, RowPointers};

/// Decoding of one codebook format. Functions take whole blocks.
pub trait Codebook {
    /// Bytes of a block.
    const BYTES: usize;
    /// The two halves of 32 elements have separate scales.
    const SCALES_BY_16: bool;
    /// Factor of the block scale d. Its inverse makes scales and codebook entries integers.
    const D_SCALE: f32;

    /// Returns the bits of the block scale, an f16.
    fn d(block: &[u8]) -> u16;

    /// Returns (16 elements): the scale of each; repeated where 32 elements share one.
    fn scales(block: &[u8]) -> [i32; 16];

    /// Returns 32 signed bytes, eight in each number.
    fn group(block: &[u8], group: usize) -> [u64; 4];
}

/// Adapts a codebook format to `Block256`.
pub struct Codebook256<F>(F);

impl<F: Codebook> Block256 for Codebook256<F> {
    const BYTES: usize = F::BYTES;
    const SCALES_BY_16: bool = F::SCALES_BY_16;
    const ZERO_POINT: ZeroPoint = ZeroPoint::Signed;
    const MAX_MAGNITUDE: i32 = 127;

    #[inline(always)]
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L> {
        let mut scales = [[0i32; MAX_ROWS]; 16];
        let mut factors = [0u16; MAX_ROWS];
        for r in 0..L::ROWS {
            // SAFETY: guaranteed by the caller: a whole block lies at `offset` of each row.
            let block = unsafe { std::slice::from_raw_parts(rows[r].add(offset), F::BYTES) };
            factors[r] = F::d(block);
            for (i, scale) in F::scales(block).into_iter().enumerate() {
                scales[i][r] = scale;
            }
        }
        let mut pointers = [std::ptr::null(); MAX_ROWS];
        for (pointer, d) in pointers.iter_mut().zip(&factors) {
            *pointer = std::ptr::from_ref(d).cast();
        }
        // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register, and each pointer has its
        // two bytes.
        unsafe {
            let mut header = Block256Header {
                scales: [L::zero(); 16],
                offsets: [L::zero(); 8],
                d: L::mul_f(L::load_f16(&pointers, 0), L::splat_f(F::D_SCALE)),
                dmin: L::zero_f(),
            };
            for i in 0..16 {
                header.scales[i] = L::load(scales[i].as_ptr());
            }
            for i in 0..8 {
                let pair = (header.scales[i * 2], header.scales[i * 2 + 1]);
                header.offsets[i] = L::or(pair.0, L::shift_left::<16>(pair.1));
            }
            header
        }
    }

    #[inline(always)]
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T) {
        for group in 0..8 {
            let mut bytes = [[0u64; 4]; MAX_ROWS];
            let mut pointers = [std::ptr::null(); MAX_ROWS];
            for r in 0..L::ROWS {
                // SAFETY: guaranteed by the caller: a whole block lies at `offset` of each row.
                let block = unsafe { std::slice::from_raw_parts(rows[r].add(offset), F::BYTES) };
                bytes[r] = F::group(block, group);
                pointers[r] = std::ptr::from_ref(&bytes[r]).cast();
            }
            // SAFETY: guaranteed by the caller; each pointer has its 32 bytes.
            unsafe {
                let mut integers = T::arrange(L::load_rows32(&pointers, 0));
                for integer in &mut integers {
                    *integer = L::bias_signed(*integer);
                }
                visitor.visit(group, integers);
            }
        }
    }
}

/// Unpacks a codebook of eights with two bits per element to bytes.
pub const fn unpack_grid8<const N: usize>(packed: &[u16; N], values: [i8; 4]) -> [u64; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        let mut j = 0;
        while j < 8 {
            let value = values[(packed[i] >> (2 * j) & 3) as usize] as u8;
            out[i] |= (value as u64) << (8 * j);
            j += 1;
        }
        i += 1;
    }
    out
}

/// Unpacks a codebook of fours with three bits per element to bytes.
pub const fn unpack_grid4<const N: usize>(packed: &[u16; N], values: [u8; 8]) -> [u32; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        let mut j = 0;
        while j < 4 {
            out[i] |= (values[(packed[i] >> (3 * j) & 7) as usize] as u32) << (8 * j);
            j += 1;
        }
        i += 1;
    }
    out
}

/// For each eight sign bits, a byte of all ones for each minus.
static SIGN_MASKS: [u64; 256] = {
    let mut out = [0; 256];
    let mut signs = 0;
    while signs < 256 {
        let mut j = 0;
        while j < 8 {
            if signs >> j & 1 == 1 {
                out[signs] |= 0xFF << (8 * j);
            }
            j += 1;
        }
        signs += 1;
    }
    out
};

/// Applies signs to eight magnitudes, none of which is zero.
#[inline(always)]
pub fn apply_signs(magnitudes: u64, signs: u8) -> u64 {
    let minus = SIGN_MASKS[usize::from(signs)];
    // −x is !x + 1; without zeros, nothing carries from byte to byte.
    (magnitudes ^ minus) + (minus & 0x0101_0101_0101_0101)
}

/// Reads a little-endian u16 at `at`.
#[inline(always)]
pub fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// Reads a little-endian u32 at `at`.
#[inline(always)]
pub fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Decodes bytes of two nibbles to scales: 2 · nibble + 1.
#[inline(always)]
pub fn nibble_scales(bytes: &[u8]) -> [i32; 16] {
    std::array::from_fn(|i| i32::from(bytes[i / 2] >> (i % 2 * 4) & 15) * 2 + 1)
}
