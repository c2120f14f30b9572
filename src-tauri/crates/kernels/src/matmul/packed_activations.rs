//! Activations of eight tokens interleaved in the order in which a register tile multiplies them, behind one
//! pointer.
//! Packed once for all products of an input. The last `n_tokens % 8` tokens are not packed.

use super::{ActivationFormat, Activations};
use crate::cpu::arena::{AlignedVec, Pod};
use crate::cpu::isa::{IsaLevel, Levels};
use crate::error::KernelError;

#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod x86;

/// Tokens in a pack.
pub const PACK_TOKENS: usize = 8;

/// One number for each token of a pack.
type PerToken<T> = [T; PACK_TOKENS];

/// Consecutive 4-byte groups of one token. Two on 64-bit ARM, where `smmla` multiplies eight bytes of two
/// tokens.
const INTERLEAVE: usize = if cfg!(target_arch = "aarch64") { 2 } else { 1 };

/// 32 quants of each token: (8 / INTERLEAVE, tokens, INTERLEAVE), four bytes each.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct QuantsX8([PerToken<[i32; INTERLEAVE]>; 8 / INTERLEAVE]);

#[allow(clippy::modulo_one)] // INTERLEAVE may be one
impl QuantsX8 {
    /// Returns bytes 4j..4j + 4 of token `t`.
    ///
    /// # Safety
    /// `t` is below `PACK_TOKENS`.
    #[inline(always)]
    pub unsafe fn dword(&self, j: usize, t: usize) -> i32 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0[j / INTERLEAVE].get_unchecked(t)[j % INTERLEAVE] }
    }

    /// Points to bytes 8i..8i + 8 of token `t`. On 64-bit ARM those of the next token follow.
    #[inline(always)]
    pub fn qword_ptr(&self, i: usize, t: usize) -> *const u8 {
        self.0[2 * i / INTERLEAVE][t..].as_ptr().cast()
    }

    #[inline(always)]
    fn set(&mut self, t: usize, q: &[i8; 32]) {
        for (j, q) in q.as_chunks::<4>().0.iter().enumerate() {
            self.0[j / INTERLEAVE][t][j % INTERLEAVE] = i32::from_le_bytes(q.map(|q| q as u8));
        }
    }
}

/// 32 activations of each token in `ActivationFormat::Q8_0`, interleaved (candle: `BlockQ8_0x4`).
#[repr(C, align(64))] // whole cache lines
#[derive(Clone, Copy, Debug)]
pub struct BlockQ8_0x8 {
    /// (tokens, 32) interleaved.
    pub q: QuantsX8,
    /// Sums of the quants times −128.
    pub sums: PerToken<i32>,
    /// Scale of each token.
    pub scales: PerToken<f32>,
    /// Sums of the quants whose products meet in the first and in the second i16 of `Simd::dot_i16`, an i16
    /// each.
    pub i16_sums: PerToken<i32>,
    /// Fills the last cache line.
    pub padding: PerToken<i32>,
}

/// 256 activations of each token in `ActivationFormat::Q8_K`, interleaved (candle: `BlockQ8Kx4`).
#[repr(C, align(64))] // whole cache lines
#[derive(Clone, Copy, Debug)]
pub struct BlockQ8Kx8 {
    /// (groups of 32)
    pub q: [QuantsX8; 8],
    /// Scale of each token.
    pub scales: PerToken<f32>,
    /// (pairs of 32 elements, tokens): their sums, an i16 each.
    pub pair_sums_32: [PerToken<i32>; 4],
    /// (16 elements, tokens): their sums times −32.
    pub sums: [PerToken<i32>; 16],
    /// (pairs of 16 elements, tokens): their sums, an i16 each.
    pub pair_sums_16: [PerToken<i32>; 8],
    /// (16 elements, tokens): as `BlockQ8_0x8::i16_sums`, times −32.
    pub i16_sums: [PerToken<i32>; 16],
    /// Fills the last cache line.
    pub padding: PerToken<i32>,
}

// SAFETY: numbers without padding, as the sizes below show.
unsafe impl Pod for BlockQ8_0x8 {}
// SAFETY: as above.
unsafe impl Pod for BlockQ8Kx8 {}
const _: () =
    assert!(size_of::<BlockQ8_0x8>() == (64 + 32) * 4 && size_of::<BlockQ8Kx8>() == (512 + 368) * 4);

/// Packed activations of some tokens: (tokens / 8, blocks). Empty when there is no full pack.
#[derive(Clone, Copy, Debug)]
pub enum PackedActivationsRef<'a> {
    /// No full pack, or floats.
    None,
    /// Blocks of 32.
    Q8_0(&'a [BlockQ8_0x8]),
    /// Blocks of 256.
    Q8K(&'a [BlockQ8Kx8]),
}

impl PackedActivationsRef<'_> {
    /// Returns the packs of the tokens `range` in rows of `k` elements.
    /// If a token group starts inside a pack, its first pack is the next one. Packs of consecutive groups
    /// never overlap.
    pub fn tokens(self, range: &std::ops::Range<usize>, k: usize) -> Self {
        let (first, n) = (range.start.div_ceil(PACK_TOKENS), range.len() / PACK_TOKENS);
        let part = |block_len: usize| first * (k / block_len)..(first + n) * (k / block_len);
        match self {
            Self::None => Self::None,
            Self::Q8_0(all) => Self::Q8_0(&all[part(32)]),
            Self::Q8K(all) => Self::Q8K(&all[part(256)]),
        }
    }
}

