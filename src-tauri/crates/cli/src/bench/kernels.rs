//! `nook bench --kernels`: SIMD kernels against the reference kernels on one thread, and decode speed by format.
//!
//! Both sides run the same graph in alternation, so only the kernels differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use contract::Result;
use engine::{Chunk, LoadOptions, LogitsSelection, Model, SequenceId, shape};
use io::{Clock, RealClock};
use kernels::cpu::isa::IsaLevel;
use kernels::cpu::thread_pool::ThreadPool;
use kernels::matmul::{MATMULS, OutTile, WeightRows, generic};
use kernels::ops::dot;
use kernels::{Batch, Capacity, Cpu, CpuOptions, Executor, GivenRows, PAGE_LEN, Scalar, StepProfile, Tensor};
use serde::Serialize;
use weights::{DType, SharedBytes, WeightFile};

use super::kernel_cases::{self, Case};
use super::speed::Spread;
use crate::args::global::Global;
use crate::{open_model, out};

/// A fast path compared with the reference.
#[derive(Debug, Serialize)]
struct KernelRow {
    group: &'static str,
    kernel: String,
    level: &'static str,
    /// Speedup over the reference: median, minimum and maximum of the turns.
    ratio: Spread,
    reference_us: f64,
    us: f64,
    /// Required minimum of the ratio.
    bar: Option<f64>,
    met: Option<bool>,
}

/// Decode speed of one shape in one format.
#[derive(Debug, Serialize)]
struct DecodeRow {
    group: &'static str,
    dtype: String,
    tok_s: Spread,
    bytes_per_token: u64,
    gb_s: f64,
    /// Speedup over f32, by turn.
    over_f32: Spread,
    bar: Option<f64>,
    met: Option<bool>,
}

/// Turns of each side; odd, so the median is one of them.
const TURNS: usize = 7;

/// Values of `--kernels`.
const GROUPS: [&str; 8] =
    ["all", "matmul", "attention", "activation", "other", "quantising", "pool", "decode"];

/// Earlier name of the group `pool`, for scripts that were written for it.
const EARLIER_POOL: &str = "team";

/// Reads a value of `--kernels`.
pub fn group_parser() -> impl TypedValueParser<Value = String> {
    let values = GROUPS.map(|name| {
        let value = PossibleValue::new(name);
        if name == "pool" { value.alias(EARLIER_POOL) } else { value }
    });
    PossibleValuesParser::new(values).map(|name| if name == EARLIER_POOL { "pool".into() } else { name })
}

pub fn kernels(group: &str, global: &Global) -> Result<()> {
    let wanted = |name: &str| group == "all" || group == name;
    let level = IsaLevel::from_env().map_err(engine::EngineError::from)?;
    let clock = RealClock::new();
    for case in kernel_cases::all(level)?.iter().filter(|case| wanted(case.group)) {
        turns(case, level, &clock, global.json)?;
    }
    if wanted("quantising") {
        quantising(level, &clock, global.json);
    }
    if wanted("pool") {
        region(global, &clock)?;
    }
    if wanted("decode") {
        decoding(global, &clock)?;
    }
    Ok(())
}

