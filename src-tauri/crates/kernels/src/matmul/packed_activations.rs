//! Activations of eight tokens side by side: what a register tile multiplies, in the order in which it does so, under
//! one pointer. Made once for all products of an input; the tokens that are left over stay as they are.

use super::{ActFormat, Acts};
use crate::cpu::arena::{AlignedVec, Plain};
use crate::cpu::isa::{IsaLevel, Levels};
use crate::error::KernelError;

#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod x86;

/// Tokens in an octet.
pub const LEN: usize = 8;

/// One number for each token.
type Each<T> = [T; LEN];

/// Fours of bytes of a token that lie side by side: on 64-bit ARM two, as an instruction there multiplies eight bytes
/// of two tokens.
const SIDE: usize = if cfg!(target_arch = "aarch64") { 2 } else { 1 };

/// 32 activations of each token: (8 / SIDE, tokens, SIDE), four bytes each.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Group([Each<[i32; SIDE]>; 8 / SIDE]);

#[allow(clippy::modulo_one)] // where SIDE is one
impl Group {
    /// Bytes 4j..4j + 4 of token `t`.
    ///
    /// # Safety
    /// There is such a token.
    #[inline(always)]
    pub unsafe fn four(&self, j: usize, t: usize) -> i32 {
        // SAFETY: the caller's.
        unsafe { self.0[j / SIDE].get_unchecked(t)[j % SIDE] }
    }

    /// Bytes 8i..8i + 8 of token `t`, and after them, on 64-bit ARM, those of the next token.
    #[inline(always)]
    pub fn eight(&self, i: usize, t: usize) -> *const u8 {
        self.0[2 * i / SIDE][t..].as_ptr().cast()
    }

    #[inline(always)]
    fn set(&mut self, t: usize, q: &[i8; 32]) {
        for (j, q) in q.as_chunks::<4>().0.iter().enumerate() {
            self.0[j / SIDE][t][j % SIDE] = i32::from_le_bytes(q.map(|q| q as u8));
        }
    }
}

/// 32 activations of `ActFormat::Q8_0` of each token.
#[repr(C, align(64))] // whole cache lines
#[derive(Clone, Copy, Debug)]
pub struct Octet32 {
    pub q: Group,
    /// Their sums times −128.
    pub sums: Each<i32>,
    pub scales: Each<f32>,
    /// The sums of those whose products meet in the first and in the second i16 of `Lanes::dot_short`: an i16 each.
    pub short_sums: Each<i32>,
    /// Up to a whole cache line.
    pub rest: Each<i32>,
}

/// 256 activations of `ActFormat::Q8_K` of each token.
#[repr(C, align(64))] // whole cache lines
#[derive(Clone, Copy, Debug)]
pub struct Octet256 {
    /// (groups of 32)
    pub q: [Group; 8],
    pub scales: Each<f32>,
    /// (pairs of 32 elements, tokens): their sums, an i16 each
    pub pairs_of_32: [Each<i32>; 4],
    /// (16 elements, tokens): their sums times −32
    pub sums: [Each<i32>; 16],
    /// (pairs of 16 elements, tokens): their sums, an i16 each
    pub pairs_of_16: [Each<i32>; 8],
    /// (16 elements, tokens): as `Octet32::short_sums`, times −32
    pub short_sums: [Each<i32>; 16],
    /// Up to a whole cache line.
    pub rest: Each<i32>,
}

// SAFETY: numbers without padding, which the sizes show.
unsafe impl Plain for Octet32 {}
// SAFETY: as above.
unsafe impl Plain for Octet256 {}
const _: () = assert!(size_of::<Octet32>() == (64 + 32) * 4 && size_of::<Octet256>() == (512 + 368) * 4);

/// Octets of some tokens: (tokens / 8, blocks); empty where there are none.
#[derive(Clone, Copy, Debug)]
pub enum Octets<'a> {
    None,
    By32(&'a [Octet32]),
    By256(&'a [Octet256]),
}

impl Octets<'_> {
    /// Those of the tokens `range` in rows of `k` elements. Where whole tokens begin at `range.start`, the first octet
    /// is the one after all that began before: so the octets of groups that follow each other never meet.
    pub fn tokens(self, range: &std::ops::Range<usize>, k: usize) -> Self {
        let (first, n) = (range.start.div_ceil(LEN), range.len() / LEN);
        let part = |block_len: usize| first * (k / block_len)..(first + n) * (k / block_len);
        match self {
            Self::None => Self::None,
            Self::By32(all) => Self::By32(&all[part(32)]),
            Self::By256(all) => Self::By256(&all[part(256)]),
        }
    }
}