/// Owned memory for packed activations.
pub enum PackedActivations {
    /// Floats are not packed.
    None,
    /// Blocks of 32.
    Q8_0(AlignedVec<BlockQ8_0x8>),
    /// Blocks of 256.
    Q8K(AlignedVec<BlockQ8Kx8>),
}

impl PackedActivations {
    /// Allocates `n_blocks` zeroed blocks. Errors: out of memory.
    pub fn zeroed(format: ActivationFormat, n_blocks: usize) -> Result<Self, KernelError> {
        let what = "packed activations";
        Ok(match format {
            ActivationFormat::F32 => Self::None,
            ActivationFormat::Q8_0 => Self::Q8_0(AlignedVec::zeroed(n_blocks, what)?),
            ActivationFormat::Q8_K => Self::Q8K(AlignedVec::zeroed(n_blocks, what)?),
        })
    }

    /// Packs every full group of eight tokens. `level` must be present on this processor.
    pub fn pack(format: ActivationFormat, level: IsaLevel, acts: &Activations) -> Result<Self, KernelError> {
        let width = acts.k / format.block_len();
        let mut packed = Self::zeroed(format, acts.n_tokens / PACK_TOKENS * width)?;
        match &mut packed {
            Self::None => {}
            Self::Q8_0(all) => {
                let fill = PACK_Q8_0.at(level);
                all.chunks_exact_mut(width).enumerate().for_each(|(i, out)| fill(acts, i * PACK_TOKENS, out));
            }
            Self::Q8K(all) => {
                let fill = PACK_Q8K.at(level);
                all.chunks_exact_mut(width).enumerate().for_each(|(i, out)| fill(acts, i * PACK_TOKENS, out));
            }
        }
        Ok(packed)
    }

    /// Borrows the first `n_blocks` blocks.
    pub fn blocks(&self, n_blocks: usize) -> PackedActivationsRef<'_> {
        match self {
            Self::None => PackedActivationsRef::None,
            Self::Q8_0(all) => PackedActivationsRef::Q8_0(&all[..n_blocks]),
            Self::Q8K(all) => PackedActivationsRef::Q8K(&all[..n_blocks]),
        }
    }

    /// Borrows all blocks.
    pub fn all(&self) -> PackedActivationsRef<'_> {
        match self {
            Self::None => PackedActivationsRef::None,
            Self::Q8_0(all) => PackedActivationsRef::Q8_0(all),
            Self::Q8K(all) => PackedActivationsRef::Q8K(all),
        }
    }
}

/// Returns two i16 sums times `by`: of the first two bytes of every four, and of the other two.
/// Adds eight bytes at a time in four u16 lanes, with the bytes offset by 128.
#[inline(always)]
fn i16_sums<const N: usize>(q: &[i8; N], by: i16) -> i32 {
    const EVEN_BYTES: u64 = 0x00FF_00FF_00FF_00FF;
    const SIGN_BITS: u64 = 0x8080_8080_8080_8080;
    let mut sums = 0;
    for bytes in q.as_chunks::<8>().0 {
        let from_least = u64::from_le_bytes(bytes.map(|q| q as u8)) ^ SIGN_BITS;
        sums += (from_least & EVEN_BYTES) + (from_least >> 8 & EVEN_BYTES);
    }
    sums += sums >> 32;
    let signed = |sum: u64| (sum as i16 - 128 * (N / 2) as i16) * by;
    i32::from(signed(sums >> 16)) << 16 | i32::from(signed(sums)) & 0xFFFF
}

/// Packs eight tokens from `first` in `ActivationFormat::Q8_0` into `out` (k / 32).
pub type PackQ8_0Fn = fn(acts: &Activations, first: usize, out: &mut [BlockQ8_0x8]);
/// Packs eight tokens from `first` in `ActivationFormat::Q8_K` into `out` (k / 256).
pub type PackQ8KFn = fn(acts: &Activations, first: usize, out: &mut [BlockQ8Kx8]);

macro_rules! pack_levels {
    ($name:ident: $type:ty = $function:ident($block:ty)) => {
        /// The packing function for each level.
        #[cfg(target_arch = "x86_64")]
        pub static $name: Levels<$type> = {
            fn avx2(acts: &Activations, first: usize, out: &mut [$block]) {
                // SAFETY: `Levels::at` is called only with levels that `IsaLevel::is_present` confirmed.
                unsafe { x86::$function(acts, first, out) }
            }
            Levels { portable: $function, avx2, avx512: avx2, neon: $function }
        };
        /// The packing function for each level.
        #[cfg(not(target_arch = "x86_64"))]
        pub static $name: Levels<$type> =
            Levels { portable: $function, avx2: $function, avx512: $function, neon: $function };
    };
}
pack_levels!(PACK_Q8_0: PackQ8_0Fn = pack_q8_0(BlockQ8_0x8));
pack_levels!(PACK_Q8K: PackQ8KFn = pack_q8_k(BlockQ8Kx8));

