//! `peer-candle`: candle's quantised Llama, asked what `nook bench` asks of us, in one JSON row per test on stdout.
//!
//! It keeps keys and values in f32 and goes no deeper than 4,096 tokens. It reads no vocabulary from a GGUF file, so
//! the time to a first token cannot be measured.

mod options;

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

use candle_core::quantized::gguf_file;
use candle_core::{Device, Result, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use options::{Kv, Options, ids};

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1)).and_then(possible);
    match options.and_then(|options| run(&options).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Options that candle has; its threads are rayon's.
fn possible(options: Options) -> std::result::Result<Options, String> {
    let threads = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok());
    if threads != Some(options.n_threads) {
        return Err(format!("candle takes its threads from RAYON_NUM_THREADS={}", options.n_threads));
    }
    let plain = options.repack && options.map && options.flash_attention && matches!(options.kv, Kv::F16);
    if !plain
        || options.first_token
        || options.time_depth
        || options.n_tokens() > 4096
        || options.depths != [0]
    {
        return Err("candle has no such setting".into());
    }
    Ok(options)
}

fn run(options: &Options) -> Result<()> {
    let mut reader = BufReader::new(File::open(&options.model)?);
    let content = gguf_file::Content::read(&mut reader)?;
    let n_vocab = match content.tensor_infos.get("token_embd.weight") {
        Some(table) => table.shape.dims()[0],
        None => candle_core::bail!("no table of embeddings"),
    };
    let mut model = ModelWeights::from_gguf(content, &mut reader, &Device::Cpu)?;
    if options.n_prompt > 0 {
        let tokens = ids(0, options.n_prompt, n_vocab);
        let seconds = timed(options, || forward(&mut model, &tokens, 0))?;
        show("pp", options.n_prompt, seconds);
    }
    if options.n_generated > 0 {
        let tokens = ids(0, options.n_generated, n_vocab);
        let seconds = timed(options, || {
            (0..tokens.len()).try_for_each(|at| forward(&mut model, &tokens[at..=at], at))
        })?;
        show("tg", options.n_generated, seconds);
    }
    Ok(())
}

/// Tokens at a position; at 0 a new sequence begins. The logits are those of the last.
fn forward(model: &mut ModelWeights, tokens: &[u32], position: usize) -> Result<()> {
    let input = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
    model.forward(&input, position).map(drop)
}

/// Seconds of the middle repetition, the first not counted.
fn timed(options: &Options, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut seconds = Vec::new();
    for repetition in 0..=options.n_repetitions {
        let start = Instant::now();
        work()?;
        if repetition > 0 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

fn show(kind: &str, n: usize, seconds: f64) {
    let tok_s = n as f64 / seconds;
    println!(r#"{{"engine":"candle","test":"{kind}{n}","depth":0,"kv":"f32","tok_s":{tok_s:.3}}}"#);
}
