//! Every fast product at every level of this processor, against its specification and against itself in other
//! batches.

use weights::DType;

use super::packed_activations::PackedActivations;
use super::*;
use crate::cpu::isa::IsaLevel;

/// A deterministic generator of numbers within -1..1.
struct TestNoise(u64);

impl TestNoise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    fn many(&mut self, n: usize) -> Vec<f32> {
        // Some larger ones, as in real activations.
        (0..n).map(|i| self.next() * if i % 37 == 5 { 8.0 } else { 1.0 }).collect()
    }
}

/// Fills blocks of a format without encoder: arbitrary bytes, but a finite d that is not negative.
fn fill_random_blocks(dtype: DType, noise: &mut TestNoise, bytes: &mut [u8]) {
    bytes.fill_with(|| ((noise.next() + 1.0) * 128.0) as u8);
    let last_of_factor = if dtype == DType::IQ1_M { 55 } else { 1 };
    for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
        block[last_of_factor] &= 0x3F;
    }
}

/// Weights and activations of one product.
struct MatMulCase {
    k: usize,
    row_bytes: usize,
    weights: Vec<u8>,
    x: Vec<f32>,
}

impl MatMulCase {
    fn new(dtype: DType, n_rows: usize, n_tokens: usize, k: usize) -> Self {
        let mut noise = TestNoise(((n_rows * 131 + n_tokens) * 131 + k) as u64);
        let row_bytes = dtype.row_bytes(k);
        let mut weights = vec![0; n_rows * row_bytes];
        match dtype.encoder() {
            Some(encode) => encode(&noise.many(n_rows * k), &mut weights),
            None => fill_random_blocks(dtype, &mut noise, &mut weights),
        }
        Self { k, row_bytes, weights, x: noise.many(n_tokens * k) }
    }

    fn n_rows(&self) -> usize {
        self.weights.len() / self.row_bytes
    }

    /// Computes (tokens, rows) by the entry's kernel, over the given weight rows and tokens alone.
    fn run_kernel(
        &self,
        row: &MatMulRow,
        rows: std::ops::Range<usize>,
        tokens: std::ops::Range<usize>,
    ) -> Vec<f32> {
        let (k, n) = (self.k, tokens.len());
        let x = &self.x[tokens.start * k..tokens.end * k];
        let bytes = &self.weights[rows.start * self.row_bytes..rows.end * self.row_bytes];
        let w = WeightRows { bytes, row_bytes: self.row_bytes, k, next: &[] };
        let mut out = vec![f32::NAN; n * rows.len()];
        let mut tile = OutTile::whole(&mut out, rows.len());
        if row.act == ActivationFormat::F32 {
            (row.kernel)(w, Activations::floats(x, k), &mut tile);
            return out;
        }
        let (n_scales, n_sums) = (row.act.n_scales(k), row.act.n_sums(k));
        let (mut q, mut scales, mut sums) = (vec![0; n * k], vec![0.0; n * n_scales], vec![0; n * n_sums]);
        for t in 0..n {
            (row.quantize)(
                &x[t * k..(t + 1) * k],
                &mut q[t * k..(t + 1) * k],
                &mut scales[t * n_scales..(t + 1) * n_scales],
                &mut sums[t * n_sums..(t + 1) * n_sums],
            );
        }
        let acts = Activations {
            n_tokens: n,
            k,
            x: &[],
            q: &q,
            scales: &scales,
            sums: &sums,
            packed: PackedActivationsRef::None,
        };
        let packed = PackedActivations::pack(row.act, row.level, &acts).expect("memory for a few tokens");
        let acts = Activations { packed: packed.all(), ..acts };
        (row.kernel)(w, acts, &mut tile);
        out
    }

    /// Returns the activations after quantization by the entry's function.
    fn quantized(&self, row: &MatMulRow) -> Vec<f32> {
        if row.act == ActivationFormat::F32 {
            return self.x.clone();
        }
        let k = self.k;
        let mut quantized = Vec::new();
        for x in self.x.chunks_exact(k) {
            let (mut q, mut scales) = (vec![0; k], vec![0.0; row.act.n_scales(k)]);
            (row.quantize)(x, &mut q, &mut scales, &mut vec![0; row.act.n_sums(k)]);
            quantized
                .extend(q.iter().enumerate().map(|(i, &q)| f32::from(q) * scales[i / row.act.block_len()]));
        }
        quantized
    }

    /// Computes (tokens, rows) from decoded weights and `x` in double precision, with the sum of the
    /// magnitudes.
    fn expected(&self, dtype: DType, x: &[f32]) -> Vec<(f64, f64)> {
        let codec = dtype.codec().expect("fast formats have codecs");
        let mut weights = vec![0.0; self.n_rows() * self.k];
        (codec.decode)(&self.weights, &mut weights);
        let mut out = Vec::new();
        for x in x.chunks_exact(self.k) {
            for w in weights.chunks_exact(self.k) {
                let products = || x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w));
                out.push((products().sum(), products().map(f64::abs).sum()));
            }
        }
        out
    }
}

