//! Generating a token allocates nothing on the heap: cache tables and pages, layers, sampling, text.
//!
//! A separate test binary, because it counts every allocation of the process. It has no harness: the harness's thread
//! allocates when it reports a slow test.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::sampler::SamplerChain;
use engine::shape::{self, Shape, ShapeFact};
use engine::{Chunk, KvDType, LoadOptions, LogitsSelection, Model, Sampling, WeightBudget};
use weights::{SharedBytes, WeightFile};

struct CountingAllocator;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// A small gpt-oss: experts, windows, sinks.
const EXPERTS: &[&[(&str, ShapeFact)]] = &[&[
    ("expert_count", ShapeFact::Count(8)),
    ("expert_used_count", ShapeFact::Count(2)),
    ("expert_feed_forward_length", ShapeFact::Count(256)),
    ("attention.sliding_window", ShapeFact::Count(32)),
    ("rope.scaling.type", ShapeFact::Text("yarn")),
    ("rope.scaling.factor", ShapeFact::Real(8.0)),
    ("rope.scaling.original_context_length", ShapeFact::Count(64)),
    ("rope.scaling.yarn_beta_fast", ShapeFact::Real(32.0)),
    ("rope.scaling.yarn_beta_slow", ShapeFact::Real(1.0)),
]];

fn small(like: &str) -> Shape {
    let shape = shape::find(like).unwrap();
    let more = if like == "gpt-oss-20b" { EXPERTS } else { shape.more };
    let (n_heads, n_kv_heads, n_vocab) = (4, 2, 600);
    Shape { n_layers: 4, d_model: 256, d_ff: 256, n_heads, n_kv_heads, n_vocab, more, ..shape }
}

/// Generated tokens: across several pages, and beyond the window.
const N_TOKENS: usize = 200;

fn check(like: &str, mix: &str, kv: KvDType, resident: Option<WeightBudget>, sampling: &Sampling) {
    let mut bytes = Vec::new();
    shape::write(&small(like), shape::mix(mix).unwrap(), 1, &mut bytes).unwrap();
    let file = WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).unwrap();
    let options =
        LoadOptions { threads: Some(2), kv: kv.both(), resident, ctx: Some(512), ..LoadOptions::default() };
    let mut model = Model::load(Arc::new(file), &options, &mut |_| {}).unwrap();
    let seq = model.new_sequence().unwrap();
    let mut stream = model.tokenizer().unwrap().stream();
    let mut chain = SamplerChain::new(sampling, model.info().n_vocab);
    let mut history: Vec<u32> = Vec::with_capacity(512);
    history.extend((0..70).map(|i| i * 7 % 599));
    let mut text = String::with_capacity(1 << 16);
    model.forward(&[Chunk { seq, tokens: &history, logits: LogitsSelection::None }]).unwrap();
    history.push(5);
    for n in 0..N_TOKENS {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let last = &history[history.len() - 1..];
        let logits = model.forward(&[Chunk { seq, tokens: last, logits: LogitsSelection::Last }]).unwrap();
        let token = chain.sample(logits.row(0).unwrap(), &history).unwrap();
        history.push(token);
        text.push_str(stream.push(token));
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        // the first token allocates the buffers of its batch
        assert!(n == 0 || allocated == 0, "{like} {mix} {kv:?}: {allocated} allocations for token {n}");
    }
}

fn main() {
    // A thread's handle is allocated when it first waits.
    drop(std::thread::current());
    let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
    let drawn = Sampling { repeat_penalty: 1.1, seed: Some(1), ..Sampling::default() };
    let open = Sampling { top_k: 0, top_p: 0.9, seed: Some(2), ..Sampling::default() };
    check("llama-3.2-1b", "q8_0", KvDType::F16, None, &greedy);
    check("llama-3.2-1b", "q4_0", KvDType::Q8_0, None, &drawn);
    check("gemma-3-1b", "q4_0", KvDType::F16, None, &open);
    check("gpt-oss-20b", "mxfp4", KvDType::F16, None, &drawn);
    check("gpt-oss-20b", "q8_0", KvDType::Q4_0, None, &greedy);
    check(
        "gpt-oss-20b",
        "mxfp4",
        KvDType::F16,
        Some(WeightBudget { n_bytes: 1 << 20, is_tight: true }),
        &open,
    );
    println!("test result: ok. 1 passed; 0 failed");
}
