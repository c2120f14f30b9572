//! `nook bench`: prefill and decode speed, of a model or of random weights in a published shape.

mod compression;
mod concurrent;
mod draft_block;
mod editing;
mod fit;
mod image;
mod kernel_cases;
mod kernels;
mod profile;
mod random_weights;
mod resume;
mod scripted;
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

#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub subject: BenchSubject,
    /// What to measure
    #[arg(long, value_enum, default_value_t = BenchTest::Speed)]
    pub test: BenchTest,
    /// Number of prompt tokens; 0 skips the prefill test
    #[arg(long, default_value_t = 512)]
    pub prompt: usize,
    /// Number of generated tokens; 0 skips the decode test
    #[arg(long = "gen", value_name = "N", default_value_t = 128)]
    pub generate: usize,
    /// Number of tokens already in the context; may be a list
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub depth: Vec<usize>,
    /// Compute only the first 1,024 tokens of the depth and copy them: same speed, faster setup
    #[arg(long)]
    pub copied_depth: bool,
    /// Number of repetitions of each test
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Also show time, bytes and arithmetic of each operation, measured in additional repetitions
    #[arg(long)]
    pub profile: bool,
    /// Write every step of one repetition as a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE.json", requires = "profile")]
    pub trace: Option<PathBuf>,
    /// Measure kernels instead, all or one group: SIMD against reference, thread pool overhead, and decode speed by
    /// format
    #[arg(long, value_name = "GROUP", num_args = 0..=1, default_missing_value = "all")]
    #[arg(conflicts_with_all = ["model", "shape", "depth", "sustained"])]
    #[arg(value_parser = kernels::group_parser())]
    pub kernels: Option<String>,
    /// Generate for this time and show the speed of each minute, to see thermal throttling. With `--test concurrent`:
    /// duration of the test
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub sustained: Option<u32>,
    /// With `--test image`: width and height in pixels
    #[arg(long, value_name = "WxH", default_value = "1024x768", value_parser = crate::vision::size)]
    pub image_size: vision::PictureSize,
    /// With `--test draft-block`: percent of the drafts that are right
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub right: u8,
    /// Keep the generated model in this file. With `--test image`: its vision tower beside it, as mmproj-F.gguf
    #[arg(long, value_name = "F.gguf", requires = "shape")]
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchTest {
    /// Prefill and decode speed
    Speed,
    /// An answer that repeats most of its prompt, with speculative decoding and without
    Editing,
    /// An answer with the model's own draft block and without (multi-token prediction)
    DraftBlock,
    /// Time to continue a conversation of --prompt tokens after a restart
    Resume,
    /// Recall and perplexity of a conversation after each compaction method
    Compression,
    /// 32 conversations at once, compared with one after another
    Concurrent,
    /// Time to see an image and to read its tokens, compared with as many tokens of text
    Image,
    /// Estimated memory and speed, compared with the measured ones
    Fit,
}

impl BenchTest {
    /// Number of sequences in memory at the same time.
    fn n_sequences(self) -> usize {
        match self {
            Self::Speed | Self::Editing | Self::DraftBlock | Self::Resume | Self::Image | Self::Fit => 1,
            Self::Compression => 2,
            Self::Concurrent => concurrent::N_TOGETHER,
        }
    }
}

#[derive(Debug, Args)]
#[group(required = false, multiple = false)]
pub struct BenchSubject {
    /// Library id or path
    #[arg(long)]
    pub model: Option<String>,
    /// Random weights in the shape of a published model, such as llama-3.2-1b:q4_k_m
    #[arg(long, value_name = "NAME:DTYPE")]
    pub shape: Option<String>,
}

