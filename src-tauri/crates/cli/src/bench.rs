//! `nook bench`: prefill and decode speed, of a model or of random weights in a published shape.

mod compression;
mod concurrent;
mod editing;
mod fit;
mod kernel_cases;
mod kernels;
mod profile;
mod random_weights;
mod resume;
mod speed;
mod sustained;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use contract::Error;
use contract::ErrorKind;
use contract::Result;
use contract::protocol::Kv;
use engine::arch;
use engine::spec::Role;
use engine::speculate::DEFAULT_DRAFT_TOKENS;
use inference::profile::Trace;
use io::{Io, RealClock, RealIo};
use platform::DataDirs;
use weights::WeightFile;

use crate::args::global::Global;
use crate::open_model;
use random_weights::random_weights;
use speed::Bench;

use kernels::GROUPS;

#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub subject: BenchSubject,
    /// What is measured: reading and generating; an answer that repeats most of its prompt, with guesses and without;
    /// 32 conversations at once against one after another; what is foretold of a model beside what it takes; or how soon a conversation of --prompt tokens goes on after a
    /// restart
    #[arg(long, value_enum, default_value_t = BenchTest::Speed)]
    pub test: BenchTest,
    /// Prompt tokens; 0 leaves the test out
    #[arg(long, default_value_t = 512)]
    pub prompt: usize,
    /// Generated tokens; 0 leaves the test out
    #[arg(long = "gen", value_name = "N", default_value_t = 128)]
    pub generate: usize,
    /// Tokens that stand in the context before
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub depth: Vec<usize>,
    /// Fill depths beyond the first 1,024 tokens with copies of those: as slow to read, and soon made
    #[arg(long)]
    pub copied_depth: bool,
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Also show where the time goes: each operation's time, bytes and arithmetic, in further repetitions
    #[arg(long)]
    pub profile: bool,
    /// Write every step of one repetition to a file for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE.json", requires = "profile")]
    pub trace: Option<PathBuf>,
    /// Measure the kernels instead, all or one group: vector against reference, the cost of sharing out work, and
    /// what formats bring to decoding
    #[arg(long, value_name = "GROUP", num_args = 0..=1, default_missing_value = "all")]
    #[arg(conflicts_with_all = ["model", "shape", "depth", "sustained"])]
    #[arg(value_parser = GROUPS)]
    pub kernels: Option<String>,
    /// Generate for so long and show the speed of each minute, what heat leaves of it; with `--test concurrent`, how long
    /// many talk at once
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub sustained: Option<u32>,
    /// Leave the made-up model here
    #[arg(long, value_name = "F.gguf", requires = "shape")]
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchTest {
    Speed,
    Editing,
    Resume,
    /// What is still known of a conversation that was made shorter, by each strategy
    Compression,
    Concurrent,
    Fit,
}

impl BenchTest {
    /// Sequences that live at once.
    fn n_sequences(self) -> usize {
        match self {
            Self::Speed | Self::Editing | Self::Resume | Self::Fit => 1,
            Self::Compression => 2,
            Self::Concurrent => concurrent::N_TOGETHER,
        }
    }
}

#[derive(Debug, Args)]
#[group(required = false, multiple = false)]
pub struct BenchSubject {
    #[arg(long)]
    pub model: Option<String>,
    /// Random weights of a published shape, such as llama-3.2-1b:q4_k_m
    #[arg(long, value_name = "NAME:DTYPE")]
    pub shape: Option<String>,
}

