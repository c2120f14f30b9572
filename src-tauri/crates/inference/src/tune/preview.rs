//! What a run would learn, and what it would take on this computer.

use std::sync::Arc;

use contract::Result;
use contract::types::{TuneExample, TunePiece, TunePreview, TuneSkipped};
use engine::tokenizer::Tokenizer;
use engine::train::{
    Dataset, ExampleEncoder, LoraShape, RunSettings, Trainer, TrainerOptions, TrainingExample,
};
use io::Clock;
use weights::WeightFile;

use super::TuneDevice;

/// Examples that are shown whole.
const SHOWN_EXAMPLES: usize = 5;
/// Left-out items that are named.
const SHOWN_SKIPPED: usize = 20;
/// Tokens of the step that is measured: enough for a speed, and seconds with a large model.
const MEASURED_TOKENS: usize = 32;
/// The program itself, its vocabulary and the examples, in bytes.
const PROGRAM_BYTES: u64 = 96 << 20;

/// Describes a run and measures a short step of it.
///
/// Errors: `tune.*` for models that cannot be trained.
pub fn preview(
    file: &Arc<WeightFile>,
    dataset: &Dataset,
    settings: RunSettings,
    device: &TuneDevice,
    clock: &dyn Clock,
) -> Result<TunePreview> {
    let encoder = ExampleEncoder::open(file, "")?;
    let free_bytes = platform::memory::free_bytes();
    let options = TrainerOptions { n_ctx: settings.max_tokens, ..TrainerOptions::for_memory(free_bytes) };
    let shape = LoraShape { rank: settings.rank, alpha: settings.alpha };
    let mut start = |options| Trainer::start(Arc::clone(file), shape, settings.seed, options);
    // The run itself will say it.
    let mut trainer = device.start(file, options, clock, &mut |_| (), &mut start)?;
    let longest = dataset.train.iter().map(|example| example.tokens.ids.len()).max().unwrap_or(0);
    let step = trainer.peak_bytes(longest, longest * settings.step_examples);
    let memory_bytes = file.len_bytes() + step + PROGRAM_BYTES;
    let seconds_per_token = seconds_per_token(&mut trainer, dataset, clock)?;
    let n_tokens = |of: &dyn Fn(&TrainingExample) -> usize| {
        dataset.train.iter().map(|example| of(&example.tokens) as u64).sum::<u64>()
    };
    let tokens = n_tokens(&|example| example.ids.len());
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let skipped = dataset.skipped.iter().take(SHOWN_SKIPPED);
    Ok(TunePreview {
        examples: count(dataset.train.len()),
        held_out: count(dataset.held_out.len()),
        tokens,
        learned_tokens: n_tokens(&TrainingExample::n_learned),
        max_tokens: count(settings.max_tokens),
        steps: (dataset.train.len().div_ceil(settings.step_examples.max(1)) * settings.epochs) as u64,
        seconds: tokens as f64 * settings.epochs as f64 * seconds_per_token,
        gpu: trainer.gpu_name().map(str::to_owned),
        memory_bytes,
        free_bytes,
        first: dataset.train.iter().take(SHOWN_EXAMPLES).map(|it| example(it, encoder.tokenizer())).collect(),
        chats: None,
        n_skipped: count(dataset.skipped.len()),
        skipped: skipped.map(|it| TuneSkipped { line: count(it.line), reason: it.reason.clone() }).collect(),
    })
}

/// Measures a step on the beginning of the longest example.
fn seconds_per_token(trainer: &mut Trainer, dataset: &Dataset, clock: &dyn Clock) -> Result<f64> {
    let longest = dataset.train.iter().max_by_key(|example| example.tokens.ids.len());
    let Some(longest) = longest else { return Ok(0.0) };
    let ids: Vec<_> = longest.tokens.ids.iter().copied().take(MEASURED_TOKENS).collect();
    let n = ids.len();
    let example = TrainingExample { ids, is_learned: vec![true; n] };
    if trainer.gpu_name().is_some() {
        // The first pass uploads the model and compiles kernels.
        trainer.compute_gradients(std::slice::from_ref(&example))?;
    }
    let before = clock.monotonic();
    trainer.compute_gradients(std::slice::from_ref(&example))?;
    Ok(clock.monotonic().saturating_sub(before).as_secs_f64() / n.max(1) as f64)
}

/// Cuts an example where learned tokens begin or end.
fn example(example: &engine::train::LabelledExample, tokenizer: &Tokenizer) -> TuneExample {
    let TrainingExample { ids, is_learned } = &example.tokens;
    let runs = is_learned.chunk_by(|a, b| a == b);
    let mut at = 0;
    let pieces = runs.map(|run| {
        let of = &ids[at..at + run.len()];
        at += run.len();
        TunePiece { text: tokenizer.decode(of), is_learned: run[0] }
    });
    TuneExample { line: u32::try_from(example.line).unwrap_or(u32::MAX), pieces: pieces.collect() }
}