/// Tolerance against the product of decoded weights and quantized activations. Only the rounding of float
/// sums remains: below 2⁻²⁰ of the sum of magnitudes for chains of a few hundred additions.
const ROUNDING: f64 = 1e-6;

/// Returns every table entry whose level this processor has.
fn rows() -> impl Iterator<Item = &'static MatMulRow> {
    MATMULS.iter().copied().flatten().filter(|row| row.level.is_present())
}

fn widths(row: &MatMulRow) -> Vec<usize> {
    match row.act {
        ActivationFormat::F32 => vec![1, 7, 16, 33, 256, 1000],
        ActivationFormat::Q8_0 => vec![32, 64, 256, 288, 1120],
        ActivationFormat::Q8_K => vec![256, 512, 1280],
    }
}

#[test]
fn every_entry_matches_its_specification_within_rounding() {
    for row in rows() {
        for k in widths(row) {
            for (n_rows, n_tokens) in [(1, 1), (16, 1), (35, 1), (16, 2), (20, 5), (33, 13), (16, 70)] {
                let case = MatMulCase::new(row.dtype, n_rows, n_tokens, k);
                let got = case.run_kernel(row, 0..n_rows, 0..n_tokens);
                let expected = case.expected(row.dtype, &case.quantized(row));
                for (i, (got, (expected, size))) in got.iter().zip(expected).enumerate() {
                    let error = (f64::from(*got) - expected).abs();
                    let (dtype, level) = (row.dtype, row.level);
                    assert!(
                        error <= ROUNDING * size + 1e-30,
                        "{dtype} {level} k={k} rows={n_rows} tokens={n_tokens} at {i}: {got} for {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_product_has_the_same_bits_in_any_batch() {
    for row in rows() {
        for k in widths(row) {
            let case = MatMulCase::new(row.dtype, 50, 67, k);
            let all = case.run_kernel(row, 0..50, 0..67);
            for (rows, tokens) in [
                (0..50, 3..4),
                (16..33, 0..67),
                (7..8, 60..67),
                (1..50, 10..14),
                (49..50, 66..67),
                (5..21, 1..3),
            ] {
                let part = case.run_kernel(row, rows.clone(), tokens.clone());
                for (t, token) in tokens.clone().enumerate() {
                    for (r, weight_row) in rows.clone().enumerate() {
                        let (a, b) = (part[t * rows.len() + r], all[token * 50 + weight_row]);
                        let (dtype, level) = (row.dtype, row.level);
                        assert_eq!(
                            a.to_bits(),
                            b.to_bits(),
                            "{dtype} {level} k={k}: row {weight_row}, token {token} of {rows:?} × {tokens:?}"
                        );
                    }
                }
            }
        }
    }
}

/// More activations than the L2 cache holds: rows meet one slab after another.
#[test]
fn gemm_over_several_slabs_equals_each_token_alone() {
    let (k, n_tokens) = (2560, 256);
    for row in rows() {
        let case = MatMulCase::new(row.dtype, 33, n_tokens, k);
        for n_rows in [1, 33] {
            let all = case.run_kernel(row, 0..n_rows, 0..n_tokens);
            for t in [0, 100, n_tokens - 1] {
                let alone = case.run_kernel(row, 0..n_rows, t..t + 1).into_iter().map(f32::to_bits);
                let of_all = all[t * n_rows..(t + 1) * n_rows].iter().map(|x| x.to_bits());
                assert!(alone.eq(of_all), "{} {} rows={n_rows}: token {t}", row.dtype, row.level);
            }
        }
    }
}

/// Dot-product instructions change the speed, not the bits.
#[test]
fn levels_that_differ_in_speed_only_give_the_same_bits() {
    let twins = [
        (IsaLevel::AvxVnni, IsaLevel::Avx2),
        (IsaLevel::NeonDot, IsaLevel::Neon),
        (IsaLevel::NeonI8mm, IsaLevel::Neon),
    ];
    for row in rows() {
        let Some((_, plain)) = twins.iter().find(|(level, _)| *level == row.level) else { continue };
        let plain = find_kernel(row.dtype, *plain).expect("a format has both levels or neither");
        for k in widths(row) {
            // Full packs, and remainders of four, two and one.
            for n_tokens in [1, 2, 3, 13, 23] {
                let case = MatMulCase::new(row.dtype, 20, n_tokens, k);
                let all = |row| case.run_kernel(row, 0..20, 0..n_tokens);
                let bits = |row| all(row).into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert_eq!(bits(row), bits(plain), "{} {} k={k} tokens={n_tokens}", row.dtype, row.level);
            }
        }
    }
}

/// Returns where a block stores its integers.
fn integers(dtype: DType, n_bytes: usize) -> std::ops::Range<usize> {
    match dtype {
        DType::MXFP4 => 1..n_bytes,
        DType::Q4_1 | DType::Q5_1 => 4..n_bytes,
        _ if dtype.block_len() == 32 => 2..n_bytes,
        DType::IQ4_XS => 8..n_bytes,
        DType::IQ1_M => 0..n_bytes - 8,
        _ if dtype.encoder().is_none() => 2..n_bytes,
        DType::Q4_K | DType::Q5_K => 16..n_bytes,
        DType::Q2_K => 16..n_bytes - 4,
        DType::Q3_K => 0..n_bytes - 14,
        _ => 0..n_bytes - 18,
    }
}

#[test]
fn extreme_weights_do_not_saturate() {
    for row in rows().filter(|row| row.act != ActivationFormat::F32) {
        let k = 512;
        let mut case = MatMulCase::new(row.dtype, 16, 9, k);
        // Set or clear all bits of the integers; scales stay as they are.
        for fill in [0x00, 0x7F, 0x80, 0xFF] {
            for block in case.weights.chunks_exact_mut(row.dtype.block_bytes()) {
                let integers = integers(row.dtype, block.len());
                block[integers].fill(fill);
            }
            case.x.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 2 == 0 { 1.0 } else { -1.0 });
            case.x[..k].fill(1.0);
            case.x[k..2 * k].fill(-1.0);
            let got = case.run_kernel(row, 0..16, 0..9);
            for (got, (expected, size)) in got.iter().zip(case.expected(row.dtype, &case.quantized(row))) {
                let error = (f64::from(*got) - expected).abs();
                assert!(
                    error <= ROUNDING * size,
                    "{} {} {fill:#x}: {got} for {expected}",
                    row.dtype,
                    row.level
                );
            }
        }
    }
}

#[test]
fn the_common_dtypes_have_a_row_at_each_vector_level() {
    use DType::{
        BF16, F16, F32, IQ4_NL, IQ4_XS, MXFP4, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0,
    };
    let (of_integers, of_floats): (&[IsaLevel], &[IsaLevel]) = match cfg!(target_arch = "aarch64") {
        true => (&[IsaLevel::Neon, IsaLevel::NeonDot, IsaLevel::NeonI8mm], &[IsaLevel::Neon]),
        false => {
            (&[IsaLevel::Avx2, IsaLevel::AvxVnni, IsaLevel::Avx512], &[IsaLevel::Avx2, IsaLevel::Avx512])
        }
    };
    let floats = [F32, F16, BF16];
    let by_32 = [Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4];
    let by_256 = [Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_XS];
    for dtype in floats.into_iter().chain(by_32).chain(by_256) {
        for level in if floats.contains(&dtype) { of_floats } else { of_integers } {
            assert_eq!(find_kernel(dtype, *level).map(|row| row.level), Some(*level), "{dtype}");
        }
        assert!(find_kernel(dtype, IsaLevel::Portable).is_none());
    }
}

#[test]
fn the_generic_product_is_right_for_every_format_that_can_be_read() {
    use crate::ops::dot;
    let (k, n_rows, n_tokens) = (512, 3, 2);
    for row in weights::dtype::TABLE {
        let Some(codec) = &row.codec else { continue };
        let mut noise = TestNoise(row.block_bytes as u64);
        let x = noise.many(n_tokens * k);
        let row_bytes = row.dtype.row_bytes(k);
        // Bytes below 0x3C: no scale of any format is infinite.
        let bytes: Vec<u8> = (0..n_rows * row_bytes).map(|_| ((noise.next() + 1.0) * 29.0) as u8).collect();
        let mut weights = vec![0.0; n_rows * k];
        (codec.decode)(&bytes, &mut weights);
        for level in IsaLevel::present() {
            let mut out = vec![f32::NAN; n_tokens * n_rows];
            let w = WeightRows { bytes: &bytes, row_bytes, k, next: &[] };
            let mut tile = OutTile::whole(&mut out, n_rows);
            generic::rows(dot::LEVELS.at(level), codec, w, &x, &mut vec![0.0; k], &mut tile);
            for (i, got) in out.iter().enumerate() {
                let (x, w) = (&x[i / n_rows * k..][..k], &weights[i % n_rows * k..][..k]);
                let products = || x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w));
                let (sum, size): (f64, f64) = (products().sum(), products().map(f64::abs).sum());
                let error = (f64::from(*got) - sum).abs();
                assert!(error <= ROUNDING * size, "{} {level}: {got} for {sum}", row.name);
            }
        }
    }
}
