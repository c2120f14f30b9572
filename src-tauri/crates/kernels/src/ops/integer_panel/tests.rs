//! Tests of kernels of integers against the scalar one and against products in f32.

use super::*;

/// A reproducible number between -1 and 1.
fn number(i: usize) -> f32 {
    let z = (i as u32 + 1).wrapping_mul(0x9e37_79b9);
    let z = (z ^ (z >> 15)).wrapping_mul(0x85eb_ca6b);
    (z >> 8) as f32 / (1 << 23) as f32 - 1.0
}

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| number(i + seed * 100_003)).collect()
}

/// Quantized rows of `a` (n_a, k).
fn rows(level: IsaLevel, a: &[f32], k: usize) -> (Vec<i16>, Vec<f32>) {
    let width = k.next_multiple_of(PAIR);
    let mut q = vec![7; a.len() / k * width];
    let of = a.chunks_exact(k).zip(q.chunks_exact_mut(width));
    let scales = of.map(|(a, q)| QUANTIZE_A.at(level)(a, q)).collect();
    (q, scales)
}

const SHAPES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (6, 256, 64), (7, 33, 40), (13, 100, 17), (20, 255, 16), (3, 2, 63)];

#[test]
fn every_kernel_returns_the_bits_of_the_scalar() {
    for (i, (n_a, k, n)) in SHAPES.into_iter().enumerate() {
        let (a, b) = (numbers(n_a * k, 1), numbers(k * (n + 3), 2));
        let n_pairs = k.div_ceil(PAIR);
        let shape = IntegerPanelShape {
            n_a,
            n_pairs,
            n,
            a_stride: n_pairs * PAIR,
            scale_stride: 1,
            c_stride: n + 2,
            output: if i % 2 == 0 { PanelOutput::Add } else { PanelOutput::Overwrite },
        };
        let (q, scales) = rows(IsaLevel::Portable, &a, k);
        let (mut packed, mut packed_scales) = (vec![7; n_pairs * STRIP * PAIR], vec![0.0; STRIP]);
        (QUANTIZE_COLUMNS.portable)(&b, n + 3, n, MAX_B, &mut packed, &mut packed_scales);
        let (a, b) = (
            ScaledIntegers { q: &q, scales: &scales },
            ScaledIntegers { q: &packed, scales: &packed_scales },
        );
        let mut want = numbers(n_a * (n + 2), 3);
        scalar(shape, a, b, &mut want);
        for level in IsaLevel::present() {
            let Some(multiply) = find(level) else { continue };
            let mut got = numbers(n_a * (n + 2), 3);
            multiply(shape, a, b, &mut got);
            assert_eq!(want, got, "{level}: {n_a} rows, {k} products, {n} columns");
        }
    }
}

/// The largest integers of a whole tile do not overflow.
#[test]
fn the_largest_sum_fits() {
    let (a, b) = (vec![-3.0; K_TILE], vec![5.0; K_TILE]);
    let (q, scales) = rows(IsaLevel::Portable, &a, K_TILE);
    let (mut packed, mut packed_scales) = (vec![0; K_TILE * STRIP], vec![0.0; STRIP]);
    (QUANTIZE_COLUMNS.portable)(&b, 1, 1, MAX_B, &mut packed, &mut packed_scales);
    let n_pairs = K_TILE / PAIR;
    let shape = IntegerPanelShape {
        n_a: 1,
        n_pairs,
        n: 1,
        a_stride: K_TILE,
        scale_stride: 1,
        c_stride: 1,
        output: PanelOutput::Add,
    };
    let (a, b) =
        (ScaledIntegers { q: &q, scales: &scales }, ScaledIntegers { q: &packed, scales: &packed_scales });
    let all = IsaLevel::present().filter_map(find).chain([scalar as MultiplyIntegerPanel]);
    for multiply in all {
        let mut c = [1.0];
        multiply(shape, a, b, &mut c);
        assert!((c[0] - (1.0 - 15.0 * K_TILE as f32)).abs() < 1e-2, "{}", c[0]);
    }
}

/// Half a unit of the largest element, in each operand; every level has the same integers.
#[test]
fn quantization_is_within_half_a_unit() {
    for n in [1, 2, 31, 64, 255, 256] {
        let mut x = numbers(n, 4);
        x[n / 2] = -3.5;
        for level in IsaLevel::present() {
            for (quantize, limit) in [(QUANTIZE_A.at(level), MAX_A), (QUANTIZE_B.at(level), MAX_B)] {
                let mut q = vec![9; n + 1];
                let scale = quantize(&x, &mut q);
                assert_eq!((scale, q[n]), (3.5 / limit, 0), "{level}");
                for (x, q) in x.iter().zip(&q) {
                    assert!((x - f32::from(*q) * scale).abs() <= 0.501 * scale, "{level}: {x} {q}");
                }
            }
        }
    }
}

#[test]
fn columns_are_quantized_like_rows() {
    for (k, n) in [(1usize, 1), (2, 64), (33, 17), (256, 40)] {
        let (stride, n_pairs) = (n + 5, k.div_ceil(PAIR));
        // The last row may end with the matrix.
        let x = numbers(k * stride - 5, 6);
        for level in IsaLevel::present() {
            let (mut q, mut scales) = (vec![9; n_pairs * STRIP * PAIR], vec![9.0; STRIP]);
            QUANTIZE_COLUMNS.at(level)(&x, stride, n, MAX_B, &mut q, &mut scales);
            for j in 0..STRIP {
                let column: Vec<f32> = (0..k).map(|i| if j < n { x[i * stride + j] } else { 0.0 }).collect();
                let mut want = vec![0; n_pairs * PAIR];
                let scale = (QUANTIZE_B.portable)(&column, &mut want);
                let found: Vec<i16> =
                    q.chunks_exact(STRIP * PAIR).flat_map(|q| q[j * PAIR..][..PAIR].to_vec()).collect();
                assert_eq!((want, scale), (found, scales[j]), "{level}: column {j} of {n}, {k} rows");
            }
        }
    }
}

#[test]
fn what_is_not_finite_stays_so() {
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut q = [0; 2];
        for level in IsaLevel::present() {
            assert!(!QUANTIZE_A.at(level)(&[1.0, x], &mut q).is_finite(), "{level}: {x}");
        }
    }
    assert_eq!((QUANTIZE_A.portable)(&[0.0, 1e-38], &mut [1, 1]), 0.0);
}

/// The shorter the products, the larger the integers.
#[test]
fn limits_fill_32_bits() {
    for (k, expected) in [(256, 2048.0), (128, 4097.0), (64, 8194.0), (1, 32767.0), (0, 32767.0)] {
        let limit = limit_of_b(k);
        assert_eq!(limit, expected, "{k} products");
        assert!(k as f64 * f64::from(MAX_A) * f64::from(limit) <= f64::from(i32::MAX), "{k} products");
    }
}
