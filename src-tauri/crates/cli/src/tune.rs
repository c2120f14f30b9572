//! `nook tune`: fine-tunes a model on this computer, or repeats one fixed training step for comparison.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use contract::types::{TuneAnswers, TuneReport, TuneStep};
use contract::{Error, Result};
use engine::Adapter;
use engine::train::{
    Dataset, ExampleEncoder, FixedBatch, LoraShape, RunSettings, Trainer, TrainerOptions, TuneRun,
};
use inference::tune::{self, AfterStep, AnswerSource, TuneDevice, TuneProgress, files, run_folder};
use io::{Clock, Io, RealClock, RealIo};
use platform::{DataDirs, calendar};
use serde_json::{Value, json};
use weights::WeightFile;

use crate::args::global::Global;
use crate::{interrupt, open_model, out};

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Library id or path of the model
    #[arg(long)]
    pub model: String,
    /// Chats as JSONL (messages, conversations, or prompt and completion), pairs as CSV, or plain text
    #[arg(long, value_name = "F", required_unless_present = "batch")]
    pub data: Option<PathBuf>,
    /// Folder for the adapter and the state of the run
    #[arg(long, value_name = "DIR", required_unless_present_any = ["batch", "preview"])]
    pub out: Option<PathBuf>,
    /// Rank of the adapter's matrices
    #[arg(long, value_name = "N")]
    pub rank: Option<usize>,
    /// Strength of the adapter: its update is divided by the rank and multiplied by this
    #[arg(long, value_name = "X")]
    pub alpha: Option<f64>,
    /// Learning rate after the warm-up
    #[arg(long, value_name = "X")]
    pub lr: Option<f64>,
    /// How often each example is learned
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// Longest example in tokens
    #[arg(long, value_name = "N")]
    pub seq: Option<usize>,
    /// Number that determines the first values, the held-out examples and the order
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Examples of one step
    #[arg(long, value_name = "N")]
    pub step_examples: Option<usize>,
    /// Continue a run that was interrupted
    #[arg(long)]
    pub resume: bool,
    /// Show what would be learned, and the time and memory it would take, without training
    #[arg(long, conflicts_with_all = ["batch", "resume"])]
    pub preview: bool,
    #[command(flatten)]
    pub fixed: FixedBatchArgs,
}

#[derive(Debug, Args)]
pub struct FixedBatchArgs {
    /// One batch of token ids to repeat, with optimizer settings
    #[arg(long, value_name = "F.json", conflicts_with_all = ["data", "out", "resume"])]
    #[arg(requires_all = ["adapter", "steps"])]
    pub batch: Option<PathBuf>,
    /// PEFT folder of the adapter to continue from
    #[arg(long, value_name = "DIR", requires = "batch")]
    pub adapter: Option<PathBuf>,
    /// Number of steps
    #[arg(long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub steps: Option<u64>,
    /// File for the gradients of the first step
    #[arg(long, value_name = "OUT.safetensors", requires = "batch")]
    pub gradients: Option<PathBuf>,
    /// Folder for the adapter after the last step
    #[arg(long, value_name = "DIR", requires = "batch")]
    pub save: Option<PathBuf>,
}

pub fn tune(global: &Global, args: &TuneArgs) -> Result<()> {
    match &args.fixed.batch {
        Some(batch) => repeat_batch(global, args, batch),
        None => run(global, args),
    }
}

fn device(global: &Global) -> Result<TuneDevice> {
    Ok(TuneDevice {
        threads: global.threads.map(|n| n as usize),
        backend: global.backend(),
        gpus: open_model::gpu_request(global)?,
        folder: Some(DataDirs::resolve(global.app_config()?.data_dir)?.data),
    })
}

/// Starts a trainer by `start` on the device of the flags, and says which GPU that is.
fn started(
    global: &Global,
    file: &WeightFile,
    n_ctx: usize,
    start: &mut dyn FnMut(TrainerOptions) -> engine::Result<Trainer>,
) -> Result<Trainer> {
    let options = TrainerOptions { n_ctx, ..TrainerOptions::for_memory(platform::memory::free_bytes()) };
    let mut notice = |error: Error| out::log(error.message());
    let trainer = device(global)?.start(file, options, &RealClock::new(), &mut notice, start)?;
    if let Some(name) = trainer.gpu_name() {
        out::log(&format!("{name} computes the products with the model's matrices."));
    }
    Ok(trainer)
}

