//! x · Wᵀ for every block format. This file is the seam between the executor, which splits work and stores
//! activations, and the fast kernels, a file per dtype; `generic` is right for every dtype with a codec.
//!
//! Contract of a fast kernel: each output is one dot product whose order of additions depends on `k` alone, never on
//! how many rows or tokens are in the call. That is what makes logits independent of batching and threads.

use weights::DType;

use crate::cpu::isa::IsaLevel;

#[cfg(feature = "gpu")]
pub mod cooperative;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
mod dispatch_arm;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // what has a way of its own is prefetch_bytes for it as any other
mod dispatch_x86;
#[cfg(feature = "gpu")]
pub mod gated;
pub mod generic;
#[cfg(feature = "gpu")]
pub mod gpu_packing;
#[allow(unsafe_code)] // that packed are plain numbers
pub mod packed_activations;
#[cfg(test)]
mod parity_tests;
#[cfg(feature = "gpu")]
pub mod partial_sums;
#[cfg(feature = "gpu")]
pub mod tile;

macro_rules! fast_paths {
    ($($module:ident)*) => {
        $(
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            #[allow(unsafe_code)] // SIMD: each block argues its safety, the traits say what they ask for
            #[allow(clippy::missing_safety_doc, clippy::needless_range_loop)] // counted loops over registers unroll
            mod $module;
        )*
    };
}
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod gemv_avx2_rows8;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod gemv_avx512;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod gemv_avx512_block256;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod gemv_avx512_block32;
fast_paths! { simd panel quantize smmla blocks32 blocks256 sums256 sums32 floats q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq_codebook iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq4_nl iq4_xs mxfp4 f32 f16 bf16 }

pub use crate::cpu::disjoint_slices::OutTile;
use packed_activations::PackedActivationsRef;

/// How activations are stored for a dot product with a weight dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)] // as the formats are called
pub enum ActivationFormat {
    /// as they are
    F32,
    /// blocks of 32: i8 quants, f32 scale, i32 sum of the quants
    Q8_0,
    /// blocks of 256: i8 quants, f32 scale; for each 32 the sums of two times 16 quants, then for each 64 those of two
    /// times 32, an i16 each
    Q8_K,
}

impl ActivationFormat {
    /// Elements that share a scale.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Q8_0 => 32,
            Self::Q8_K => 256,
        }
    }

    /// Scales in a row of `k` elements.
    pub const fn n_scales(self, k: usize) -> usize {
        match self {
            Self::F32 => 0,
            Self::Q8_0 | Self::Q8_K => k / self.block_len(),
        }
    }

    /// Sums of quants, or pairs of them, in a row of `k` elements.
    pub const fn n_sums(self, k: usize) -> usize {
        match self {
            Self::F32 => 0,
            Self::Q8_0 => k / 32,
            Self::Q8_K => k / 256 * 12,
        }
    }
}

/// Activations of `n_tokens` rows, structure of arrays. Slices of another format than the kernel's own are empty.
/// Every row of `q` starts at a multiple of 64 bytes when `k` is a multiple of 64.
#[derive(Clone, Copy, Debug)]
pub struct Activations<'a> {
    pub n_tokens: usize,
    pub k: usize,
    /// (n_tokens, k), `ActivationFormat::F32` only
    pub x: &'a [f32],
    /// (n_tokens, k), within -127..=127
    pub q: &'a [i8],
    /// (n_tokens, n_scales(k)): x ≈ q · scale
    pub scales: &'a [f32],
    /// (n_tokens, n_sums(k))
    pub sums: &'a [i32],
    /// the same of every whole eight tokens
    pub packed: PackedActivationsRef<'a>,
}

impl<'a> Activations<'a> {
    /// Rows of `k` floats.
    pub fn floats(x: &'a [f32], k: usize) -> Self {
        let n_tokens = x.len() / k;
        Self { n_tokens, k, x, q: &[], scales: &[], sums: &[], packed: PackedActivationsRef::None }
    }

