//! Fine-tuning as a job in a folder: the data, the state after each step, and at the end the adapter with a report.
//!
//! Guarantees that ending a run at any time loses at most the step that it is in.

mod answers;
mod chats;
mod device;
mod job;
mod preview;
pub mod process;
pub mod run_folder;

use std::path::Path;
use std::time::Duration;

use contract::types::{TuneAnswers, TuneReport, TuneStep};
use contract::{Error, Result};
use engine::arch;
use engine::train::{DataFormat, Dataset, ExampleEncoder, LoraShape, RunSettings, TuneRun, parse};
use io::{Clock, Io};
use weights::WeightFile;

pub use answers::{AnswerSource, answer_held_out};
pub use chats::{ChatData, chat_data};
pub use device::TuneDevice;
pub use job::{TuneJob, TuneProgress, run_job};
pub use preview::preview;

/// Files of a run's folder.
pub mod files {
    /// Weights of the adapter in PEFT's format.
    pub const PEFT_WEIGHTS: &str = "adapter_model.safetensors";
    /// Settings of the adapter in PEFT's format.
    pub const PEFT_CONFIG: &str = "adapter_config.json";
    /// The adapter as GGUF.
    pub const GGUF_ADAPTER: &str = "adapter.gguf";
    /// State after the last step of a run that is not complete.
    pub const STATE: &str = "tune.state";
    /// Report of a run that is complete.
    pub const REPORT: &str = "tune.json";
    /// Held-out prompts with the answers of both models.
    pub const ANSWERS: &str = "answers.json";
    /// A line for each step.
    pub const STEPS: &str = "steps.jsonl";
}

/// Longest example in tokens, whatever the model's context.
const MAX_TOKENS: usize = 2048;
/// One token to read and one to learn.
const MIN_TOKENS: usize = 2;

/// Longest example of a model in tokens: `asked`, or as long as possible.
///
/// Errors: `tune.seq` for a length that the model cannot read.
pub fn max_tokens(file: &WeightFile, asked: Option<usize>) -> Result<usize> {
    let longest = arch::spec(file, arch::find(file)?)?.context_length.min(MAX_TOKENS);
    let tokens = asked.unwrap_or(longest);
    if (MIN_TOKENS..=longest).contains(&tokens) {
        return Ok(tokens);
    }
    let message = format!("Examples of this model can have {MIN_TOKENS} to {longest} tokens.");
    Err(Error::input("tune.seq", message, "Choose another length of examples."))
}

/// Encodes data for a model. The ending of `name` says what the text is; `now` is the local time for templates.
///
/// Errors: `tune.no_examples`.
pub fn read_data(
    text: &str,
    name: &str,
    file: &WeightFile,
    settings: &RunSettings,
    now: &str,
) -> Result<Dataset> {
    let encoder = ExampleEncoder::open(file, now)?;
    let items = parse(text, DataFormat::of_name(name));
    Ok(Dataset::new(items, &encoder, settings.max_tokens, settings.seed)?)
}

/// Whether a run goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterStep {
    /// The next step follows.
    GoOn,
    /// The run is interrupted; its state is saved.
    Interrupt,
}

/// Runs to the end, saving the state after every step, and tells of steps and notices. Returns whether the run is complete.
///
/// Errors: those of a pass and of the disk.
pub fn train(
    run: &mut TuneRun<'_>,
    folder: &Path,
    disk: &dyn Io,
    clock: &dyn Clock,
    on_progress: &mut dyn FnMut(TuneProgress) -> AfterStep,
) -> Result<bool> {
    let state = folder.join(files::STATE);
    if run.n_done() == 0 {
        disk.write_atomic(&state, &run.state()?)?;
    }
    loop {
        let before = clock.monotonic();
        let Some(done) = run.step()? else { return Ok(true) };
        disk.write_atomic(&state, &run.state()?)?;
        let seconds = clock.monotonic().saturating_sub(before).max(Duration::from_micros(1)).as_secs_f64();
        let step = TuneStep {
            step: done.step,
            loss: done.loss,
            held_out: done.held_out,
            tok_s: done.n_tokens as f64 / seconds,
            seconds,
        };
        if let Some(error) = run.take_gpu_incident() {
            on_progress(TuneProgress::Notice { error: device::gpu_failed(&error) });
        }
        if on_progress(TuneProgress::Step { step }) == AfterStep::Interrupt {
            return Ok(false);
        }
    }
}

/// Writes the adapter in both formats, then the report, and removes the state. Also returns why there is no GGUF
/// adapter, if there is none.
///
/// Errors: those of the disk.
pub fn save(run: &TuneRun<'_>, folder: &Path, disk: &dyn Io) -> Result<(TuneReport, Option<String>)> {
    let (trainer, settings) = (run.trainer(), run.settings());
    let shape = LoraShape { rank: settings.rank, alpha: settings.alpha };
    disk.write_atomic(&folder.join(files::PEFT_WEIGHTS), &trainer.weights_file())?;
    disk.write_atomic(&folder.join(files::PEFT_CONFIG), trainer.peft_config(shape).as_bytes())?;
    let missing = match trainer.gguf_adapter(settings.alpha) {
        Ok(bytes) => {
            disk.write_atomic(&folder.join(files::GGUF_ADAPTER), &bytes)?;
            None
        }
        Err(error) => Some(error.to_string()),
    };
    let (before, after) = (run.before(), run.after());
    let report = TuneReport {
        before,
        after,
        steps: run.n_done(),
        stopped_early: run.has_stopped(),
        worse_than_before: before.zip(after).is_some_and(|(before, after)| after > before),
    };
    let json = serde_json::to_vec(&report).map_err(Error::bug)?;
    disk.write_atomic(&folder.join(files::REPORT), &json)?;
    disk.remove_file(&folder.join(files::STATE))?;
    Ok((report, missing))
}

/// Lets both models answer held-out prompts and stores the answers beside the adapter in `folder`. None are stored where
/// that fails: the adapter is worth more than they are.
pub fn save_answers(
    source: &AnswerSource<'_>,
    folder: &Path,
    disk: &dyn Io,
    clock: &dyn Clock,
) -> Vec<TuneAnswers> {
    let answered = crate::guarded(|| {
        let answers = answer_held_out(source, folder, clock)?;
        let json = serde_json::to_vec(&answers).map_err(Error::bug)?;
        disk.write_atomic(&folder.join(files::ANSWERS), &json)?;
        Ok(answers)
    });
    answered.unwrap_or_else(|error| {
        tracing::warn!("held-out prompts are not answered: {error}");
        Vec::new()
    })
}