/// Memory of octets.
pub enum OctetVec {
    None,
    By32(AlignedVec<Octet32>),
    By256(AlignedVec<Octet256>),
}

impl OctetVec {
    /// Room for `n_blocks` of a format.
    pub fn zeroed(format: ActFormat, n_blocks: usize) -> Result<Self, KernelError> {
        let what = "activations side by side";
        Ok(match format {
            ActFormat::F32 => Self::None,
            ActFormat::Q8_0 => Self::By32(AlignedVec::zeroed(n_blocks, what)?),
            ActFormat::Q8_K => Self::By256(AlignedVec::zeroed(n_blocks, what)?),
        })
    }

    /// Those of every whole eight rows, made at a level that is present.
    pub fn of(format: ActFormat, level: IsaLevel, acts: &Acts) -> Result<Self, KernelError> {
        let width = acts.k / format.block_len();
        let mut octets = Self::zeroed(format, acts.n_tokens / LEN * width)?;
        match &mut octets {
            Self::None => {}
            Self::By32(all) => {
                let fill = FILL_32.at(level);
                all.chunks_exact_mut(width).enumerate().for_each(|(i, out)| fill(acts, i * LEN, out));
            }
            Self::By256(all) => {
                let fill = FILL_256.at(level);
                all.chunks_exact_mut(width).enumerate().for_each(|(i, out)| fill(acts, i * LEN, out));
            }
        }
        Ok(octets)
    }

    /// The first blocks.
    pub fn blocks(&self, n_blocks: usize) -> Octets<'_> {
        match self {
            Self::None => Octets::None,
            Self::By32(all) => Octets::By32(&all[..n_blocks]),
            Self::By256(all) => Octets::By256(&all[..n_blocks]),
        }
    }

    pub fn all(&self) -> Octets<'_> {
        match self {
            Self::None => Octets::None,
            Self::By32(all) => Octets::By32(all),
            Self::By256(all) => Octets::By256(all),
        }
    }
}

/// The sum of the first two bytes of every four and that of the other two, times `by`, an i16 each. Eight bytes at a
/// time are added in a number of four u16, as bytes that count from −128.
#[inline(always)]
fn short_sums<const LEN: usize>(q: &[i8; LEN], by: i16) -> i32 {
    const EVEN_BYTES: u64 = 0x00FF_00FF_00FF_00FF;
    const SIGN_BITS: u64 = 0x8080_8080_8080_8080;
    let mut sums = 0;
    for eight in q.as_chunks::<8>().0 {
        let from_least = u64::from_le_bytes(eight.map(|q| q as u8)) ^ SIGN_BITS;
        sums += (from_least & EVEN_BYTES) + (from_least >> 8 & EVEN_BYTES);
    }
    sums += sums >> 32;
    let signed = |sum: u64| (sum as i16 - 128 * (LEN / 2) as i16) * by;
    i32::from(signed(sums >> 16)) << 16 | i32::from(signed(sums)) & 0xFFFF
}

/// Eight tokens from `first`, of `ActFormat::Q8_0`: (k / 32)
pub type Fill32 = fn(acts: &Acts, first: usize, out: &mut [Octet32]);
/// Eight tokens from `first`, of `ActFormat::Q8_K`: (k / 256)
pub type Fill256 = fn(acts: &Acts, first: usize, out: &mut [Octet256]);

macro_rules! fill_levels {
    ($name:ident: $type:ty = $function:ident($octet:ty)) => {
        #[cfg(target_arch = "x86_64")]
        pub static $name: Levels<$type> = {
            fn avx2(acts: &Acts, first: usize, out: &mut [$octet]) {
                // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                unsafe { x86::$function(acts, first, out) }
            }
            Levels { portable: $function, avx2, avx512: avx2, neon: $function }
        };
        #[cfg(not(target_arch = "x86_64"))]
        pub static $name: Levels<$type> =
            Levels { portable: $function, avx2: $function, avx512: $function, neon: $function };
    };
}
fill_levels!(FILL_32: Fill32 = fill_32(Octet32));
fill_levels!(FILL_256: Fill256 = fill_256(Octet256));

