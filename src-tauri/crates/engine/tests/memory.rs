//! A small model under a memory limit: the peak, counted at the allocator, stays within the plan.
//!
//! A separate test binary, because it counts every byte of the process.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use engine::convert::{Formats, plan};
use engine::shape::{self, Shape};
use engine::speculate::Script;
use engine::train::{LoraShape, Trainer, TrainerOptions, TrainingExample};
use engine::{GenEvent, LoadOptions, Model, Request, Sampling, Scheduler};
use weights::{SharedBytes, WeightFile};

struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

const BOUND: u64 = 8 << 20;

/// The starter model in Q4_0, as `nook convert` writes it.
fn starter() -> Vec<u8> {
    let starter = include_bytes!("../../../../models/starter/starter.gguf");
    let file = WeightFile::from_static("starter", starter).unwrap();
    let mut bytes = Vec::new();
    plan(&file, &Formats::parse("q4_0").unwrap(), None).unwrap().write(&mut bytes).unwrap();
    bytes
}

/// A small version of a family.
fn small(like: &str, n_vocab: u32) -> Vec<u8> {
    let shape = shape::find(like).unwrap();
    let (n_heads, n_kv_heads) = (4, 2);
    let shape = Shape { n_layers: 4, d_model: 256, d_ff: 512, n_heads, n_kv_heads, n_vocab, ..shape };
    let mut bytes = Vec::new();
    shape::write(&shape, shape::mix("q4_0").unwrap(), 1, &mut bytes).unwrap();
    bytes
}

/// Runs a prompt and an answer that fill a context. Returns the peak allocation since loading began, without weights.
fn run(file: &Arc<WeightFile>, memory: u64, n_ctx: usize) -> engine::Result<(usize, Duration, f64)> {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let options = LoadOptions {
        threads: Some(2),
        ctx: Some(n_ctx),
        max_sequences: 34,
        memory: Some(memory),
        ..LoadOptions::default()
    };
    let mut model = Model::load(Arc::clone(file), &options, &mut |_| {})?;
    let mut scheduler = Scheduler::new();
    let request = Request {
        id: 1,
        prompt: (0..model.n_ctx() as u32 - 100).map(|i| i * 7 % 500).collect(),
        sequence: None,
        sampling: Sampling::default(),
        max_tokens: Some(100),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    };
    scheduler.submit(request).unwrap();
    let (mut first, mut n_tokens) = (None, 0);
    while scheduler.step(&mut model, &mut |_, event| match event {
        GenEvent::Token { .. } => {
            first.get_or_insert_with(|| start.elapsed());
            n_tokens += 1;
        }
        GenEvent::Failed(error) => panic!("{error}"),
        GenEvent::Prefill { .. } | GenEvent::Done(_) => {}
    }) {}
    assert_eq!(n_tokens, 100);
    let first = first.unwrap();
    let per_second = 99.0 / (start.elapsed() - first).as_secs_f64();
    Ok((PEAK.load(Ordering::Relaxed) - before, first, per_second))
}

/// The allocator counts for the whole process: one test at a time.
static COUNTED: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    COUNTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn the_starter_model_runs_in_eight_mebibytes() {
    let _alone = alone();
    let bytes = starter();
    let n_weights = bytes.len();
    let file = Arc::new(WeightFile::from_bytes("starter", SharedBytes::from_vec(bytes)).unwrap());
    let (peak, first, per_second) = run(&file, BOUND, 512).unwrap();
    println!(
        "{peak} bytes beside {n_weights} of weights; {first:?} to the first token, {per_second:.0} tokens/s"
    );
    assert!((n_weights + peak) as u64 <= BOUND, "{n_weights} and {peak}");
    assert!(first < Duration::from_millis(500) && per_second > 5.0, "{first:?}, {per_second}/s");
}

#[test]
fn f50_a_memory_limit_holds_or_is_refused_with_a_context_that_fits() {
    let _alone = alone();
    for (like, n_vocab) in [("llama-3.2-1b", 600), ("llama-3.2-1b", 32_000), ("gemma-3-1b", 8000)] {
        let bytes = small(like, n_vocab);
        let n_weights = bytes.len() as u64;
        let file = Arc::new(WeightFile::from_bytes(like, SharedBytes::from_vec(bytes)).unwrap());
        let mut n_refused = 0;
        for memory in [n_weights, n_weights + (8 << 20), n_weights + (16 << 20), n_weights + (64 << 20)] {
            let (peak, n_ctx) = match run(&file, memory, 4096) {
                Ok((peak, ..)) => (peak, 4096),
                Err(error) => {
                    assert_eq!(error.code(), "model.memory");
                    n_refused += 1;
                    let remedy = error.remedy().to_string();
                    let Some(offered) = remedy.split("--ctx ").nth(1) else { continue };
                    let n_ctx: usize = offered.split(' ').next().unwrap().parse().unwrap();
                    (run(&file, memory, n_ctx.max(128)).unwrap().0, n_ctx)
                }
            };
            println!("{like} of {n_vocab} in {memory}: {n_weights} and {peak}, {n_ctx} tokens");
            assert!(n_weights + peak as u64 <= memory, "{like}: {n_weights} and {peak} in {memory}");
        }
        assert!((1..4).contains(&n_refused), "{like}: {n_refused} of 4 were refused");
    }
}

/// `n` tokens, of which all are learned.
fn training_example(n: usize) -> TrainingExample {
    TrainingExample { ids: (0..n as u32).map(|i| i * 7 % 500).collect(), is_learned: vec![true; n] }
}

#[test]
fn training_takes_no_more_than_foretold() {
    let _alone = alone();
    for like in ["llama-3.2-1b", "gemma-3-1b"] {
        let file = Arc::new(WeightFile::from_bytes(like, SharedBytes::from_vec(small(like, 8000))).unwrap());
        // Without a budget every layer is computed twice.
        for (max_kept_bytes, lengths) in [(1 << 30, [150, 350]), (0, [150, 350]), (1 << 20, [8, 500])] {
            let before = LIVE.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let options = TrainerOptions { threads: Some(2), max_kept_bytes, ..TrainerOptions::default() };
            let shape = LoraShape { rank: 16, alpha: 32.0 };
            let mut trainer = Trainer::start(Arc::clone(&file), shape, 1, options).unwrap();
            // One after the other: the first must leave no memory behind.
            for n in lengths {
                trainer.compute_gradients(&[training_example(n)]).unwrap();
            }
            let foretold = trainer.peak_bytes(lengths[1], lengths[1]);
            let peak = (PEAK.load(Ordering::Relaxed) - before) as u64;
            println!("{like}, {max_kept_bytes} kept: {peak} of {foretold}");
            assert!(peak <= foretold, "{like}, {max_kept_bytes}: {peak} of {foretold}");
            assert!(foretold <= peak * 2, "{like}, {max_kept_bytes}: {peak} of {foretold}");
        }
    }
}