/// Reference and fast path on one case, turn about.
fn turns(case: &Case, level: IsaLevel, clock: &dyn Clock, json: bool) -> Result<()> {
    let cpu = Cpu::new(CpuOptions { threads: Some(1), level: Some(level), ..CpuOptions::default() });
    let n_pages = (case.before + case.n_rows).div_ceil(PAGE_LEN);
    let capacity = Capacity {
        n_pages,
        n_window_pages: 0,
        n_requantized_pages: 0,
        max_rows: MAX_ROWS,
        max_outputs: 1,
        n_states: 0,
    };
    let executor = |device| Executor::new(case.graph.clone(), vec![device], capacity);
    let error = |error: kernels::KernelError| engine::EngineError::from(error);
    let mut reference = executor(Box::new(Scalar::new())).map_err(error)?;
    let mut fast = executor(Box::new(cpu.map_err(error)?)).map_err(error)?;
    let pages: Vec<u32> = (0..n_pages as u32).collect();
    for start in (0..case.before).step_by(MAX_ROWS) {
        let n = (case.before - start).min(MAX_ROWS);
        step(&mut reference, &pages, start, n, case, clock)?;
        step(&mut fast, &pages, start, n, case, clock)?;
    }
    let (mut slow_us, mut fast_us, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let slow = match &case.weight {
            Some(weight) => product(weight, case.n_rows, clock),
            None => step(&mut reference, &pages, case.before, case.n_rows, case, clock)?,
        };
        let runs = (0..RUNS).map(|_| step(&mut fast, &pages, case.before, case.n_rows, case, clock));
        let quick: Duration = runs.sum::<Result<Duration>>()? / RUNS;
        if turn > 0 {
            let us = |time: Duration| (time.as_secs_f64() * 1e6).max(1e-3);
            slow_us.push(us(slow));
            fast_us.push(us(quick));
            ratios.push(us(slow) / us(quick));
        }
    }
    show(case.group, &case.name, case.bar, level, ratios, slow_us, fast_us, json);
    Ok(())
}

/// Reference matmul: decodes each weight row, then accumulates sequentially.
fn product(weight: &Tensor, n_rows: usize, clock: &dyn Clock) -> Duration {
    let (k, n_out) = (weight.n_cols(), weight.n_rows());
    let x = kernel_cases::numbers(n_rows * k);
    let (mut row, mut out) = (vec![0.0; k], vec![0.0; n_rows * n_out]);
    let w = WeightRows { bytes: weight.bytes(), row_bytes: weight.row_bytes(), k, next: &[] };
    let start = clock.monotonic();
    generic::rows(dot::scalar, weight.codec(), w, &x, &mut row, &mut OutTile::whole(&mut out, n_out));
    std::hint::black_box(&out);
    clock.monotonic() - start
}

/// Largest number of rows in one run of a case.
const MAX_ROWS: usize = 64;
/// Runs of the fast path in one turn, since each is shorter.
const RUNS: u32 = 5;

/// Time of the steps of one operation.
fn step(
    executor: &mut Executor,
    pages: &[u32],
    before: usize,
    n: usize,
    case: &Case,
    clock: &dyn Clock,
) -> Result<Duration> {
    let positions: Vec<u32> = (before as u32..(before + n) as u32).collect();
    let tokens: Vec<u32> = positions.iter().map(|p| p % kernel_cases::N_VOCAB as u32).collect();
    let batch = Batch {
        tokens: &tokens,
        positions: &positions,
        kinds: &[],
        given: GivenRows::default(),
        sequence: &vec![0; n],
        page_tables: &[pages],
        window_tables: &[],
        states: &[],
        outputs: &[n as u32 - 1],
    };
    let (mut last, mut time) = (clock.monotonic(), Duration::ZERO);
    let mut observe = |ran: &StepProfile| {
        let now = clock.monotonic();
        if ran.name() == case.node {
            time += now - last;
        }
        last = now;
    };
    executor.run_observed(&batch, Some(&mut observe)).map_err(engine::EngineError::from)?;
    Ok(time)
}

#[allow(clippy::too_many_arguments)] // a row's columns
fn show(
    group: &'static str,
    kernel: &str,
    bar: Option<f64>,
    level: IsaLevel,
    ratios: Vec<f64>,
    reference: Vec<f64>,
    fast: Vec<f64>,
    json: bool,
) {
    let ratio = Spread::of(ratios);
    let row = KernelRow {
        group,
        kernel: kernel.to_owned(),
        level: level.name(),
        ratio,
        reference_us: Spread::of(reference).median,
        us: Spread::of(fast).median,
        bar,
        met: bar.map(|bar| ratio.median >= bar),
    };
    if json {
        return out::json(&row);
    }
    let KernelRow { reference_us, us, .. } = row;
    out::line(&format!(
        "{group:<11} {kernel:<34} {:>7.1} × reference  ({:.1} to {:.1})  {us:>9.1} µs for {reference_us:>9.1} µs{}",
        ratio.median,
        ratio.min,
        ratio.max,
        verdict(row.bar, row.met),
    ));
}