fn repeat_batch(global: &Global, args: &TuneArgs, path: &Path) -> Result<()> {
    let batch = FixedBatch::parse(&open_model::read_text(path)?)?;
    let FixedBatchArgs { adapter, steps, gradients, save, .. } = &args.fixed;
    let folder = adapter.as_deref().unwrap_or(Path::new("."));
    let adapter = Adapter::open(folder)?;
    let longest = batch.examples.iter().map(|example| example.ids.len()).max().unwrap_or(1);
    let file = Arc::new(open_model::open(&args.model, global)?);
    let mut start = |options| Trainer::from_adapter(Arc::clone(&file), &adapter, options);
    let mut trainer = started(global, &file, longest, &mut start)?;
    let mut losses = Vec::new();
    for step in 0..steps.unwrap_or(1) {
        losses.push(trainer.compute_gradients(&batch.examples)?);
        if let Some(path) = gradients.as_deref().filter(|_| step == 0) {
            RealIo.write_atomic(path, &trainer.gradients_file())?;
        }
        trainer.step(&batch.adam, batch.lr);
    }
    if let Some(error) = trainer.take_gpu_incident() {
        return Err(error.into());
    }
    if let Some(to) = save {
        RealIo.create_dir_all(to)?;
        RealIo.write_atomic(&to.join(files::PEFT_WEIGHTS), &trainer.weights_file())?;
        // The settings are those it began with.
        let config = io::read_regular_file(&folder.join(files::PEFT_CONFIG), MAX_CONFIG_BYTES)?;
        RealIo.write_atomic(&to.join(files::PEFT_CONFIG), &config)?;
    }
    out::json(&json!({ "losses": losses }));
    Ok(())
}

/// Published ones have a few KB.
const MAX_CONFIG_BYTES: u64 = 4 << 20;
/// Examples that a preview shows.
const SHOWN_EXAMPLES: usize = 3;

fn settings(args: &TuneArgs, max_tokens: usize) -> RunSettings {
    let usual = RunSettings::default();
    let rank = args.rank.unwrap_or(usual.rank);
    RunSettings {
        rank,
        alpha: args.alpha.unwrap_or(usual.alpha),
        lr: args.lr.unwrap_or(usual.lr),
        epochs: args.epochs.unwrap_or(usual.epochs),
        max_tokens,
        step_examples: args.step_examples.unwrap_or(usual.step_examples),
        seed: args.seed.unwrap_or(usual.seed),
        ..usual
    }
}

fn run(global: &Global, args: &TuneArgs) -> Result<()> {
    let file = Arc::new(open_model::open(&args.model, global)?);
    let data = args.data.as_deref().unwrap_or(Path::new("-"));
    let max_tokens = tune::max_tokens(&file, args.seq)?;
    let settings = settings(args, max_tokens);
    let now = calendar::date_time(RealClock::new().now_utc_ms());
    let text = open_model::read_text(data)?;
    let dataset = tune::read_data(&text, &data.to_string_lossy(), &file, &settings, &now)?;
    if args.preview {
        return preview(&dataset, &file, settings, &device(global)?);
    }
    for skipped in &dataset.skipped {
        out::log(&format!("line {} is left out: {}", skipped.line, skipped.reason));
    }
    let folder = args.out.as_deref().unwrap_or(Path::new("."));
    RealIo.create_dir_all(folder)?;
    if let Some(report) = finished(folder, args.resume)? {
        show_result(global, &report);
        return Ok(());
    }
    let shape = LoraShape { rank: settings.rank, alpha: settings.alpha };
    let mut start = |options| Trainer::start(file.clone(), shape, settings.seed, options);
    let trainer = started(global, &file, settings.max_tokens, &mut start)?;
    let (state, model) = (folder.join(files::STATE), file.fingerprint());
    let run = match RealIo.exists(&state)? {
        true => TuneRun::resume(trainer, &dataset, settings, &model, &RealIo.read(&state)?)?,
        false => TuneRun::start(trainer, &dataset, settings, &model)?,
    };
    let threads = global.threads.map(|n| n as usize);
    let source = AnswerSource { file, dataset: &dataset, now: &now, threads };
    train(global, run, folder, &source)?.inspect(|report| show_result(global, report));
    Ok(())
}

/// Returns the report of a run that is complete. Error: the folder holds another run and `--resume` is missing.
fn finished(folder: &Path, resumes: bool) -> Result<Option<Value>> {
    let (report, state) = (folder.join(files::REPORT), folder.join(files::STATE));
    let (is_finished, is_begun) = (RealIo.exists(&report)?, RealIo.exists(&state)?);
    if !resumes && (is_finished || is_begun) {
        let message = format!("{} holds an earlier run.", folder.display());
        return Err(Error::input("tune.folder", message, "Use --resume to continue it, or another folder."));
    }
    if !is_finished {
        return Ok(None);
    }
    let answers = run_folder::answers(folder, &RealIo);
    Ok(run_folder::report(folder, &RealIo)?.map(|report| result_json(&report, &answers, folder)))
}

