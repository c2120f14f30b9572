//! Tests of steps in integers beside those in f32.

use std::sync::Arc;

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
    let lora = LoraShape { rank: 4, alpha: 8.0 };
    let mut trainer = Trainer::start(quantized_model(), lora, 1, options).expect("a trainer");
    for b in trainer.parameters.iter_mut().skip(1).step_by(2) {
        b.iter_mut().enumerate().for_each(|(i, x)| *x = ((i * 37 % 101) as f32 - 50.0) * 1e-3);
    }
    let example = |n: u32| TrainingExample {
        ids: (0..n).map(|i| (i * i * 7 + n) % 2000).collect(),
        is_learned: vec![true; n as usize],
    };
    let loss = trainer.compute_gradients(&[example(40), example(65)]).expect("a loss");
    (loss, trainer.gradients)
}

/// Integers of 16 bits change a loss by less than 0.1 % and a gradient by less than 1 % of its length.
#[test]
fn integers_train_like_float32() {
    let (want_loss, want) = gradients(2, ProductPrecision::Float32);
    let (loss, found) = gradients(2, ProductPrecision::Integer16);
    assert!((loss - want_loss).abs() < 1e-3 * want_loss, "{loss}, not {want_loss}");
    for (i, (want, found)) in want.iter().zip(&found).enumerate() {
        let difference: Vec<f32> = want.iter().zip(found).map(|(want, found)| want - found).collect();
        let [error, length] = [difference, want.clone()].map(|numbers| optimizer::norm(&[numbers]));
        assert!(length > 0.0 && error < 1e-2 * length, "parameter {i}: off by {error} of {length}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for precision in [ProductPrecision::Float32, ProductPrecision::Integer16] {
        assert_eq!(gradients(1, precision), gradients(3, precision), "{precision:?}");
    }
}