fn verdict(bar: Option<f64>, met: Option<bool>) -> String {
    match (bar, met) {
        (Some(bar), Some(true)) => format!("  at least {bar}: yes"),
        (Some(bar), _) => format!("  at least {bar}: NO"),
        (None, _) => String::new(),
    }
}

/// Length of the quantized row of activations.
const N_QUANTIZED_VALUES: usize = 8192;

/// Quantization of activations for matmuls, against the reference encoders of the formats.
fn quantising(level: IsaLevel, clock: &dyn Clock, json: bool) {
    let x = kernel_cases::numbers(N_QUANTIZED_VALUES);
    for (dtype, like) in [(DType::Q8_0, DType::Q8_0), (DType::Q8_K, DType::Q4_K)] {
        let row = MATMULS.iter().copied().flatten().find(|row| row.dtype == like && row.level == level);
        let (Some(row), Some(encode)) = (row, dtype.encoder()) else { continue };
        let mut bytes = vec![0; dtype.row_bytes(N_QUANTIZED_VALUES)];
        let mut q = vec![0; N_QUANTIZED_VALUES];
        let mut scales = vec![0.0; row.act.n_scales(N_QUANTIZED_VALUES)];
        let mut sums = vec![0; row.act.n_sums(N_QUANTIZED_VALUES)];
        let (mut slow_us, mut fast_us, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..=TURNS {
            let slow = timed(clock, || encode(&x, &mut bytes));
            let quick = timed(clock, || (row.quantize)(&x, &mut q, &mut scales, &mut sums));
            if turn > 0 {
                slow_us.push(slow);
                fast_us.push(quick);
                ratios.push(slow / quick);
            }
        }
        let name = format!("activations to {}", dtype.name());
        show("quantising", &name, Some(2.0), level, ratios, slow_us, fast_us, json);
    }
}

/// Mean time of one call in microseconds.
fn timed(clock: &dyn Clock, mut work: impl FnMut()) -> f64 {
    const CALLS: u32 = 50;
    let start = clock.monotonic();
    (0..CALLS).for_each(|_| work());
    ((clock.monotonic() - start).as_secs_f64() * 1e6 / f64::from(CALLS)).max(1e-4)
}

/// Overhead of the thread pool.
fn region(global: &Global, clock: &dyn Clock) -> Result<()> {
    let threads = match global.threads {
        Some(n) => n as usize,
        None => kernels::devices::describe().map_err(engine::EngineError::from)?.n_threads,
    };
    let error = |error: kernels::KernelError| engine::EngineError::from(error);
    let mut pool = ThreadPool::new(threads).map_err(error)?;
    let empty = regions(clock, 20_000, &mut || _ = pool.run(threads, &|_, _| ()));
    let arrived = AtomicUsize::new(0);
    let met = regions(clock, 2_000, &mut || {
        arrived.store(0, Ordering::SeqCst);
        // every thread waits for the last one
        let meet = |_: usize, _: usize| {
            arrived.fetch_add(1, Ordering::SeqCst);
            let mut rounds = 0;
            while arrived.load(Ordering::SeqCst) < threads {
                // with fewer cores than threads, the others need this core
                if rounds < 1000 {
                    std::hint::spin_loop()
                } else {
                    std::thread::yield_now()
                }
                rounds += 1;
            }
        };
        _ = pool.run(threads, &meet);
    });
    if global.json {
        let row = serde_json::json!({
            "group": "pool", "threads": threads, "empty_region_ns": empty, "meeting_region_ns": met,
        });
        out::json(&row);
        return Ok(());
    }
    for (what, ns) in [("an empty region", empty), ("a region where all meet", met)] {
        let Spread { median, min, max } = ns;
        out::line(&format!("pool        {what:<34} {median:>7.0} ns  ({min:.0} to {max:.0})"));
    }
    Ok(())
}

/// Time of one region in nanoseconds.
fn regions(clock: &dyn Clock, n: u32, region: &mut dyn FnMut()) -> Spread {
    let mut turn = || {
        let start = clock.monotonic();
        (0..n).for_each(|_| region());
        (clock.monotonic() - start).as_secs_f64() * 1e9 / f64::from(n)
    };
    turn(); // warm-up
    Spread::of((0..TURNS).map(|_| turn()).collect())
}

/// Tokens generated in one turn.
const TOKENS: usize = 12;

/// Compares three formats on a few layers of a published shape, each larger than the caches.
fn decoding(global: &Global, clock: &dyn Clock) -> Result<()> {
    let published = shape::find("llama-3.2-1b")?;
    let slice = shape::Shape { n_layers: 4, n_vocab: 4096, ..published };
    let mut models = Vec::new();
    for (name, bar) in [("f32", None), ("q8_0", Some(2.0)), ("q4_0", Some(3.5))] {
        let mut bytes = Vec::new();
        shape::write(&slice, shape::mix(name)?, 1, &mut bytes)?;
        let file = WeightFile::from_bytes(name, SharedBytes::from_vec(bytes))?;
        let weight_bytes = super::bytes_per_pass(&file)?;
        let options = LoadOptions {
            max_sequences: 1,
            ..open_model::load_options(global, contract::protocol::Kv::F16, 2 * TOKENS)?
        };
        let mut model = Model::load(Arc::new(file), &options, &mut |_| {})?;
        let seq = model.new_sequence()?;
        models.push((name, bar, weight_bytes, model, seq));
    }
    let mut speeds: Vec<Vec<f64>> = vec![Vec::new(); models.len()];
    for turn in 0..=TURNS {
        for (speeds, (_, _, _, model, seq)) in speeds.iter_mut().zip(&mut models) {
            let speed = tokens_per_second(model, *seq, clock)?;
            if turn > 0 {
                speeds.push(speed);
            }
        }
    }
    for (of, (name, bar, bytes, ..)) in speeds.iter().zip(&models) {
        let ratios = of.iter().zip(&speeds[0]).map(|(speed, f32_speed)| speed / f32_speed).collect();
        let (tok_s, over_f32) = (Spread::of(of.clone()), Spread::of(ratios));
        let row = DecodeRow {
            group: "decode",
            dtype: (*name).to_owned(),
            tok_s,
            bytes_per_token: *bytes,
            gb_s: tok_s.median * *bytes as f64 / 1e9,
            over_f32,
            bar: *bar,
            met: bar.map(|bar| over_f32.median >= bar),
        };
        if global.json {
            out::json(&row);
            continue;
        }
        out::line(&format!(
            "decode      {name:<34} {:>7.2} × f32  ({:.2} to {:.2})  {:.1} tok/s of {:.1} MB, {:.1} GB/s{}",
            over_f32.median,
            over_f32.min,
            over_f32.max,
            tok_s.median,
            *bytes as f64 / 1e6,
            row.gb_s,
            verdict(row.bar, row.met),
        ));
    }
    Ok(())
}

fn tokens_per_second(model: &mut Model, seq: SequenceId, clock: &dyn Clock) -> Result<f64> {
    let start = clock.monotonic();
    for token in 0..TOKENS as u32 {
        model.forward(&[Chunk { seq, tokens: &[token], logits: LogitsSelection::Last }])?;
    }
    let seconds = (clock.monotonic() - start).as_secs_f64();
    model.truncate(seq, 0)?;
    Ok(TOKENS as f64 / seconds.max(1e-9))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn the_earlier_name_of_a_group_is_accepted() {
        let command = Command::new("bench").arg(Arg::new("kernels").value_parser(group_parser()));
        let read = |name: &str| {
            let matches = command.clone().try_get_matches_from(["bench", name]).ok()?;
            matches.get_one::<String>("kernels").cloned()
        };
        let cases = [("pool", Some("pool")), ("team", Some("pool")), ("matmul", Some("matmul")), ("x", None)];
        for (name, group) in cases {
            assert_eq!(read(name).as_deref(), group, "{name}");
        }
    }
}