pub fn bench(global: &Global, args: &BenchArgs) -> Result<()> {
    if let Some(group) = &args.kernels {
        return kernels::kernels(group, global);
    }
    let file = subject(global, args)?;
    if args.test == BenchTest::Fit {
        return fit::fit(global, file, args);
    }
    let per_turn = if args.sustained.is_some() { sustained::TURN_TOKENS } else { 0 };
    let deepest = args.depth.iter().copied().max().unwrap_or(0);
    let context = match args.test {
        BenchTest::Speed | BenchTest::Fit => deepest + args.prompt.max(args.generate).max(per_turn) + 1,
        BenchTest::Editing => editing::CONTEXT_TOKENS,
        BenchTest::Resume => args.prompt + 2,
        BenchTest::Compression => compression::CONTEXT_TOKENS,
        BenchTest::Concurrent => concurrent::CONTEXT_TOKENS,
    };
    let mut options = open_model::load_options(global, Kv::F16, context)?;
    options.max_sequences = args.test.n_sequences();
    let weight_bytes = bytes_per_pass(&file)?;
    let file = Arc::new(file);
    let load = || open_model::shared_model(Arc::clone(&file), &options, global);
    let mut model = load()?;
    if model.n_ctx() < context {
        return Err(Error::new(
            ErrorKind::Limit,
            "request.context_full",
            format!("This test needs a context of {context} tokens, but the model has {}.", model.n_ctx()),
            match args.test {
                BenchTest::Speed | BenchTest::Fit | BenchTest::Resume => {
                    "Give a smaller --depth, --prompt or --gen, or a larger --ctx."
                }
                BenchTest::Editing | BenchTest::Compression | BenchTest::Concurrent => {
                    "Choose a model with a longer context: the size of this test is fixed."
                }
            },
        ));
    }
    let BenchArgs { repeat, copied_depth, profile, .. } = *args;
    let (clock, json) = (RealClock::new(), global.json);
    model.promote_to_large_pages();
    let trace = args.trace.as_ref().map(|_| Trace::of(usize::MAX));
    let mut bench = Bench { model, weight_bytes, clock, repeat, copied_depth, profile, trace, json };
    if let (Some(seconds), BenchTest::Speed) = (args.sustained, args.test) {
        return sustained::sustained(&mut bench, seconds);
    }
    match args.test {
        BenchTest::Speed | BenchTest::Fit => {}
        BenchTest::Resume => {
            let cache = DataDirs::resolve(global.app_config()?.data_dir)?.cache;
            return resume::resume(bench, args.prompt.max(1), cache, load);
        }
        BenchTest::Compression => return compression::compression(&mut bench),
        BenchTest::Concurrent => return concurrent::concurrent(&mut bench, args.sustained.unwrap_or(60)),
        BenchTest::Editing => {
            return editing::editing(
                &mut bench,
                global.draft_max.map_or(DEFAULT_DRAFT_TOKENS, |n| n as usize),
            );
        }
    }
    for &depth in &args.depth {
        if args.prompt > 0 {
            bench.prefill(args.prompt, depth)?;
        }
        if args.generate > 0 {
            bench.decode(args.generate, depth)?;
        }
    }
    match (&args.trace, bench.trace.take()) {
        (Some(path), Some(trace)) => Ok(RealIo.write_atomic(path, trace.to_json().as_bytes())?),
        (Some(_), None) | (None, _) => Ok(()),
    }
}

/// The file that is measured.
fn subject(global: &Global, args: &BenchArgs) -> Result<WeightFile> {
    match (&args.subject.model, &args.subject.shape) {
        (Some(model), _) => open_model::open_to_run(model, global),
        (None, Some(shape)) => random_weights(shape, args.keep.as_deref(), global),
        (None, None) => Err(Error::new(
            ErrorKind::Usage,
            "usage.subject",
            "Nothing to measure was given.",
            "Use --model, --shape or --kernels.",
        )),
    }
}

/// Weights that every token needs: of experts those that are chosen, of a table of embeddings that is not the output
/// too only a row.
fn bytes_per_pass(file: &WeightFile) -> Result<u64> {
    let family = arch::find(file)?;
    let spec = arch::spec(file, family)?;
    let bytes_of = |placed: &arch::LocatedTensor| {
        let n_bytes: u64 = placed.parts.iter().map(|part| part.data.len() as u64).sum();
        match placed.role {
            Role::TokenEmbedding if !spec.tied_embeddings => 0,
            Role::PositionEmbedding | Role::PerLayerEmbedding => 0,
            _ => match placed.layer.and_then(|layer| spec.layers[layer].ffn.experts()) {
                Some(experts) if placed.role.is_expert_matrix() => {
                    n_bytes / experts.n_experts as u64 * experts.n_used as u64
                }
                _ => n_bytes,
            },
        }
    };
    Ok(arch::tensors(file, family, &spec)?.iter().map(bytes_of).sum())
}
