//! A GPU whose memory is full, as models are loaded and as they answer: it is given less and less, and no answer fails.
//!
//! Each step is reported once.

use std::sync::Arc;

use engine::kv::requantize::KvRequantize;
use engine::shape::{self, Shape};
use engine::{Devices, FaultPlan, GpuFallback, GpuFault, KvDType, LoadOptions, Model};
use kernels::GpuCache;
use weights::{SharedBytes, WeightFile};

use super::{fallbacks, gpu_incidents, is_on_gpu, load, next, options, wants_all};

/// Of four layers, with heads that can be kept in 8 bits.
fn file() -> Arc<WeightFile> {
    let shape = shape::find("llama-3.2-1b").unwrap();
    let (n_heads, n_kv_heads, n_vocab) = (4, 2, 600);
    let shape = Shape { n_layers: 4, d_model: 128, d_ff: 128, n_heads, n_kv_heads, n_vocab, ..shape };
    let mut bytes = Vec::new();
    shape::write(&shape, shape::mix("q8_0").unwrap(), 1, &mut bytes).unwrap();
    Arc::new(WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).unwrap())
}

/// All that is done for a GPU of four layers before the processor takes them.
const LADDER: [GpuFallback; 5] = [
    GpuFallback::MaxRows(64),
    GpuFallback::MaxRows(16),
    GpuFallback::KvPrecision(KvDType::Q8_0.both()),
    GpuFallback::FewerLayers { on_gpu: 2, of: 4 },
    GpuFallback::FewerLayers { on_gpu: 1, of: 4 },
];

const N_TOKENS: usize = 30;

fn answer(model: &mut Model) -> Vec<u32> {
    answer_to(model, 70)
}

/// To a prompt of this many tokens.
fn answer_to(model: &mut Model, n: u32) -> Vec<u32> {
    let seq = model.new_sequence().unwrap();
    let (mut tokens, mut ids) = ((0..n).map(|i| i * 37 % 500).collect::<Vec<u32>>(), Vec::new());
    for _ in 0..N_TOKENS {
        tokens = vec![next(model, seq, &tokens)];
        ids.extend(&tokens);
    }
    ids
}

#[test]
fn a_model_is_loaded_with_less_until_it_fits() {
    let file = file();
    let expected = answer(&mut load(&file, &options(&FaultPlan::default())));
    let by_processor =
        answer(&mut load(&file, &LoadOptions { devices: Devices::Cpu, ..options(&FaultPlan::default()) }));
    // Kernels are verified by several threads at once, which would meet several of the planned faults in one load: what
    // one load verified, the next ones know.
    let gpu_cache = GpuCache::default();
    for n_times in 0..=LADDER.len() + 1 {
        let plan = FaultPlan::full_at(3, n_times as u64);
        let options = LoadOptions { gpu_cache: gpu_cache.clone(), ..options(&plan) };
        let mut model = load(&file, &options);
        assert!(plan.is_over(), "{n_times}");
        assert_eq!(fallbacks(&mut model), LADDER[..n_times.min(LADDER.len())], "{n_times}");
        let (on_gpu, instead) = (is_on_gpu(&model), model.info().fallback_error.clone());
        match n_times {
            0..=2 => assert_eq!(answer(&mut model), expected, "{n_times}: only the pieces are smaller"),
            3..=5 => assert_eq!(answer(&mut model).len(), N_TOKENS),
            _ => assert_eq!(answer(&mut model), by_processor, "as if no GPU had been requested"),
        }
        assert_eq!(on_gpu, n_times <= LADDER.len(), "{n_times}");
        assert_eq!(instead.map(|error| error.code()), (!on_gpu).then_some("kernels.gpu_memory"));
        assert_eq!(model.max_rows(), [256, 64, 16, 16, 16, 16, 256][n_times]);
    }
}

/// Wherever memory is asked for while a model is loaded.
#[test]
fn no_allocation_may_fail_a_load() {
    let file = file();
    let expected = answer(&mut load(&file, &options(&FaultPlan::default())));
    let mut at = 0;
    loop {
        let plan = FaultPlan::full_at(at, 1);
        let mut model = load(&file, &options(&plan));
        if !plan.is_over() {
            break;
        }
        assert_eq!(fallbacks(&mut model), LADDER[..1], "allocation {at}");
        assert!(is_on_gpu(&model), "allocation {at}");
        if wants_all() || at == 0 {
            assert_eq!(answer(&mut model), expected, "allocation {at}");
        }
        at += if wants_all() { 1 } else { 7 };
    }
    assert!(at > 7, "{at} allocations are no model");
}

