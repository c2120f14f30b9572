//! Speed of a GPU on random weights in the shape of a published model, in total and by kind of step:
//! `cargo run --release -p engine --example gpu_bench -- SHAPE:MIX F.gguf [PRECISION] [PROMPT] [GENERATED] [ROWS]`.
//! The file is written where it is missing. With a PROMPT of 0 tokens only answers are measured, by kernels as they are
//! before tuning.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Chunk, Devices, LoadOptions, LogitsSelection, Model, SequenceId, TokenId, shape};
use kernels::{GpuCache, Precision};
use weights::WeightFile;

/// Repetitions of each test after one to warm up.
const N_REPETITIONS: usize = 3;
const WRITE_BUFFER_BYTES: usize = 64 << 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [wanted, path, rest @ ..] = &args[..] else { return Err("SHAPE:MIX and a file are missing".into()) };
    let number = |i: usize, default: usize| rest.get(i).map_or(Ok(default), |text| text.parse::<usize>());
    let gpu_precision = match rest.first().map_or("auto", String::as_str) {
        "auto" => Precision::Auto,
        "f32" => Precision::F32,
        "f16" => Precision::F16,
        "matrices" => Precision::Matrices,
        other => return Err(format!("{other} is no precision").into()),
    };
    let (n_prompt, n_generated) = (number(1, 512)?, number(2, 128)?);
    write_weights(wanted, Path::new(path))?;
    let file = Arc::new(WeightFile::open(Path::new(path))?);
    let options = LoadOptions {
        devices: Devices::Gpu { layers: None },
        gpu_precision,
        ctx: Some(n_prompt.max(n_generated) + 1),
        max_sequences: 1,
        max_rows: rest.get(3).map(|n| n.parse()).transpose()?,
        gpu_cache: GpuCache::default(),
        ..LoadOptions::default()
    };
    let began = Instant::now();
    let mut model = Model::load(file.clone(), &options, &mut |_| {})?;
    println!("{wanted} {gpu_precision:?}: loaded in {:.2} s", began.elapsed().as_secs_f64());
    while let Some(incident) = model.take_gpu_incident() {
        println!("{incident:?}");
    }
    if let Some(error) = &model.info().fallback_error {
        return Err(error.to_string().into());
    }
    if n_prompt > 0 {
        let began = Instant::now();
        while model.tune(&|| began.elapsed())? {}
        println!("tuned in {:.2} s", began.elapsed().as_secs_f64());
        // what was tuned applies from the next load on
        drop(model);
        model = Model::load(file, &options, &mut |_| {})?;
    }
    let seq = model.new_sequence()?;
    if n_prompt > 0 {
        measure(&mut model, seq, &format!("pp{n_prompt}"), n_prompt, n_prompt)?;
    }
    measure(&mut model, seq, &format!("tg{n_generated}"), n_generated, 1)
}

fn write_weights(wanted: &str, path: &Path) -> Result<(), Failure> {
    if path.exists() {
        return Ok(());
    }
    let (name, mix) = wanted.split_once(':').ok_or("a shape is NAME:MIX")?;
    let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, File::create(path)?);
    shape::write(&shape::find(name)?, shape::mix(mix)?, 1, &mut out)?;
    Ok(out.flush()?)
}

/// Prints tokens per second of `n` tokens, `at_once` in each run, and the time of each kind of step.
fn measure(model: &mut Model, seq: SequenceId, name: &str, n: usize, at_once: usize) -> Result<(), Failure> {
    let tokens: Vec<TokenId> =
        (0..n).map(|at| ((at * 7919 + 17) % model.info().n_vocab) as TokenId).collect();
    let mut rates = Vec::new();
    for _ in 0..=N_REPETITIONS {
        let began = Instant::now();
        for tokens in tokens.chunks(at_once) {
            model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }])?;
        }
        rates.push(n as f64 / began.elapsed().as_secs_f64());
        model.truncate(seq, 0)?;
    }
    let mut measured = rates.split_off(1);
    measured.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.1} tokens/s ({:.1} to {:.1})",
        measured[1],
        measured[0],
        measured[N_REPETITIONS - 1]
    );
    let mut steps: BTreeMap<String, (u32, Duration, u64, u64)> = BTreeMap::new();
    model.set_step_timing(true)?;
    let mut total = Duration::ZERO;
    for tokens in tokens.chunks(at_once) {
        let chunk = [Chunk { seq, tokens, logits: LogitsSelection::Last }];
        model.forward_observed(&chunk, &mut |ran| {
            let Some(span) = ran.span() else { return };
            let step = steps.entry(format!("{} {}", ran.operation(), ran.label())).or_default();
            let (time, cost) = (span.end.saturating_sub(span.start), ran.cost());
            total += time;
            *step = (step.0 + 1, step.1 + time, step.2 + cost.bytes, step.3 + cost.ops);
        })?;
    }
    model.set_step_timing(false)?;
    model.truncate(seq, 0)?;
    println!(
        "  in kernels {:.3} ms per run",
        total.as_secs_f64() * 1e3 / tokens.len().div_ceil(at_once) as f64
    );
    let mut steps: Vec<_> = steps.into_iter().collect();
    steps.sort_by_key(|(_, (_, time, _, _))| std::cmp::Reverse(*time));
    for (name, (calls, time, bytes, ops)) in steps {
        let seconds = time.as_secs_f64();
        println!(
            "  {:>5.1} %  {:>8.2} µs  {calls:>5} ×  {:>7.1} GB/s  {:>6.2} TFLOP/s  {name}",
            100.0 * seconds / total.as_secs_f64(),
            seconds * 1e6 / f64::from(calls),
            bytes as f64 / seconds / 1e9,
            ops as f64 / seconds / 1e12,
        );
    }
    Ok(())
}
