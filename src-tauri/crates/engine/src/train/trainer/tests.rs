//! Tests of steps in integers beside those in f32.

use std::sync::Arc;

use kernels::{FaultPlan, GpuFault};
use weights::{SharedBytes, WeightFile};

use super::*;
use crate::shape::{self, Shape};

/// A small model in Q4_0 with random weights.
fn quantized_model() -> Arc<WeightFile> {
    let shape = shape::find("llama-3.2-1b").expect("a known shape");
    let (n_heads, n_kv_heads, n_vocab) = (4, 2, 2000);
    let shape = Shape { n_layers: 3, d_model: 256, d_ff: 512, n_heads, n_kv_heads, n_vocab, ..shape };
    let mut bytes = Vec::new();
    shape::write(&shape, shape::mix("q4_0").expect("a known mix"), 1, &mut bytes).expect("a model");
    Arc::new(WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).expect("a readable model"))
}

/// Loss and gradients of two texts, with pairs that are not at their start.
fn gradients(n_threads: usize, precision: ProductPrecision) -> (f64, Vec<Parameter>) {
    let options = TrainerOptions { threads: Some(n_threads), precision, ..TrainerOptions::default() };
    gradients_of(&mut trainer(options))
}

fn trainer(options: TrainerOptions) -> Trainer {
    let lora = LoraShape { rank: 4, alpha: 8.0 };
    Trainer::start(quantized_model(), lora, 1, options).expect("a trainer")
}

fn gradients_of(trainer: &mut Trainer) -> (f64, Vec<Parameter>) {
    for b in trainer.parameters.iter_mut().skip(1).step_by(2) {
        b.iter_mut().enumerate().for_each(|(i, x)| *x = ((i * 37 % 101) as f32 - 50.0) * 1e-3);
    }
    let example = |n: u32| TrainingExample {
        ids: (0..n).map(|i| (i * i * 7 + n) % 2000).collect(),
        is_learned: vec![true; n as usize],
    };
    let loss = trainer.compute_gradients(&[example(40), example(65)]).expect("a loss");
    (loss, std::mem::take(&mut trainer.gradients))
}

/// Checks that gradients are off by less than this part of their lengths, and the loss by a tenth of it.
fn check_close((loss, found): &(f64, Vec<Parameter>), tolerance: f64) {
    let (want_loss, want) = gradients(2, ProductPrecision::Float32);
    assert!((loss - want_loss).abs() < 0.1 * tolerance * want_loss, "{loss}, not {want_loss}");
    for (i, (want, found)) in want.iter().zip(found).enumerate() {
        let difference: Vec<f32> = want.iter().zip(found).map(|(want, found)| want - found).collect();
        let [error, length] = [difference, want.clone()].map(|numbers| optimizer::norm(&[numbers]));
        assert!(length > 0.0 && error < tolerance * length, "parameter {i}: off by {error} of {length}");
    }
}

/// Integers of 16 bits change a loss by less than 0.1 % and a gradient by less than 1 % of its length.
#[test]
fn integers_train_like_float32() {
    check_close(&gradients(2, ProductPrecision::Integer16), 1e-2);
}

fn on_gpu(faults: FaultPlan) -> Trainer {
    let gpu = Some(BackendOptions { faults, ..BackendOptions::default() });
    trainer(TrainerOptions { threads: Some(2), gpu, ..TrainerOptions::default() })
}

/// Any adapter will do; on a machine without a GPU it is Mesa's software renderer.
#[test]
fn a_gpu_trains_in_float32() {
    let mut trainer = on_gpu(FaultPlan::default());
    assert!(trainer.gpu_name().is_some());
    check_close(&gradients_of(&mut trainer), 1e-4);
    assert!(trainer.take_gpu_incident().is_none() && trainer.gpu_name().is_some());
}

/// By a clock whose intervals grow or shrink with each look at it.
#[test]
fn a_slower_gpu_is_let_go() {
    for (intervals, is_kept) in [([1, 5, 9], true), ([9, 5, 1], false), ([1, 5, 5], false)] {
        let mut trainer = on_gpu(FaultPlan::default());
        let looks = std::cell::Cell::new(0);
        let now = || {
            let n = looks.replace(looks.get() + 1);
            let passed: u64 = intervals.iter().take(usize::div_ceil(n, 2)).sum();
            std::time::Duration::from_millis(passed)
        };
        trainer.keep_faster(&now).expect("products");
        assert_eq!((looks.get(), trainer.gpu_name().is_some()), (6, is_kept), "{intervals:?}");
    }
    let mut without = trainer(TrainerOptions::default());
    without.keep_faster(&|| unreachable!("there is nothing to measure")).expect("nothing to do");
}

#[test]
fn the_cpu_goes_on_where_a_gpu_fails() {
    for fault in [GpuFault::Lost, GpuFault::Wrong, GpuFault::TimeOut] {
        let mut trainer = on_gpu(FaultPlan::before(if fault == GpuFault::Wrong { 0 } else { 40 }, fault));
        assert!(trainer.gpu_name().is_some());
        check_close(&gradients_of(&mut trainer), 1e-2);
        let incident = trainer.take_gpu_incident().expect("it has failed");
        assert!(incident.code().starts_with("kernels.gpu"), "{incident:?}");
        assert!(trainer.gpu_name().is_none() && trainer.take_gpu_incident().is_none());
    }
    // Its memory is full from some matrix on; these are multiplied by the CPU.
    let mut trainer = on_gpu(FaultPlan::full_at(20, 3));
    check_close(&gradients_of(&mut trainer), 1e-2);
    assert!(trainer.gpu_name().is_some() && trainer.take_gpu_incident().is_none());
}

/// Main memory for operands on their way counts.
#[test]
fn the_estimate_counts_what_a_gpu_needs() {
    let [with, without] = [on_gpu(FaultPlan::default()), trainer(TrainerOptions::default())];
    assert!(with.peak_bytes(65, 130) > without.peak_bytes(65, 130));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for precision in [ProductPrecision::Float32, ProductPrecision::Integer16] {
        assert_eq!(gradients(1, precision), gradients(3, precision), "{precision:?}");
    }
}
