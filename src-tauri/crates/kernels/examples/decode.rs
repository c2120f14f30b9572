//! Measures decoding with the shape of a published 1B model and random weights, in total and per step.
//!
//! cargo run --release -p kernels --example decode -- [dtype] [threads] [position] [rows] [kv]

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Random, SMALL, Shape};
use io::Clock;
use kernels::*;
use weights::{DType, SharedBytes, TensorView};

/// Llama 3.2 1B.
fn shape(dtype: DType, kv: KvDType) -> Shape {
    Shape {
        d: 2048,
        n_heads: 32,
        n_kv_heads: 8,
        head_dim: 64,
        ffn: 8192,
        n_vocab: 128_256,
        n_layers: 16,
        dtype,
        kv,
        ..SMALL
    }
}

/// A matrix whose rows repeat a short random pattern: as large as a real one, but quick to generate.
fn matrix(r: &mut Random, dtype: DType, rows: usize, cols: usize) -> Tensor {
    let some = r.tensor(dtype, &[16, cols], 1.0 / (cols as f32).sqrt());
    let bytes = some.bytes().iter().copied().cycle().take(rows * dtype.row_bytes(cols)).collect();
    let view = TensorView { name: "random", dtype, shape: &[rows, cols], data: SharedBytes::from_vec(bytes) };
    Tensor::host(&view).expect("a whole matrix")
}

/// Best and median time of a step, and the best time of each step of the plan.
fn report(
    name: &str,
    rows: usize,
    gigabytes: f64,
    mut times: Vec<Duration>,
    profile: &BTreeMap<String, Duration>,
) {
    times.sort();
    let best = times[0];
    println!(
        "{name}: {gigabytes:.3} GB of weights, best {best:.2?}, median {:.2?}: {:.1} tokens/s, {:.2} GB/s",
        times[times.len() / 2],
        rows as f64 / best.as_secs_f64(),
        gigabytes / best.as_secs_f64(),
    );
    // the best time of each step, summed over layers: the time on an idle machine
    let mut sums: BTreeMap<&str, Duration> = BTreeMap::new();
    for (name, time) in profile {
        *sums.entry(name.split_once('.').map_or(name, |(_, op)| op)).or_default() += *time;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let total: Duration = sums.iter().map(|(_, time)| *time).sum();
    println!("best of each step: {total:.2?}, {:.2} GB/s", gigabytes / total.as_secs_f64());
    for (name, time) in sums {
        println!("{name:>14} {time:.3?}");
    }
}

/// Runs steps of `rows` tokens from `position` on. Every second one is observed, which costs time, and is not timed.
fn measure(
    executor: &mut Executor,
    position: usize,
    rows: usize,
    n_pages: usize,
) -> (Vec<Duration>, BTreeMap<String, Duration>) {
    let clock = io::RealClock::new();
    let pages: Vec<u32> = (0..n_pages as u32).collect();
    let mut times = Vec::new();
    let mut profile: BTreeMap<String, Duration> = BTreeMap::new();
    for step in 0..20.max(200 / rows.max(10)) {
        let positions: Vec<u32> = (0..rows as u32).map(|i| (position + i as usize) as u32).collect();
        let outputs = [rows as u32 - 1];
        let batch = Batch {
            tokens: &vec![7; rows],
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &vec![0; rows],
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &outputs,
        };
        let start = clock.monotonic();
        let mut last = start;
        let mut observe = |ran: &StepProfile| {
            let now = clock.monotonic();
            let best = profile.entry(ran.name().to_owned()).or_insert(Duration::MAX);
            *best = (*best).min(now - last);
            last = clock.monotonic();
        };
        let observer: Option<Observer> = if step % 2 == 1 { Some(&mut observe) } else { None };
        executor.run_observed(&batch, observer).expect("a good batch");
        if step % 2 == 0 {
            times.push(clock.monotonic() - start);
        }
        if rows > 1 && step > 4 {
            break;
        }
    }
    (times, profile)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: usize| arguments.get(i).map_or(default, |a| a.parse().expect("a number"));
    let name = arguments.first().map_or("Q8_0", String::as_str);
    let dtype = DType::from_name(name).expect("a block format");
    let (threads, position, rows) = (number(1, 2), number(2, 100), number(3, 1));
    let kv = match arguments.get(4).map_or("f16", String::as_str) {
        "f32" => KvDType::F32,
        "f16" => KvDType::F16,
        "q8_0" => KvDType::Q8_0,
        "q4_0" => KvDType::Q4_0,
        other => panic!("no format of keys and values: {other}"),
    };
    let shape = shape(dtype, kv);
    let mut bytes = 0;
    let graph = common::model_of(shape, &mut Random(1), &mut |r, rows, cols| {
        let tensor = matrix(r, dtype, rows, cols);
        bytes += tensor.bytes().len();
        tensor
    });
    bytes -= shape.n_vocab * dtype.row_bytes(shape.d); // the embedding is read a row at a time
    let n_pages = (position + rows).div_ceil(PAGE_LEN) + 16;
    let capacity = Capacity {
        n_pages,
        n_window_pages: 0,
        n_requantized_pages: 0,
        max_rows: rows.max(64),
        max_outputs: 1,
        n_states: 0,
    };
    let cpu = Cpu::new(CpuOptions { threads: Some(threads), level: None, ..CpuOptions::default() })
        .expect("threads");
    println!("{}", cpu.describe());
    let mut executor = Executor::new(graph, vec![Box::new(cpu)], capacity).expect("memory");
    let (times, profile) = measure(&mut executor, position, rows, n_pages);
    report(name, rows, bytes as f64 / 1e9, times, &profile);
}