pub fn bench(global: &Global, args: &BenchArgs) -> Result<()> {
    if let Some(group) = &args.kernels {
        return kernels::kernels(group, global);
    }
    let file = subject(global, args)?;
    match args.test {
        BenchTest::Fit => return fit::fit(global, file, args),
        BenchTest::Image => return image::image(global, file, args),
        _ => {}
    }
    let context = required_context(args);
    let mut options = open_model::load_options(global, Kv::F16, context)?;
    options.max_sequences = args.test.n_sequences();
    if args.test == BenchTest::DraftBlock {
        open_model::require_drafts(&mut options, global)?;
    }
    let weight_bytes = bytes_per_pass(&file)?;
    let file = Arc::new(file);
    let load = || open_model::shared_model(Arc::clone(&file), &options, global);
    let mut model = load()?;
    if model.n_ctx() < context {
        return Err(context_too_short(args.test, context, model.n_ctx()));
    }
    let BenchArgs { repeat, copied_depth, profile, .. } = *args;
    let (clock, json) = (RealClock::new(), global.json);
    model.promote_to_large_pages();
    let trace = args.trace.as_ref().map(|_| Trace::of(usize::MAX));
    let mut bench = Bench { model, weight_bytes, clock, repeat, copied_depth, profile, trace, json };
    if let (Some(seconds), BenchTest::Speed) = (args.sustained, args.test) {
        return sustained::sustained(&mut bench, seconds);
    }
    let longest_draft = global.draft_max.map_or(DEFAULT_DRAFT_TOKENS, |n| n as usize);
    match args.test {
        BenchTest::Speed | BenchTest::Image | BenchTest::Fit => {}
        BenchTest::Resume => {
            let cache = DataDirs::resolve(global.app_config()?.data_dir)?.cache;
            return resume::resume(bench, args.prompt.max(1), cache, load);
        }
        BenchTest::Compression => return compression::compression(&mut bench),
        BenchTest::Concurrent => return concurrent::concurrent(&mut bench, args.sustained.unwrap_or(60)),
        BenchTest::Editing => return editing::editing(&mut bench, longest_draft),
        BenchTest::DraftBlock => return draft_block::draft_block(&mut bench, longest_draft, args.right),
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

/// Context that the test needs, in tokens.
fn required_context(args: &BenchArgs) -> usize {
    let per_turn = if args.sustained.is_some() { sustained::TURN_TOKENS } else { 0 };
    let deepest = args.depth.iter().copied().max().unwrap_or(0);
    match args.test {
        BenchTest::Speed | BenchTest::Image | BenchTest::Fit => {
            deepest + args.prompt.max(args.generate).max(per_turn) + 1
        }
        BenchTest::Editing => editing::CONTEXT_TOKENS,
        BenchTest::DraftBlock => draft_block::CONTEXT_TOKENS,
        BenchTest::Resume => args.prompt + 2,
        BenchTest::Compression => compression::CONTEXT_TOKENS,
        BenchTest::Concurrent => concurrent::CONTEXT_TOKENS,
    }
}

fn context_too_short(test: BenchTest, context: usize, n_ctx: usize) -> Error {
    let remedy = match test {
        BenchTest::Speed | BenchTest::Fit | BenchTest::Resume => {
            "Give a smaller --depth, --prompt or --gen, or a larger --ctx."
        }
        BenchTest::Editing
        | BenchTest::DraftBlock
        | BenchTest::Compression
        | BenchTest::Concurrent
        | BenchTest::Image => "Choose a model with a longer context: the size of this test is fixed.",
    };
    let message = format!("This test needs a context of {context} tokens, but the model has {n_ctx}.");
    Error::new(ErrorKind::Limit, "request.context_full", message, remedy)
}

/// Opens or generates the model to measure.
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

/// Bytes of weights that one token reads. Counts only the used experts, and an embedding table only if it is also the
/// output.
fn bytes_per_pass(file: &WeightFile) -> Result<u64> {
    let family = arch::find(file)?;
    let spec = arch::spec(file, family)?;
    let bytes_of = |placed: &arch::LocatedTensor| {
        let n_bytes: u64 = placed.parts.iter().map(|part| part.data.len() as u64).sum();
        match placed.role {
            Role::TokenEmbedding if !spec.tied_embeddings => 0,
            Role::PositionEmbedding | Role::PerLayerEmbedding => 0,
            _ => match placed.layer.and_then(|layer| spec.layers[layer].ffn.experts()) {
                Some(experts) if placed.role.is_routed_matrix() => {
                    n_bytes / experts.n_experts as u64 * experts.n_used as u64
                }
                _ => n_bytes,
            },
        }
    };
    Ok(arch::tensors(file, family, &spec)?.iter().map(bytes_of).sum())
}
