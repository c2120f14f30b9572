//! x · Wᵀ for every block format: the interface between the executor and the fast kernels, one file per
//! dtype.
//! `generic` handles every dtype that has a codec.
//!
//! Contract of a fast kernel: each output is one dot product whose order of additions depends on `k` alone,
//! never on
//! the number of rows or tokens in the call. This makes logits independent of batching and threads.

use weights::DType;

use crate::cpu::isa::IsaLevel;

#[cfg(feature = "gpu")]
pub mod cooperative;
pub mod decode_floats;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
mod dispatch_arm;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // special paths are unsafe fns like the others
mod dispatch_x86;
#[cfg(feature = "gpu")]
pub mod gated;
pub mod generic;
#[cfg(feature = "gpu")]
pub mod gpu_packing;
#[allow(unsafe_code)] // declares the packed blocks plain old data
pub mod packed_activations;
#[cfg(test)]
mod parity_tests;
#[cfg(feature = "gpu")]
pub mod partial_sums;
pub mod product;
#[cfg(feature = "gpu")]
mod staged_row;
#[cfg(feature = "gpu")]
pub mod tile;

macro_rules! fast_paths {
    ($($module:ident)*) => {
        $(
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            #[allow(unsafe_code)] // SIMD: each block argues its safety, the traits state the requirements
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
fast_paths! { simd panel quantize smmla blocks32 blocks256 floats q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq_codebook iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq4_nl iq4_xs mxfp4 f32 f16 bf16 }

pub use crate::cpu::disjoint_slices::OutTile;
#[cfg(target_arch = "aarch64")]
use dispatch_arm as dispatch;
#[cfg(target_arch = "x86_64")]
use dispatch_x86 as dispatch;
use packed_activations::PackedActivationsRef;

/// How activations are stored for a dot product with a weight dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)] // the names of ggml
pub enum ActivationFormat {
    /// Unquantized floats.
    F32,
    /// Blocks of 32: i8 quants, an f32 scale, the i32 sum of the quants.
    Q8_0,
    /// Blocks of 256: i8 quants, an f32 scale, then twelve pairs of i16 sums. The first eight pairs are sums
    /// of 16 quants, the last four sums of 32.
    Q8_K,
}

impl ActivationFormat {
    /// Returns the number of elements that share a scale.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Q8_0 => 32,
            Self::Q8_K => 256,
        }
    }

    /// Returns the number of scales in a row of `k` elements.
    pub const fn n_scales(self, k: usize) -> usize {
        match self {
            Self::F32 => 0,
            Self::Q8_0 | Self::Q8_K => k / self.block_len(),
        }
    }

    /// Returns the number of `sums` words in a row of `k` elements: one sum (Q8_0) or a pair of sums (Q8_K)
    /// each.
    pub const fn n_sums(self, k: usize) -> usize {
        match self {
            Self::F32 => 0,
            Self::Q8_0 => k / 32,
            Self::Q8_K => k / 256 * 12,
        }
    }
}

/// Activations of `n_tokens` rows as a structure of arrays. Slices that the kernel's format does not use are
/// empty.
/// Every row of `q` starts at a multiple of 64 bytes when `k` is a multiple of 64.
#[derive(Clone, Copy, Debug)]
pub struct Activations<'a> {
    /// Number of rows.
    pub n_tokens: usize,
    /// Elements in a row.
    pub k: usize,
    /// (n_tokens, k), `ActivationFormat::F32` only.
    pub x: &'a [f32],
    /// (n_tokens, k), within -127..=127.
    pub q: &'a [i8],
    /// (n_tokens, n_scales(k)): x ≈ q · scale.
    pub scales: &'a [f32],
    /// (n_tokens, n_sums(k)).
    pub sums: &'a [i32],
    /// The same quants, interleaved for each full pack of eight tokens.
    pub packed: PackedActivationsRef<'a>,
}

impl<'a> Activations<'a> {
    /// Wraps unquantized rows of `k` floats.
    pub fn floats(x: &'a [f32], k: usize) -> Self {
        let n_tokens = x.len() / k;
        Self { n_tokens, k, x, q: &[], scales: &[], sums: &[], packed: PackedActivationsRef::None }
    }

    /// Returns the activations of the tokens in `range`.
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

    /// Returns the floats of token `t`: (k).
    pub fn x_row(&self, t: usize) -> &'a [f32] {
        &self.x[t * self.k..(t + 1) * self.k]
    }

    /// Returns the quants of token `t`: (k).
    pub fn q_row(&self, t: usize) -> &'a [i8] {
        &self.q[t * self.k..(t + 1) * self.k]
    }

    /// Returns the scales of token `t`: (n_scales(k)).
    pub fn scale_row(&self, t: usize) -> &'a [f32] {
        let n = self.scales.len() / self.n_tokens;
        &self.scales[t * n..(t + 1) * n]
    }

    /// Returns the sums of token `t`: (n_sums(k)).
    pub fn sum_row(&self, t: usize) -> &'a [i32] {
        let n = self.sums.len() / self.n_tokens;
        &self.sums[t * n..(t + 1) * n]
    }
}

/// Consecutive rows of a weight matrix, as blocks.
#[derive(Clone, Copy, Debug)]
pub struct WeightRows<'a> {
    /// (n_rows, row_bytes).
    pub bytes: &'a [u8],
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Elements in a row; validated to be a multiple of the dtype's block length.
    pub k: usize,
    /// Bytes that this thread will probably read next, to be prefetched; empty when unknown.
    pub next: &'a [u8],
}

impl<'a> WeightRows<'a> {
    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }

    /// Returns the bytes of row `r`.
    pub fn row(&self, r: usize) -> &'a [u8] {
        &self.bytes[r * self.row_bytes..(r + 1) * self.row_bytes]
    }
}

/// Quantizes one row: `x` (k) → `q` (k), `scales` (n_scales(k)), `sums` (n_sums(k)).
pub type QuantizeFn = fn(x: &[f32], q: &mut [i8], scales: &mut [f32], sums: &mut [i32]);

/// Sets `out[(t, r)]` to row r of `w` times token t, for every row of `w` and every token of `acts`.
/// The executor chooses the number of rows and tokens so that caches stay warm, and adds biases itself.
pub type MatMulKernel = fn(w: WeightRows, acts: Activations, out: &mut OutTile);

/// A fast path: one dtype at one instruction-set level. Sound only where `level` was detected: look entries
/// up with `find_kernel`.
pub struct MatMulRow {
    /// Weight format.
    pub dtype: DType,
    /// Lowest level that can run it.
    pub level: IsaLevel,
    /// Activation format that the kernel reads.
    pub act: ActivationFormat,
    /// Not called for `ActivationFormat::F32`.
    pub quantize: QuantizeFn,
    /// The matrix product.
    pub kernel: MatMulKernel,
}

/// All fast paths; register new ones here.
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
/// No fast paths on other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub static MATMULS: &[&[MatMulRow]] = &[];

/// Returns the best fast path for `dtype` at `level`; `None` means the generic path.
pub fn find_kernel(dtype: DType, level: IsaLevel) -> Option<&'static MatMulRow> {
    let rows = MATMULS.iter().copied().flatten();
    rows.filter(|r| r.dtype == dtype && r.level <= level).max_by_key(|r| r.level)
}
