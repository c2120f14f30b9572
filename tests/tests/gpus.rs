//! Layers on two GPUs: the same text as on one. One adapter, opened twice, is two GPUs.
//!
//! Also the progress that is reported while a model goes into a GPU's memory.

use std::sync::Arc;

use engine::{BackendKind, Chunk, Devices, LoadOptions, LogitsSelection, Model};
use kernels::GpuSelector;
use weights::WeightFile;

const N_TOKENS: usize = 48;

/// The likeliest tokens after a prompt.
fn answer(file: &Arc<WeightFile>, devices: Devices, n_devices: usize) -> Vec<u32> {
    let options = LoadOptions {
        devices,
        gpus: vec![GpuSelector::Nth(0), GpuSelector::Nth(0)],
        ctx: Some(128),
        threads: Some(1),
        max_sequences: 1,
        ..LoadOptions::default()
    };
    let mut model = Model::load(file.clone(), &options, &mut |_| {}).unwrap();
    assert_eq!((model.info().fallback_error.clone(), model.info().devices.len()), (None, n_devices));
    let seq = model.new_sequence().unwrap();
    let (mut ids, mut next) = (Vec::new(), vec![1, 9, 17, 4]);
    for _ in 0..N_TOKENS {
        let logits = model.forward(&[Chunk { seq, tokens: &next, logits: LogitsSelection::Last }]).unwrap();
        let row = logits.row(0).unwrap();
        let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32;
        ids.push(best);
        next = vec![best];
    }
    ids
}

#[test]
fn layers_on_two_gpus_give_what_one_gives() {
    let dir = inglenook_tests::workspace_root().join("tests/reference/families/llama");
    let file = Arc::new(WeightFile::open(&dir).unwrap());
    let one = answer(&file, Devices::Gpu { layers: None }, 1);
    let n_layers = engine::memory_estimate::MemoryEstimate::of(&file).unwrap().layer_weights.len();
    let gpu = BackendKind::Gpu;
    for first in 1..n_layers {
        let parts = vec![(gpu, first), (gpu, n_layers - first)];
        assert_eq!(answer(&file, Devices::Split(parts), 2), one, "{first} layers on the first");
    }
}

/// Weights are read, and then they go to the GPU: progress is reported for both, layer by layer, and never goes back.
#[test]
fn loading_into_a_gpu_reports_progress() {
    let dir = inglenook_tests::workspace_root().join("tests/reference/families/llama");
    let file = Arc::new(WeightFile::open(&dir).unwrap());
    let n_layers = engine::memory_estimate::MemoryEstimate::of(&file).unwrap().layer_weights.len();
    let told = |devices| {
        let options = LoadOptions {
            devices,
            ctx: Some(128),
            threads: Some(1),
            max_sequences: 1,
            ..LoadOptions::default()
        };
        let mut told = Vec::new();
        Model::load(file.clone(), &options, &mut |share| told.push(share)).unwrap();
        assert!(told.is_sorted() && told.first() == Some(&0.0) && told.last() == Some(&1.0), "{told:?}");
        told.dedup();
        let read = told.iter().filter(|share| (0.05..0.4).contains(*share)).count();
        let brought = told.iter().filter(|share| (0.4..0.9).contains(*share)).count();
        [read > n_layers, brought > n_layers]
    };
    assert_eq!(told(Devices::Gpu { layers: None }), [true, true]);
    let halves = vec![(BackendKind::Gpu, n_layers / 2), (BackendKind::Cpu, n_layers - n_layers / 2)];
    assert!(told(Devices::Split(halves))[0]);
}