    /// Some of the tokens.
    pub fn tokens(&self, range: std::ops::Range<usize>) -> Self {
        fn part<T>(all: &[T], n: usize, range: std::ops::Range<usize>) -> &[T] {
            let width = all.len() / n;
            &all[range.start * width..range.end * width]
        }
        let n = self.n_tokens;
        Self {
            n_tokens: range.len(),
            k: self.k,
            x: part(self.x, n, range.clone()),
            q: part(self.q, n, range.clone()),
            scales: part(self.scales, n, range.clone()),
            sums: part(self.sums, n, range.clone()),
            packed: self.packed.tokens(&range, self.k),
        }
    }

    /// (k) of one token
    pub fn x_row(&self, t: usize) -> &'a [f32] {
        &self.x[t * self.k..(t + 1) * self.k]
    }

    /// (k) of one token
    pub fn q_row(&self, t: usize) -> &'a [i8] {
        &self.q[t * self.k..(t + 1) * self.k]
    }

    /// scales of one token
    pub fn scale_row(&self, t: usize) -> &'a [f32] {
        let n = self.scales.len() / self.n_tokens;
        &self.scales[t * n..(t + 1) * n]
    }

    /// sums of one token
    pub fn sum_row(&self, t: usize) -> &'a [i32] {
        let n = self.sums.len() / self.n_tokens;
        &self.sums[t * n..(t + 1) * n]
    }
}

/// Some consecutive rows of a weight matrix, as blocks.
#[derive(Clone, Copy, Debug)]
pub struct WeightRows<'a> {
    /// (n_rows, row_bytes)
    pub bytes: &'a [u8],
    pub row_bytes: usize,
    /// elements of a row; a multiple of the dtype's block length by validation
    pub k: usize,
    /// what the thread is likely to read next, so that it can be prefetch_bytes for in time; empty where that isn't known
    pub next: &'a [u8],
}

impl<'a> WeightRows<'a> {
    pub fn n_rows(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }

    pub fn row(&self, r: usize) -> &'a [u8] {
        &self.bytes[r * self.row_bytes..(r + 1) * self.row_bytes]
    }
}

/// Quantises one row: `x` (k) → `q` (k), `scales` (n_scales(k)), `sums` (n_sums(k)).
pub type QuantizeFn = fn(x: &[f32], q: &mut [i8], scales: &mut [f32], sums: &mut [i32]);

/// `out[(t, r)] = row r of w · token t`, for every row of `w` and every token of `acts`; the executor calls it with
/// as many rows and tokens as keep caches warm, and adds biases itself.
pub type MatMulKernel = fn(w: WeightRows, acts: Activations, out: &mut OutTile);

/// One fast path. Safe to call only where `level` has been detected: look rows up with `find`.
pub struct MatMulRow {
    pub dtype: DType,
    pub level: IsaLevel,
    pub act: ActivationFormat,
    /// not called for `ActivationFormat::F32`
    pub quantize: QuantizeFn,
    pub kernel: MatMulKernel,
}

/// Every fast path there is; a new one is registered here.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub static MATMULS: &[&[MatMulRow]] = &[
    q8_0::ROWS,
    q4_0::ROWS,
    q4_1::ROWS,
    q5_0::ROWS,
    q5_1::ROWS,
    q2_k::ROWS,
    q3_k::ROWS,
    q4_k::ROWS,
    q5_k::ROWS,
    q6_k::ROWS,
    iq1_s::ROWS,
    iq1_m::ROWS,
    iq2_xxs::ROWS,
    iq2_xs::ROWS,
    iq2_s::ROWS,
    iq3_xxs::ROWS,
    iq3_s::ROWS,
    iq4_nl::ROWS,
    iq4_xs::ROWS,
    mxfp4::ROWS,
    f32::ROWS,
    f16::ROWS,
    bf16::ROWS,
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub static MATMULS: &[&[MatMulRow]] = &[];

/// The best row for a dtype at a level; None means the generic path.
pub fn find_kernel(dtype: DType, level: IsaLevel) -> Option<&'static MatMulRow> {
    let rows = MATMULS.iter().copied().flatten();
    rows.filter(|r| r.dtype == dtype && r.level <= level).max_by_key(|r| r.level)
}