/// Quants of a token, and for each block a scale and sums.
type Row<'a, Block, Sums> = (&'a [Block], &'a [f32], &'a [Sums]);

/// Eight tokens from `first`, of `ActFormat::Q8_0`, `n` blocks each.
fn rows_32<'a>(acts: &Acts<'a>, first: usize, n: usize) -> [Row<'a, [i8; 32], i32>; LEN] {
    std::array::from_fn(|t| {
        let (q, _) = acts.q_row(first + t).as_chunks::<32>();
        let (scales, sums) = (acts.scale_row(first + t), acts.sum_row(first + t));
        assert!(q.len() == n && scales.len() == n && sums.len() == n);
        (q, scales, sums)
    })
}

/// Eight tokens from `first`, of `ActFormat::Q8_K`, `n` blocks each.
fn rows_256<'a>(acts: &Acts<'a>, first: usize, n: usize) -> [Row<'a, [i8; 256], [i32; 12]>; LEN] {
    std::array::from_fn(|t| {
        let (q, _) = acts.q_row(first + t).as_chunks::<256>();
        let (scales, (sums, _)) = (acts.scale_row(first + t), acts.sum_row(first + t).as_chunks::<12>());
        assert!(q.len() == n && scales.len() == n && sums.len() == n);
        (q, scales, sums)
    })
}

fn fill_32(acts: &Acts, first: usize, out: &mut [Octet32]) {
    let rows = rows_32(acts, first, out.len());
    for (b, octet) in out.iter_mut().enumerate() {
        for (t, (q, scales, sums)) in rows.iter().enumerate() {
            octet.q.set(t, &q[b]);
            octet.scales[t] = scales[b];
            octet.sums[t] = sums[b] * -128;
            octet.short_sums[t] = short_sums(&q[b], 1);
        }
    }
}

fn fill_256(acts: &Acts, first: usize, out: &mut [Octet256]) {
    let rows = rows_256(acts, first, out.len());
    for (b, octet) in out.iter_mut().enumerate() {
        for (t, (q, scales, sums)) in rows.iter().enumerate() {
            let q = &q[b];
            for (to, from) in octet.q.iter_mut().zip(q.as_chunks::<32>().0) {
                to.set(t, from);
            }
            octet.scales[t] = scales[b];
            let (of_16, of_32) = sums[b].split_at(8);
            for (i, pair) in of_16.iter().enumerate() {
                octet.pairs_of_16[i][t] = *pair;
                octet.sums[2 * i][t] = i32::from(*pair as i16) * -32;
                octet.sums[2 * i + 1][t] = (*pair >> 16) * -32;
            }
            for (short_sums_of, q) in octet.short_sums.iter_mut().zip(q.as_chunks::<16>().0) {
                short_sums_of[t] = short_sums(q, -32);
            }
            for (i, pair) in of_32.iter().enumerate() {
                octet.pairs_of_32[i][t] = *pair;
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_level_makes_the_same_octets() {
        let (n_tokens, k) = (9, 768);
        // All bytes that quants have, -127 to 127, and sums of any value.
        let q: Vec<i8> =
            (0..n_tokens * k).map(|i| ((i * 37 + i / 251) % 255) as i16 - 127).map(|q| q as i8).collect();
        let scales: Vec<f32> = (0..n_tokens * k / 32).map(|i| i as f32).collect();
        let sums: Vec<i32> = (0..n_tokens * k / 32).map(|i| (i as i32).wrapping_mul(0x3155_0ABD)).collect();
        let octets = |format: ActFormat, level| {
            let (scales, sums) = (&scales[..n_tokens * format.n_scales(k)], &sums);
            let small: Vec<i32> = sums.iter().map(|sum| sum >> 16).collect();
            let sums = if format == ActFormat::Q8_0 { &small } else { sums };
            let sums = &sums.repeat(2)[..n_tokens * format.n_sums(k)];
            let acts = Acts { n_tokens, k, x: &[], q: &q, scales, sums, octets: Octets::None };
            format!("{:?}", OctetVec::of(format, level, &acts).unwrap().all())
        };
        for format in [ActFormat::Q8_0, ActFormat::Q8_K] {
            for level in IsaLevel::present() {
                assert!(octets(format, level) == octets(format, IsaLevel::Portable), "{format:?} {level}");
            }
        }
    }
}