/// Quants of a token, and for each block a scale and sums.
type TokenRow<'a, Block, Sums> = (&'a [Block], &'a [f32], &'a [Sums]);

/// Borrows eight tokens from `first` in `ActivationFormat::Q8_0`, `n` blocks each.
fn token_rows_q8_0<'a>(
    acts: &Activations<'a>,
    first: usize,
    n: usize,
) -> [TokenRow<'a, [i8; 32], i32>; PACK_TOKENS] {
    std::array::from_fn(|t| {
        let (q, _) = acts.q_row(first + t).as_chunks::<32>();
        let (scales, sums) = (acts.scale_row(first + t), acts.sum_row(first + t));
        assert!(q.len() == n && scales.len() == n && sums.len() == n);
        (q, scales, sums)
    })
}

/// Borrows eight tokens from `first` in `ActivationFormat::Q8_K`, `n` blocks each.
fn token_rows_q8_k<'a>(
    acts: &Activations<'a>,
    first: usize,
    n: usize,
) -> [TokenRow<'a, [i8; 256], [i32; 12]>; PACK_TOKENS] {
    std::array::from_fn(|t| {
        let (q, _) = acts.q_row(first + t).as_chunks::<256>();
        let (scales, (sums, _)) = (acts.scale_row(first + t), acts.sum_row(first + t).as_chunks::<12>());
        assert!(q.len() == n && scales.len() == n && sums.len() == n);
        (q, scales, sums)
    })
}

fn pack_q8_0(acts: &Activations, first: usize, out: &mut [BlockQ8_0x8]) {
    let rows = token_rows_q8_0(acts, first, out.len());
    for (b, block) in out.iter_mut().enumerate() {
        for (t, (q, scales, sums)) in rows.iter().enumerate() {
            block.q.set(t, &q[b]);
            block.scales[t] = scales[b];
            block.sums[t] = sums[b] * -128;
            block.i16_sums[t] = i16_sums(&q[b], 1);
        }
    }
}

fn pack_q8_k(acts: &Activations, first: usize, out: &mut [BlockQ8Kx8]) {
    let rows = token_rows_q8_k(acts, first, out.len());
    for (b, block) in out.iter_mut().enumerate() {
        for (t, (q, scales, sums)) in rows.iter().enumerate() {
            let q = &q[b];
            for (to, from) in block.q.iter_mut().zip(q.as_chunks::<32>().0) {
                to.set(t, from);
            }
            block.scales[t] = scales[b];
            let (of_16, of_32) = sums[b].split_at(8);
            for (i, pair) in of_16.iter().enumerate() {
                block.pair_sums_16[i][t] = *pair;
                block.sums[2 * i][t] = i32::from(*pair as i16) * -32;
                block.sums[2 * i + 1][t] = (*pair >> 16) * -32;
            }
            for (i16_sums_of, q) in block.i16_sums.iter_mut().zip(q.as_chunks::<16>().0) {
                i16_sums_of[t] = i16_sums(q, -32);
            }
            for (i, pair) in of_32.iter().enumerate() {
                block.pair_sums_32[i][t] = *pair;
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_level_packs_alike() {
        let (n_tokens, k) = (9, 768);
        // All values that quants can have, -127 to 127, and arbitrary sums.
        let q: Vec<i8> =
            (0..n_tokens * k).map(|i| ((i * 37 + i / 251) % 255) as i16 - 127).map(|q| q as i8).collect();
        let scales: Vec<f32> = (0..n_tokens * k / 32).map(|i| i as f32).collect();
        let sums: Vec<i32> = (0..n_tokens * k / 32).map(|i| (i as i32).wrapping_mul(0x3155_0ABD)).collect();
        let pack = |format: ActivationFormat, level| {
            let (scales, sums) = (&scales[..n_tokens * format.n_scales(k)], &sums);
            let small: Vec<i32> = sums.iter().map(|sum| sum >> 16).collect();
            let sums = if format == ActivationFormat::Q8_0 { &small } else { sums };
            let sums = &sums.repeat(2)[..n_tokens * format.n_sums(k)];
            let acts =
                Activations { n_tokens, k, x: &[], q: &q, scales, sums, packed: PackedActivationsRef::None };
            format!("{:?}", PackedActivations::pack(format, level, &acts).unwrap().all())
        };
        for format in [ActivationFormat::Q8_0, ActivationFormat::Q8_K] {
            for level in IsaLevel::present() {
                assert!(pack(format, level) == pack(format, IsaLevel::Portable), "{format:?} {level}");
            }
        }
    }
}
