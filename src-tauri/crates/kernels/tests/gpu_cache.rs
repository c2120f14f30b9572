//! The facts about a GPU that are cached from one start to the next: passed checks, tuned shapes and compiled pipelines.
//! A software renderer is verified like a GPU.
#![cfg(feature = "gpu")]
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::*;
use kernels::gpu::{Gpu, GpuContext, GpuOptions, adapters};
use kernels::*;
use test_support::{Missing, skip};
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 4,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 8,
    max_outputs: 8,
    n_states: 0,
};

fn graph(dtype: DType) -> Arc<Graph> {
    Arc::new(model(Shape { dtype, kv: KvDType::F16, n_layers: 1, ..SMALL }, 21))
}

fn prepare(context: &Arc<GpuContext>, dtype: DType) -> Result<(), KernelError> {
    Gpu::new(context.clone()).prepare(&graph(dtype), DeviceId(0), CAPACITY, ValueLifetime::Needed)
}

fn open(cache: &GpuCache) -> Arc<GpuContext> {
    let options = GpuOptions { precision: Precision::F32, ..GpuOptions::default() };
    GpuContext::open_with(&GpuSelector::Any, options, cache, VerificationScope::All).unwrap()
}

/// The cache as the next start loads it.
fn again(cache: &GpuCache) -> GpuCache {
    GpuCache::new(cache.all())
}

#[test]
fn passed_checks_are_not_repeated_and_failed_kernels_stay_unused() {
    let key = adapters()[0].key();
    let cache = GpuCache::default();
    prepare(&open(&cache), DType::Q8_0).unwrap();
    let passed = cache.get(&key).passed_checks;
    for check in ["row by row", "product of Q8_0", "attention over F16", "a layer of Q8_0 over F16"] {
        assert!(passed.contains(check), "{passed:?}");
    }
    // passed checks are not run again: nothing new is recorded
    let next = again(&cache);
    prepare(&open(&next), DType::Q8_0).unwrap();
    assert_eq!(next.get(&key).passed_checks, passed);
    // a graph that uses another kernel has that verified
    prepare(&open(&next), DType::F16).unwrap();
    let more: Vec<String> = next.get(&key).passed_checks.difference(&passed).cloned().collect();
    assert_eq!(more, ["a layer of F16 over F16", "product of F16"]);

    next.update(&key, |facts| facts.wrong_kernel = Some("product of Q8_0".into()));
    let error = prepare(&open(&next), DType::Q8_0).unwrap_err();
    assert_eq!(error.code(), "kernels.gpu_wrong");
    assert!(error.to_string().contains("product of Q8_0"), "{error}");
    // another driver version is another key
    let other = GpuKey { driver: "another".into(), ..key.clone() };
    let moved = BTreeMap::from([(other, next.get(&key))]);
    prepare(&open(&GpuCache::new(moved)), DType::Q8_0).unwrap();
}

#[test]
fn software_renderers_are_verified_only_on_request() {
    let cache = GpuCache::default();
    let context =
        GpuContext::open_with(&GpuSelector::Any, GpuOptions::default(), &cache, VerificationScope::Hardware)
            .unwrap();
    prepare(&context, DType::F32).unwrap();
    let is_hardware = adapters()[0].kind.is_hardware();
    assert_eq!(cache.get(&adapters()[0].key()).passed_checks.is_empty(), !is_hardware);
}

#[test]
fn compiled_pipelines_are_reused_and_damaged_ones_do_no_harm() {
    let key = adapters()[0].key();
    let cache = GpuCache::default();
    let context =
        GpuContext::open_with(&GpuSelector::Any, GpuOptions::default(), &cache, VerificationScope::Hardware)
            .unwrap();
    let Some(empty) = context.compiled_pipelines() else {
        assert!(!context.has_pipeline_cache(), "a driver that keeps what it compiles says what it is");
        skip!(Missing::Gpu, "the driver has no cache of pipelines");
    };
    prepare(&context, DType::F32).unwrap();
    let compiled = cache.get(&key).pipelines.expect("it is noted once kernels are there");
    assert!(compiled.len() >= empty.len());
    let next = GpuContext::open_with(
        &GpuSelector::Any,
        GpuOptions::default(),
        &again(&cache),
        VerificationScope::Hardware,
    )
    .unwrap();
    assert_eq!(
        next.compiled_pipelines().unwrap().len(),
        compiled.len(),
        "all of it, before a kernel was made"
    );
    let mut damaged = compiled.to_vec();
    damaged[4] ^= 0xff;
    cache.update(&key, |facts| facts.pipelines = Some(damaged.into()));
    let next = GpuContext::open_with(
        &GpuSelector::Any,
        GpuOptions::default(),
        &again(&cache),
        VerificationScope::Hardware,
    )
    .unwrap();
    // damaged code is dropped (Mesa's software renderer never keeps any), and the GPU works
    assert_eq!(next.compiled_pipelines().unwrap().len(), empty.len());
    prepare(&next, DType::F32).unwrap();
}

