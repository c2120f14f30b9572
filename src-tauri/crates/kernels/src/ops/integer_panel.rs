//! A small matrix multiplication with integers of 16 bits: c += (a · b) · scales for one tile of k. Rows of a and columns
//! of b have a scale per tile. The error is about that of bfloat16: of a row of a at most as much, in norm.
//!
//! Guarantees: sums of integers are exact, so that every kernel returns the same bits.

use crate::cpu::isa::{IsaLevel, Mac, levels};

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // SIMD: each block argues its safety
#[allow(clippy::needless_range_loop)] // counted loops over registers unroll
mod avx512;
#[cfg(test)]
mod tests;

/// Most elements of k that share a scale: the sum of as many products fits into 32 bits.
pub const K_TILE: usize = 256;
/// Columns of b that lie side by side.
pub const STRIP: usize = 64;
/// Elements of k that lie side by side.
pub const PAIR: usize = 2;
/// Largest integer in a. Activations and gradients have more outliers than weights.
const MAX_A: f32 = 4095.0;
/// Largest integer in b.
pub const MAX_B: f32 = 2047.0;
const _: () = assert!(K_TILE as u64 * MAX_A as u64 * MAX_B as u64 <= i32::MAX as u64);

/// Shape and strides of a product of one tile of k.
#[derive(Clone, Copy, Debug)]
pub struct IntegerPanelShape {
    /// rows of a and c
    pub n_a: usize,
    /// pairs of elements in a row of a and a column of b, at most `K_TILE / PAIR`
    pub n_pairs: usize,
    /// columns of c, at most `STRIP`
    pub n: usize,
    /// integers between rows of a
    pub a_stride: usize,
    /// floats between the scales of rows of a
    pub scale_stride: usize,
    /// floats between rows of c
    pub c_stride: usize,
    /// what becomes of c
    pub output: PanelOutput,
}

/// What becomes of the numbers that are in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelOutput {
    /// they are replaced
    Overwrite,
    /// the product is added to them
    Add,
}

/// Integers with their scales: x ≈ q · scale.
#[derive(Clone, Copy, Debug)]
pub struct ScaledIntegers<'a> {
    /// a: (n_a, n_pairs · PAIR); b: (n_pairs, STRIP, PAIR)
    pub q: &'a [i16],
    /// a: one per row; b: (STRIP)
    pub scales: &'a [f32],
}

/// c = or += (a · b) · scales
pub type MultiplyIntegerPanel =
    fn(shape: IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &mut [f32]);

/// c = or += (a · b) · scales, element by element
pub fn scalar(shape: IntegerPanelShape, a: ScaledIntegers, b: ScaledIntegers, c: &mut [f32]) {
    for i in 0..shape.n_a {
        for j in 0..shape.n {
            let mut sum = 0i32;
            for k in 0..shape.n_pairs * PAIR {
                let b = b.q[k / PAIR * (STRIP * PAIR) + j * PAIR + k % PAIR];
                sum += i32::from(a.q[i * shape.a_stride + k]) * i32::from(b);
            }
            let c = &mut c[i * shape.c_stride + j];
            let before = match shape.output {
                PanelOutput::Overwrite => 0.0,
                PanelOutput::Add => *c,
            };
            *c = (sum as f32).mul_add(a.scales[i * shape.scale_stride] * b.scales[j], before);
        }
    }
}

/// Returns the kernel of a level if it is faster than a product in f32 there. NEON multiplies as many integers of 16 bits
/// per instruction as floats.
pub fn find(level: IsaLevel) -> Option<MultiplyIntegerPanel> {
    match level {
        #[cfg(target_arch = "x86_64")]
        IsaLevel::Avx2 => Some(avx2::multiply),
        #[cfg(target_arch = "x86_64")]
        IsaLevel::AvxVnni => Some(avx2::multiply_vnni),
        #[cfg(target_arch = "x86_64")]
        IsaLevel::Avx512 => Some(avx512::multiply),
        _ => None,
    }
}

/// 1.5 · 2^23: adding it rounds to the nearest integer in the low mantissa bits.
const ROUND: f32 = 12_582_912.0;
/// Below it the reciprocal of a scale may be infinite; such elements become 0.
const SMALLEST: f32 = 1e-30;

