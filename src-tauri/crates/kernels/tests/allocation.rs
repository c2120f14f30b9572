//! Checks that `run` does not allocate once a row bucket has been used. A separate test binary, since it counts all
//! allocations of the process; without harness, whose thread allocates when a test is slow.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::DType;

struct CountingAllocator;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards everything to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Runs batches of many sizes until each size has been seen, then counts what more of them allocate.
fn check(what: &str, graph: Graph, devices: Vec<Box<dyn Backend>>, n_vocab: usize) {
    let capacity = Capacity {
        n_pages: 32,
        n_window_pages: 0,
        n_requantized_pages: 0,
        max_rows: 64,
        max_outputs: 4,
        n_states: 1,
    };
    let pages: Vec<u32> = (0..32).collect();
    let ids = tokens(700, n_vocab, 5);
    let positions: Vec<u32> = (0..700).collect();
    let states: &[u32] = if graph.kv().states.is_empty() { &[] } else { &[0] };
    let mut executor = Executor::new(graph, devices, capacity).unwrap();
    let mut run = |range: std::ops::Range<usize>| {
        let n = range.len();
        let batch = Batch {
            tokens: &ids[range.clone()],
            positions: &positions[range],
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0; 64][..n],
            page_tables: &[&pages],
            window_tables: &[],
            states,
            outputs: &positions[n - 1..n],
        };
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        executor.run(&batch).unwrap();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    let sizes = [64, 33, 1, 2, 3, 7];
    let mut at = 0;
    for n in sizes {
        run(at..at + n);
        at += n;
    }
    for n in sizes.into_iter().chain([1; 300]) {
        assert_eq!(run(at..at + n), 0, "{what}: batch of {n} at {at}");
        at += n;
    }
}

fn main() {
    // A thread's own handle is made when it first waits for others.
    drop(std::thread::current());
    for dtype in [DType::F32, DType::Q8_0, DType::Q4_K] {
        let shape = Shape { dtype, kv: KvDType::F16, n_first: 1, ..SMALL };
        let devices = vec![cpu(2, IsaLevel::detect()), cpu(1, IsaLevel::Portable)];
        check(&format!("{dtype}"), model(shape, 5), devices, SMALL.n_vocab);
        let graph = mixed::model(mixed::MixedShape { dtype, kv: KvDType::F16, ..mixed::MIXED }, 5);
        for level in IsaLevel::present() {
            check(&format!("mixed {dtype}"), graph.clone(), vec![cpu(2, level)], mixed::N_VOCAB);
        }
    }
    println!("test result: ok. 1 passed; 0 failed");
}
