//! Products without a graph, as training needs them: in both directions and every format, in pieces, and with faults.

use std::sync::Arc;

use kernels::gpu::{GpuContext, GpuOptions, GpuProducts};
use kernels::matmul::product::{Direction, RowProducts, element};
use kernels::*;
use weights::DType;

use crate::common::*;
use crate::device;

/// Sums in another order, as a part of the sum of the sizes of all terms.
const SUMS: f64 = 1e-6;
/// Weights that are stored as f16.
const HALVED: f64 = 5e-4;

/// Checks some rows of a product, all columns of them. Returns the product.
fn check(
    gpu: &mut GpuProducts,
    weight: &Tensor,
    direction: Direction,
    n_rows: usize,
    tolerance: f64,
) -> Vec<f32> {
    let (n_terms, width) = direction.terms_and_width([weight.n_rows(), weight.n_cols()]);
    let mut noise = Random(n_rows as u64);
    let x: Vec<f32> = (0..n_rows * n_terms).map(|_| noise.normal()).collect();
    let mut out = vec![f32::NAN; n_rows * width];
    gpu.multiply(&x, weight, direction, &mut out).unwrap();
    for row in [0, n_rows / 2, n_rows - 1] {
        for column in (0..width).step_by(7).chain([width - 1]) {
            let (expected, size) = element(&x[row * n_terms..][..n_terms], weight, direction, column);
            let found = f64::from(out[row * width + column]);
            let difference = (found - expected).abs();
            assert!(
                difference <= tolerance * size,
                "{:?} {direction:?} {n_rows} rows: {found} at ({row}, {column}), not {expected} of {size}",
                weight.dtype()
            );
        }
    }
    out
}

#[test]
fn every_format_is_multiplied_in_both_directions() {
    let mut gpu = GpuProducts::new(device()).unwrap();
    for dtype in weights::dtype::TABLE.iter().map(|row| row.dtype).filter(|dtype| dtype.encoder().is_some()) {
        let weight = Random(1).tensor(dtype, &[96, 512], 1.0);
        let stored_exactly = kernels::matmul::gpu_packing::is_exact(dtype);
        let tolerance = if stored_exactly { SUMS } else { HALVED };
        for direction in Direction::ALL {
            check(&mut gpu, &weight, direction, 5, tolerance);
        }
    }
}

#[test]
fn any_shape_is_multiplied_and_rows_have_the_same_bits_in_any_number() {
    let mut gpu = GpuProducts::new(device()).unwrap();
    for (n, k) in [(1, 1), (1, 33), (65, 100), (200, 64), (130, 257)] {
        let weight = Random(2).tensor(DType::F32, &[n, k], 1.0);
        for direction in Direction::ALL {
            for n_rows in [1, 64, 131] {
                check(&mut gpu, &weight, direction, n_rows, SUMS);
            }
            let (n_terms, width) = direction.terms_and_width([n, k]);
            let x: Vec<f32> = (0..70 * n_terms).map(|i| (i % 37) as f32 - 18.0).collect();
            let (mut all, mut one) = (vec![0.0; 70 * width], vec![0.0; width]);
            gpu.multiply(&x, &weight, direction, &mut all).unwrap();
            gpu.multiply(&x[69 * n_terms..], &weight, direction, &mut one).unwrap();
            assert_eq!(one, all[69 * width..]);
        }
    }
}

/// Matrices in several buffers, and submissions of a few rows each.
#[test]
fn products_in_pieces_are_those_in_one() {
    let weight = Random(3).tensor(DType::Q8_0, &[700, 320], 1.0);
    let mut whole = GpuProducts::new(device()).unwrap();
    let options = GpuOptions {
        max_binding_bytes: Some(100_000),
        max_submission_cost: Some(100_000),
        precision: Precision::F32,
        ..GpuOptions::default()
    };
    let mut pieces = GpuProducts::new(GpuContext::open_using(&GpuSelector::Any, options).unwrap()).unwrap();
    let [of_whole, of_pieces] = [&mut whole, &mut pieces].map(|gpu| {
        let backward = check(gpu, &weight, Direction::Backward, 150, SUMS);
        (check(gpu, &weight, Direction::Forward, 150, SUMS), backward)
    });
    assert_eq!(of_whole.0, of_pieces.0, "forward, every sum is in one buffer");
    assert!(pieces.n_bytes() > 0);
}

#[test]
fn faults_are_errors_and_wrong_results_are_noticed() {
    let weight = Random(4).tensor(DType::F32, &[64, 64], 1.0);
    let (x, mut out) = (vec![1.0; 64], vec![0.0; 64]);
    for (fault, expected) in [
        (GpuFault::Wrong, GpuFault::Wrong),
        (GpuFault::Memory, GpuFault::Memory),
        (GpuFault::Lost, GpuFault::Lost),
    ] {
        let context = GpuContext::open(&GpuSelector::Any).unwrap();
        let mut gpu = GpuProducts::with_faults(Arc::clone(&context), FaultPlan::before(0, fault)).unwrap();
        let failed = gpu.multiply(&x, &weight, Direction::Forward, &mut out).unwrap_err();
        match failed {
            KernelError::Gpu { fault, .. } => assert_eq!(fault, expected),
            other => panic!("{other:?}"),
        }
    }
}
