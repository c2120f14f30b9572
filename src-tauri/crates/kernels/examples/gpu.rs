//! What a graphics card costs besides computing: its checks at first use, and with_progress it a token. Of a model with the
//! layers of a published 1B model, narrow, so that hardly anything is computed.
//!
//! cargo run --release -p kernels --example card -- [dtype] [card]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{SMALL, Shape, tokens};
use io::Clock;
use kernels::backends::{GpuSelector, VerificationScope};
use kernels::gpu::{Device, Gpu, Uses};
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

/// Tokens that are told one after another.
const N_TOKENS: usize = 200;

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Preparing a graph, which checks what it uses first.
fn prepare(device: &Arc<Device>, graph: &Arc<Graph>, clock: &dyn Clock) -> Duration {
    let start = clock.monotonic();
    Gpu::new(device.clone())
        .prepare(graph, DeviceId(0), CAPACITY, ValueLifetime::Needed)
        .expect("a card that computes rightly");
    clock.monotonic() - start
}

/// With nothing known; the same once its kernels are compiled; and with all of it known.
fn checks(graph: &Arc<Graph>, card: &Card, clock: &dyn Clock) -> Arc<Device> {
    let known = GpuCache::default();
    let start = clock.monotonic();
    let device = Device::open_with(card, Uses::default(), &known, VerificationScope::All).expect("a card");
    println!("{}, opened in {:.1} ms", device.info().name, milliseconds(clock.monotonic() - start));
    let first = prepare(&device, graph, clock);
    let passed = known.of(&device.info().key()).right;
    known.change(&device.info().key(), |known| known.right.clear());
    let again = prepare(&device, graph, clock);
    let prepared = prepare(&device, graph, clock);
    let [checked, run, prepared] =
        [first.saturating_sub(prepared), again.saturating_sub(prepared), prepared].map(milliseconds);
    println!("{} checks in {checked:.1} ms, {run:.1} ms of it once kernels are compiled", passed.len());
    println!("preparing without them: {prepared:.1} ms");
    passed.iter().for_each(|name| println!("  {name}"));
    device
}

/// Least and median time that with_progress a token takes.
fn with_progress(graph: &Arc<Graph>, device: Arc<Device>, returned: OutputSelection) {
    let mut executor = Executor::new(Graph::clone(graph), vec![Box::new(Gpu::new(device))], CAPACITY)
        .expect("memory for a narrow model");
    executor.select_output(returned);
    let clock = io::RealClock::new();
    let now: Now = Arc::new(move || clock.monotonic());
    executor.measure_submissions(Some(&now));
    let text = tokens(N_TOKENS, SMALL.n_vocab, 1);
    let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).collect();
    let (mut times, mut n_kernels) = (Vec::new(), 0);
    for at in 0..N_TOKENS {
        let batch = Batch {
            tokens: &text[at..=at],
            positions: &[at as u32],
            sequence: &[0],
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &[0],
        };
        executor.run(&batch).expect("a good batch");
        let effort = executor.effort();
        times.push(effort.time);
        n_kernels = effort.n_kernels;
    }
    times.sort();
    let [least, median] = [times[0], times[N_TOKENS / 2]].map(milliseconds);
    println!(
        "{returned:?}: {n_kernels} kernels a token, told in {least:.3} ms at best, {median:.3} ms in the median"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("Q4_K", String::as_str);
    let dtype = DType::from_name(name).expect("a block format");
    let card = GpuSelector::parse(arguments.get(1).map_or("", String::as_str));
    let shape = Shape { dtype, kv: KvDType::F16, n_layers: 16, ..SMALL };
    let graph = Arc::new(common::model(shape, 1));
    let device = checks(&graph, &card, &io::RealClock::new());
    for returned in [OutputSelection::Rows, OutputSelection::TopK(40)] {
        with_progress(&graph, device.clone(), returned);
    }
}