#[test]
fn half_precision_is_verified_separately_and_f32_remains_if_it_fails() {
    let key = adapters()[0].key();
    let cache = GpuCache::default();
    let open = |precision, cache| {
        GpuContext::open_with(
            &GpuSelector::Any,
            GpuOptions { precision, ..GpuOptions::default() },
            cache,
            VerificationScope::All,
        )
    };
    let halved = open(Precision::F16, &cache).expect("Mesa's software and every card of ten years have it");
    prepare(&halved, DType::Q8_0).unwrap();
    let passed = cache.get(&key).passed_checks;
    for check in
        ["row by row", "product of Q8_0 in f16", "attention over F16", "a layer of Q8_0 over F16 in f16"]
    {
        assert!(passed.contains(check), "{passed:?}");
    }
    // results in f32 say nothing about f16, and the other way round
    let next = again(&cache);
    next.update(&key, |facts| {
        facts.wrong_in_precision.insert(Precision::F16.name().into(), "product of Q8_0".into());
    });
    let error = prepare(&open(Precision::F16, &next).unwrap(), DType::Q8_0).unwrap_err();
    assert_eq!(error.code(), "kernels.gpu_precision");
    assert!(error.to_string().contains("product of Q8_0"), "{error}");
    prepare(&open(Precision::F32, &next).unwrap(), DType::Q8_0).unwrap();
    assert!(next.get(&key).passed_checks.contains("product of Q8_0"));
}

/// Software renderers have no cooperative matrices; a GPU that has them computes what the specification says.
#[test]
fn a_gpu_without_cooperative_matrices_says_so() {
    let cache = GpuCache::default();
    let uses = GpuOptions { precision: Precision::Matrices, ..GpuOptions::default() };
    match GpuContext::open_with(&GpuSelector::Any, uses, &cache, VerificationScope::All) {
        Ok(context) => prepare(&context, DType::Q8_0).unwrap(),
        Err(error) => {
            assert_eq!(error.code(), "kernels.gpu_precision");
            assert!(error.to_string().contains("no cooperative matrices"), "{error}");
        }
    }
}

/// Logits of a text over several chunks of attention, most of it in tiles, the rest one token after another, as bits.
fn bits(context: &Arc<GpuContext>, dtype: DType) -> Vec<u32> {
    let graph = model(Shape { dtype, kv: KvDType::F16, n_layers: 1, ..SMALL }, 21);
    let capacity = Capacity { n_pages: 20, max_rows: 64, max_outputs: 64, ..CAPACITY };
    let mut executor = Executor::new(graph, vec![Box::new(Gpu::new(context.clone()))], capacity).unwrap();
    let text = tokens(9 * 64 + 4, SMALL.n_vocab, 3);
    let pages: Vec<u32> = (0..20).collect();
    let chunks = [&[64; 9][..], &[1; 4]].concat();
    run_chunks(&mut executor, &text, &pages, &chunks).iter().map(|x| x.to_bits()).collect()
}

#[test]
fn every_shape_gives_the_same_bits_and_tuning_ends() {
    let key = adapters()[0].key();
    let cache = GpuCache::default();
    let context = open(&cache);
    let mut gpu = Gpu::new(context.clone());
    gpu.prepare(&graph(DType::Q8_0), DeviceId(0), CAPACITY, ValueLifetime::Needed).unwrap();
    // a fake clock: every run takes equally long, so that the default shapes win, and long enough for a single run
    let ticks = std::cell::Cell::new(0);
    let now = || {
        ticks.set(ticks.get() + 1);
        std::time::Duration::from_secs(ticks.get())
    };
    let mut n_steps = 1;
    while gpu.tune(&now).unwrap() {
        n_steps += 1;
        assert!(n_steps < 32, "it is bounded");
    }
    let tuned = cache.get(&key).tuned_shapes;
    assert_eq!(tuned.len(), 3, "one format of products: {tuned:?}");
    assert_eq!(tuned["product of one row of q8_0"], "256 lanes that share x");
    assert_eq!(tuned["product of many rows of q8_0"], "128 by 64");
    assert_eq!(tuned["attention of few rows"], "from 2 chunks");
    // tuned subjects are not measured again
    gpu.prepare(&graph(DType::Q8_0), DeviceId(0), CAPACITY, ValueLifetime::Needed).unwrap();
    assert!(!gpu.tune(&now).unwrap());

    let expected = bits(&context, DType::Q8_0);
    for (subject, shape) in [
        ("product of one row of q8_0", "128 lanes that share x"),
        ("product of one row of q8_0", "64 lanes"),
        ("product of one row of q8_0", "a shape of another version"),
        ("product of many rows of q8_0", "64 by 64"),
        ("product of many rows of q8_0", "64 by 32"),
        ("attention of few rows", "from 4 chunks"),
    ] {
        cache.update(&key, |facts| _ = facts.tuned_shapes.insert(subject.into(), shape.into()));
        assert_eq!(bits(&context, DType::Q8_0), expected, "{subject}: {shape}");
    }
}