/// Returns the scale of elements whose largest magnitude has the bits `largest`, and its reciprocal. An infinite or
/// undefined element makes the scale so.
#[inline(always)]
fn scale_of(largest: u32, limit: f32) -> (f32, f32) {
    let largest = f32::from_bits(largest);
    if largest < SMALLEST {
        return (0.0, 0.0);
    }
    (largest / limit, limit / largest)
}

/// The integer nearest to x · inverse, in 16 bits.
#[inline(always)]
fn round(x: f32, inverse: f32) -> u32 {
    (x * inverse + ROUND).to_bits() & 0xffff
}

/// Lanes in which a largest magnitude is found.
const LANES: usize = 16;

#[inline(always)]
fn largest(x: &[f32]) -> u32 {
    let mut lanes = [0u32; LANES];
    let chunks = x.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            // Magnitudes are in the order of their bits; those of infinity and NaN are above all others.
            lanes[i] = lanes[i].max(chunk[i].to_bits() & 0x7fff_ffff);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(tail) {
        *lane = (*lane).max(x.to_bits() & 0x7fff_ffff);
    }
    lanes.into_iter().fold(0, u32::max)
}

#[inline(always)]
fn quantize(x: &[f32], limit: f32, q: &mut [i16]) -> f32 {
    let (scale, inverse) = scale_of(largest(x), limit);
    for (q, x) in q.iter_mut().zip(x) {
        *q = round(*x, inverse) as i16;
    }
    q[x.len()..].fill(0);
    scale
}

/// Quantizes a row of one tile: x → q, padded with zeros. Returns the scale.
pub type QuantizeRow = fn(x: &[f32], q: &mut [i16]) -> f32;

#[inline(always)]
fn row_of_a<M: Mac>(x: &[f32], q: &mut [i16]) -> f32 {
    quantize(x, MAX_A, q)
}

#[inline(always)]
fn column_of_b<M: Mac>(x: &[f32], q: &mut [i16]) -> f32 {
    quantize(x, MAX_B, q)
}

levels!(
    /// Quantizes a row of a.
    pub QUANTIZE_A = row_of_a(x: &[f32], q: &mut [i16]) -> f32);
levels!(
    /// Quantizes a column of b that is stored as a row.
    pub QUANTIZE_B = column_of_b(x: &[f32], q: &mut [i16]) -> f32);

/// Quantizes columns of one tile: x (rows, stride) from its first element on → q ((rows + 1) / 2, STRIP, PAIR) and
/// scales (STRIP), padded with zeros. `n`: columns. `limit`: the largest integer, as `limit_of_b` returns.
pub type QuantizeColumns =
    fn(x: &[f32], stride: usize, n: usize, limit: f32, q: &mut [i16], scales: &mut [f32]);

/// Returns the largest integer in b for products of `k` elements, so that their sum fits into 32 bits. `MAX_B` for a
/// whole tile.
pub fn limit_of_b(k: usize) -> f32 {
    let limit = f64::from(i32::MAX) / (f64::from(MAX_A) * k.max(1) as f64);
    (limit.floor() as f32).clamp(MAX_B, i16::MAX.into())
}

#[inline(always)]
fn columns<M: Mac>(x: &[f32], stride: usize, n: usize, limit: f32, q: &mut [i16], scales: &mut [f32]) {
    let mut largest = [0u32; STRIP];
    for row in x.chunks(stride) {
        for (largest, x) in largest.iter_mut().zip(&row[..n]) {
            *largest = (*largest).max(x.to_bits() & 0x7fff_ffff);
        }
    }
    let mut inverse = [0.0; STRIP];
    for j in 0..STRIP {
        (scales[j], inverse[j]) = scale_of(largest[j], limit);
    }
    for (rows, q) in x.chunks(PAIR * stride).zip(q.chunks_exact_mut(STRIP * PAIR)) {
        let (first, second) = rows.split_at(stride.min(rows.len()));
        let (mut of_first, mut of_second) = ([0.0; STRIP], [0.0; STRIP]);
        of_first[..n].copy_from_slice(&first[..n]);
        if !second.is_empty() {
            of_second[..n].copy_from_slice(&second[..n]);
        }
        for (j, q) in q.chunks_exact_mut(PAIR).enumerate() {
            q[0] = round(of_first[j], inverse[j]) as i16;
            q[1] = round(of_second[j], inverse[j]) as i16;
        }
    }
}

levels!(
    /// Quantizes columns of b.
    pub QUANTIZE_COLUMNS = columns(
        x: &[f32], stride: usize, n: usize, limit: f32, q: &mut [i16], scales: &mut [f32]));