fn preview(
    dataset: &Dataset,
    file: &Arc<WeightFile>,
    settings: RunSettings,
    device: &TuneDevice,
) -> Result<()> {
    let foretold = tune::preview(file, dataset, settings, device, &RealClock::new())?;
    let encoder = ExampleEncoder::open(file, "")?;
    let shown = dataset.train.iter().take(SHOWN_EXAMPLES).map(|example| {
        let tokens = &example.tokens;
        let learned = tokens.ids.iter().zip(&tokens.is_learned).filter(|(_, is_learned)| **is_learned);
        let learned: Vec<u32> = learned.map(|(id, _)| *id).collect();
        let tokenizer = encoder.tokenizer();
        json!({
            "line": example.line,
            "text": tokenizer.decode(&tokens.ids),
            "learned": tokenizer.decode(&learned),
        })
    });
    let shown: Vec<Value> = shown.collect();
    let skipped = dataset.skipped.iter().map(|item| json!({"line": item.line, "reason": item.reason}));
    out::json(&json!({
        "examples": foretold.examples,
        "held_out": foretold.held_out,
        "tokens": foretold.tokens,
        "learned_tokens": foretold.learned_tokens,
        "steps": foretold.steps,
        "seconds": foretold.seconds,
        "gpu": foretold.gpu,
        "memory_bytes": foretold.memory_bytes,
        "skipped": skipped.collect::<Vec<_>>(),
        "first": shown,
    }));
    Ok(())
}

/// Trains to the end, saving the state after every step, and lets both models answer. `None`: interrupted.
fn train(
    global: &Global,
    mut run: TuneRun<'_>,
    folder: &Path,
    source: &AnswerSource<'_>,
) -> Result<Option<Value>> {
    let (stop, n_steps) = (interrupt::flag(), run.n_steps());
    let mut on_progress = |progress: TuneProgress| {
        let step = match &progress {
            TuneProgress::Step { step } => step,
            TuneProgress::Notice { error } => {
                out::log(error.message());
                return AfterStep::GoOn;
            }
            TuneProgress::Begun { .. } | TuneProgress::Done { .. } | TuneProgress::Failed { .. } => {
                return AfterStep::GoOn;
            }
        };
        show_step(global, step, n_steps);
        if !stop.load(Ordering::Relaxed) {
            return AfterStep::GoOn;
        }
        out::log(&format!("Interrupted after step {}: --resume continues.", step.step));
        AfterStep::Interrupt
    };
    if !tune::train(&mut run, folder, &RealIo, &RealClock::new(), &mut on_progress)? {
        return Ok(None);
    }
    let (report, missing) = tune::save(&run, folder, &RealIo)?;
    if let Some(why) = missing {
        out::log(&format!("There is no GGUF adapter: {why}."));
    }
    // The models that answer get the memory of the training.
    drop(run);
    let answers = tune::save_answers(source, folder, &RealIo, &RealClock::new());
    Ok(Some(result_json(&report, &answers, folder)))
}

/// A report as it is printed.
fn result_json(report: &TuneReport, answers: &[TuneAnswers], folder: &Path) -> Value {
    let TuneReport { before, after, steps, stopped_early, worse_than_before } = report;
    let mut json = json!({
        "before": before,
        "after": after,
        "adapter": folder.display().to_string(),
        "steps": steps,
        "stopped_early": stopped_early,
        "answers": answers,
    });
    if before.is_some() && after.is_some() {
        json["worse_than_before"] = json!(worse_than_before);
    }
    json
}

fn show_step(global: &Global, step: &TuneStep, n_steps: u64) {
    let TuneStep { step, loss, held_out, tok_s, .. } = *step;
    if global.json {
        return out::json(&json!({"step": step, "loss": loss, "held_out": held_out, "tok_s": tok_s}));
    }
    let held_out = held_out.map_or(String::new(), |loss| format!(", held out {loss:.4}"));
    out::line(&format!("step {step} of {n_steps}: loss {loss:.4}{held_out}, {tok_s:.0} tokens/s"));
}

fn show_result(global: &Global, report: &Value) {
    if global.json {
        return out::json(report);
    }
    let loss = |key: &str| report[key].as_f64().map_or("unknown".to_owned(), |loss| format!("{loss:.4}"));
    out::line(&format!("held-out loss {} before, {} after", loss("before"), loss("after")));
    if report["worse_than_before"] == json!(true) {
        out::line("This is worse than before: use fewer epochs, a smaller learning rate, or more examples.");
    }
    for answers in report["answers"].as_array().into_iter().flatten() {
        let text = |key: &str| answers[key].as_str().unwrap_or_default().replace('\n', "\n          ");
        out::line(&format!("\nprompt:   {}\nexpected: {}", text("prompt"), text("expected")));
        out::line(&format!("before:   {}\nafter:    {}", text("base"), text("tuned")));
    }
    out::line(&format!("adapter in {}", report["adapter"].as_str().unwrap_or_default()));
}
