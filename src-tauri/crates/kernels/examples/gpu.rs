//! Measures what a GPU costs besides computing: verification at first use, and CPU time per token. The model has as many
//! layers as a published 1B model, but narrow ones, so that hardly anything is computed.
//!
//! cargo run --release -p kernels --example gpu -- [dtype] [gpu]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{SMALL, Shape, tokens};
use io::Clock;
use kernels::gpu::{Gpu, GpuContext, GpuOptions};
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 16,
    n_window_pages: 0,
    n_requantized_pages: 0,
    max_rows: 64,
    max_outputs: 1,
    n_states: 0,
};

/// Tokens that are decoded one after another.
const N_TOKENS: usize = 200;

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The time to prepare a graph, verification of its kernels included.
fn prepare(context: &Arc<GpuContext>, graph: &Arc<Graph>, clock: &dyn Clock) -> Duration {
    let start = clock.monotonic();
    Gpu::new(context.clone())
        .prepare(graph, DeviceId(0), CAPACITY, ValueLifetime::Needed)
        .expect("a GPU that computes correctly");
    clock.monotonic() - start
}

/// Measures verification with an empty cache, with compiled kernels, and with all checks passed before.
fn measure_checks(graph: &Arc<Graph>, selector: &GpuSelector, clock: &dyn Clock) -> Arc<GpuContext> {
    let cache = GpuCache::default();
    let start = clock.monotonic();
    let context = GpuContext::open_with(selector, GpuOptions::default(), &cache, VerificationScope::All)
        .expect("a GPU");
    println!("{}, opened in {:.1} ms", context.info().name, milliseconds(clock.monotonic() - start));
    let first = prepare(&context, graph, clock);
    let passed = cache.get(&context.info().key()).passed_checks;
    cache.update(&context.info().key(), |facts| facts.passed_checks.clear());
    let again = prepare(&context, graph, clock);
    let prepared = prepare(&context, graph, clock);
    let [checked, run, prepared] =
        [first.saturating_sub(prepared), again.saturating_sub(prepared), prepared].map(milliseconds);
    println!("{} checks in {checked:.1} ms, {run:.1} ms of it with compiled kernels", passed.len());
    println!("preparing without checks: {prepared:.1} ms");
    passed.iter().for_each(|name| println!("  {name}"));
    context
}

/// Prints the shortest and the median CPU time per token.
fn measure_submissions(graph: &Arc<Graph>, context: Arc<GpuContext>, selection: OutputSelection) {
    let mut executor = Executor::new(Graph::clone(graph), vec![Box::new(Gpu::new(context))], CAPACITY)
        .expect("memory for a narrow model");
    executor.select_output(selection);
    let clock = io::RealClock::new();
    let now: MonotonicClock = Arc::new(move || clock.monotonic());
    executor.measure_submissions(Some(&now));
    let text = tokens(N_TOKENS, SMALL.n_vocab, 1);
    let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).collect();
    let (mut times, mut n_kernels) = (Vec::new(), 0);
    for at in 0..N_TOKENS {
        let batch = Batch {
            tokens: &text[at..=at],
            positions: &[at as u32],
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0],
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &[0],
        };
        executor.run(&batch).expect("a valid batch");
        let stats = executor.take_submission_stats();
        times.push(stats.time);
        n_kernels = stats.n_kernels;
    }
    times.sort();
    let [shortest, median] = [times[0], times[N_TOKENS / 2]].map(milliseconds);
    println!(
        "{selection:?}: {n_kernels} kernels per token, submitted in {shortest:.3} ms at best, {median:.3} ms median"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("Q4_K", String::as_str);
    let dtype = DType::from_name(name).expect("a block format");
    let selector = GpuSelector::parse(arguments.get(1).map_or("", String::as_str));
    let shape = Shape { dtype, kv: KvDType::F16, n_layers: 16, ..SMALL };
    let graph = Arc::new(common::model(shape, 1));
    let context = measure_checks(&graph, &selector, &io::RealClock::new());
    for selection in [OutputSelection::Rows, OutputSelection::TopK(40)] {
        measure_submissions(&graph, context.clone(), selection);
    }
}