/// Wherever memory is asked for before and while a context ages: what has aged needs more as it comes.
#[test]
fn no_allocation_may_fail_a_context_that_ages() {
    let file = file();
    let ages = |plan: &FaultPlan| LoadOptions {
        kv_requantize: KvRequantize::After(256),
        ctx: Some(1024),
        ..options(plan)
    };
    // a stretch ages in the prompt, one in the answer
    let n_prompt = 768 - N_TOKENS as u32 / 2;
    let expected = answer_to(&mut load(&file, &ages(&FaultPlan::default())), n_prompt);
    let (mut at, mut n_loaded) = (0, 0);
    loop {
        let plan = FaultPlan::full_at(at, 1);
        let mut model = load(&file, &ages(&plan));
        let is_loaded = !plan.is_over();
        let found = answer_to(&mut model, n_prompt);
        if !plan.is_over() {
            break;
        }
        n_loaded += usize::from(is_loaded);
        assert_eq!(fallbacks(&mut model), LADDER[..1], "allocation {at}");
        assert!(is_on_gpu(&model) && found == expected, "allocation {at}");
        at += if wants_all() { 7 } else { 31 };
    }
    assert!(n_loaded > 0, "{at} allocations are no context that ages");
}

/// What the allocator of the driver counts fits once: what follows has room only where what was before let go of it.
#[test]
fn a_full_gpu_has_memory_for_what_follows() {
    let (file, free) = (file(), FaultPlan::count_only());
    let mut model = load(&file, &options(&free));
    let (expected, room) = (answer(&mut model), free.peak_bytes());
    let weights = model.info().n_weight_bytes;
    assert!(room > weights, "{room} bytes with {weights} of weights");
    drop(model);
    let smaller = FaultPlan::count_only();
    load(&file, &LoadOptions { max_rows: Some(64), ..options(&smaller) });
    assert!(2 * smaller.peak_bytes() > room, "{room} bytes: two would fit");
    let plan = FaultPlan::before(9, GpuFault::Memory);
    plan.limit_memory(room);
    let mut model = load(&file, &options(&plan));
    assert_eq!(answer(&mut model), expected);
    assert!(plan.is_over() && is_on_gpu(&model));
    assert_eq!(fallbacks(&mut model), LADDER[..1]);
}

/// Another program has taken the GPU's memory: whatever less is asked of it is too much.
#[test]
fn a_gpu_that_stays_full_gives_way_to_the_cpu() {
    let (file, plan) = (file(), FaultPlan::before(9, GpuFault::Memory));
    let mut model = load(&file, &options(&plan));
    plan.limit_memory(0);
    assert_eq!(answer(&mut model).len(), N_TOKENS);
    assert!(plan.is_over() && !is_on_gpu(&model));
    assert_eq!(fallbacks(&mut model), [GpuFallback::Cpu], "what was tried in vain is not told");
}

#[test]
fn f57_an_answer_goes_on_with_less() {
    let file = file();
    let expected = answer(&mut load(&file, &options(&FaultPlan::default())));
    let all: Vec<GpuFallback> = LADDER.into_iter().chain([GpuFallback::Cpu]).collect();
    for n_times in 1..=all.len() {
        // every fourth token
        let plan = FaultPlan::repeated(3, GpuFault::Memory, n_times as u64);
        let mut model = load(&file, &options(&plan));
        let found = answer(&mut model);
        assert!(plan.is_over(), "{n_times}");
        let told = gpu_incidents(&mut model);
        assert!(told.iter().all(|it| it.error.code() == "kernels.gpu_memory"), "{told:?}");
        assert_eq!(told.iter().map(|it| it.fallback).collect::<Vec<_>>(), all[..n_times]);
        assert_eq!(found.len(), N_TOKENS);
        if n_times <= 2 {
            assert_eq!(found, expected, "{n_times}: only the pieces are smaller");
        }
        assert_eq!(is_on_gpu(&model), n_times < all.len());
        assert_eq!(model.info().kv_bytes_per_token, if (3..=5).contains(&n_times) { 1088 } else { 2048 });
    }
}
