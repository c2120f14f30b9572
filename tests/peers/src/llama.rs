//! `peer-llama`: llama.cpp, asked what `nook bench` asks of us, in one JSON row per test on stdout.
//!
//! Tokens are the same ids, prompts end in the logits of their last token only, a first repetition is not counted.

#[path = "llama/divergence.rs"]
mod divergence;
#[path = "llama/image.rs"]
mod image;
mod options;
#[path = "llama/runner.rs"]
mod runner;

use std::process::ExitCode;
use std::time::Instant;

use options::{Options, ids};
use runner::Runner;

/// What the first token answers to.
const SHORT_PROMPT: &str = "The quick brown fox";

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(base) = &options.against {
        return divergence(options, base);
    }
    let mut runner = Runner::load(options)?;
    if options.first_token {
        let (id, text) = runner.first_token(SHORT_PROMPT)?;
        println!(
            r#"{{"engine":"llama.cpp","test":"load","depth":0,"id":{id},"bytes_of_text":{}}}"#,
            text.len()
        );
        return Ok(());
    }
    if options.mmproj.is_some() {
        return image(&mut runner, options);
    }
    for &depth in &options.depths {
        if options.time_depth && depth > 0 {
            the_way_down(&mut runner, options, depth)?;
        }
        if options.n_prompt > 0 {
            prefill(&mut runner, options, depth)?;
        }
        if options.n_generated > 0 {
            decode(&mut runner, options, depth)?;
        }
    }
    Ok(())
}

/// What quantized products cost on a text.
fn divergence(options: &Options, base: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(&options.text)
        .map_err(|error| format!("the text {}: {error}", options.text))?;
    let divergence::Divergence { n_tokens, mean_kl, top1_agreement } =
        divergence::measure(options, base, &text)?;
    println!(
        r#"{{"engine":"llama.cpp","test":"divergence","tokens":{n_tokens},"mean_kl":{mean_kl},"top1_agreement":{top1_agreement}}}"#
    );
    Ok(())
}

/// Seconds of an image, a row for each repetition.
fn image(runner: &mut Runner, options: &Options) -> Result<(), String> {
    let mut tower = image::Tower::load(options, runner)?;
    for repetition in 0..=options.n_repetitions {
        let image::ImageTimes { n_tokens, tower_s, image_prefill_s, text_prefill_s } =
            tower.measure(runner)?;
        if repetition > 0 {
            println!(
                r#"{{"engine":"llama.cpp","test":"image","tokens":{n_tokens},"tower_s":{tower_s},"image_prefill_s":{image_prefill_s},"text_prefill_s":{text_prefill_s}}}"#
            );
        }
    }
    Ok(())
}

/// Tokens whose computing touches all weights and buffers.
const WARM: usize = 512;

/// A prompt of `depth` tokens, once: the repetition that isn't counted is a short one.
fn the_way_down(runner: &mut Runner, options: &Options, depth: usize) -> Result<(), String> {
    runner.deepen(depth.min(WARM))?;
    let start = Instant::now();
    runner.deepen(depth)?;
    show(options, "pp", depth, 0, &[start.elapsed().as_secs_f64()]);
    Ok(())
}

/// A prompt after `depth` other tokens.
fn prefill(runner: &mut Runner, options: &Options, depth: usize) -> Result<(), String> {
    let n = options.n_prompt;
    let tokens = ids(depth, n, runner.n_vocab());
    let seconds = timed(runner, options, depth, &mut |runner| runner.decode(&tokens))?;
    show(options, "pp", n, depth, &seconds);
    Ok(())
}

/// Tokens one by one after `depth` others.
fn decode(runner: &mut Runner, options: &Options, depth: usize) -> Result<(), String> {
    let n = options.n_generated;
    let tokens = ids(depth, n, runner.n_vocab());
    let seconds = timed(runner, options, depth, &mut |runner| {
        tokens.iter().try_for_each(|token| runner.decode(std::slice::from_ref(token)))
    })?;
    show(options, "tg", n, depth, &seconds);
    Ok(())
}

/// Seconds of each repetition after the first.
fn timed(
    runner: &mut Runner,
    options: &Options,
    depth: usize,
    work: &mut dyn FnMut(&mut Runner) -> Result<(), String>,
) -> Result<Vec<f64>, String> {
    if runner.depth() != depth {
        match &options.kept {
            Some(path) if depth > 0 => runner.deepen_from(path, depth)?,
            _ => runner.deepen(depth)?,
        }
    }
    let mut seconds = Vec::new();
    for repetition in 0..=options.n_repetitions {
        let start = Instant::now();
        work(runner)?;
        if repetition > 0 {
            seconds.push(start.elapsed().as_secs_f64());
        }
        if !runner.truncate(depth) {
            runner.deepen(depth)?;
        }
    }
    Ok(seconds)
}

fn show(options: &Options, kind: &str, n: usize, depth: usize, seconds: &[f64]) {
    let mut speeds: Vec<f64> = seconds.iter().map(|seconds| n as f64 / seconds).collect();
    speeds.sort_by(f64::total_cmp);
    let (low, high) = (speeds[(speeds.len() - 1) / 2], speeds[speeds.len() / 2]);
    println!(
        r#"{{"engine":"llama.cpp","test":"{kind}{n}","depth":{depth},"kv":"{}","tok_s":{:.3}}}"#,
        options.kv.name(),
        (low + high) / 2.0
    );
}
