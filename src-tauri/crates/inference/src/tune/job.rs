//! A run as its folder describes it.

use std::path::Path;
use std::sync::Arc;

use contract::protocol::Location;
use contract::types::{TuneReport, TuneStep};
use contract::{Error, Result};
use engine::train::{LoraShape, RunSettings, Trainer, TrainerOptions, TuneRun};
use io::{Clock, FileLock, Io};
use serde::{Deserialize, Serialize};

use super::{AfterStep, AnswerSource, TuneDevice, files, read_data, run_folder, save, save_answers, train};
use crate::model_file;

/// The file of a folder that describes its run.
const JOB: &str = "job.json";
/// Locked by the process that runs it.
const LOCK: &str = "run.lock";
/// Longest data: every example is in memory, and training on more would take years.
const MAX_DATA_BYTES: u64 = 256 << 20;
/// A description has less than one KB.
const MAX_JOB_BYTES: u64 = 1 << 20;

/// What a run is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneJob {
    /// Library id of the model.
    pub model: String,
    /// Where the model lies.
    pub location: Location,
    /// File of the data, within the folder.
    pub data: String,
    /// What people call the data. Empty: it was made of chats.
    pub data_name: String,
    /// Number of chats that the data was made of.
    #[serde(default)]
    pub chats: Option<u32>,
    /// As chosen.
    pub settings: RunSettings,
    /// What computes it.
    #[serde(flatten)]
    pub device: TuneDevice,
    /// Local time at the beginning, for templates that print it: a resumed run sees the same text.
    pub now: String,
    /// When it was asked for.
    pub created_ms: i64,
    /// It ends with what it has learned so far, instead of continuing.
    pub is_ending: bool,
}

impl TuneJob {
    /// Reads the description in a folder.
    ///
    /// Errors: `tune.job` if it is damaged; those of the disk.
    pub fn read(folder: &Path, disk: &dyn Io) -> Result<Self> {
        let path = folder.join(JOB);
        let bytes = disk.read_within(&path, MAX_JOB_BYTES)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} does not describe a fine-tuning run: {error}.", path.display());
            Error::input("tune.job", message, "Remove the run and start it again.")
        })
    }

    /// Writes the description into a folder.
    ///
    /// Errors: those of the disk.
    pub fn write(&self, folder: &Path, disk: &dyn Io) -> Result<()> {
        let json = serde_json::to_vec(self).map_err(Error::bug)?;
        Ok(disk.write_atomic(&folder.join(JOB), &json)?)
    }

    /// Whether a process runs the job of a folder now.
    ///
    /// Errors: those of the disk.
    pub fn is_running(folder: &Path) -> Result<bool> {
        Ok(FileLock::is_held(&folder.join(LOCK))?)
    }
}

/// What a run says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TuneProgress {
    /// It is ready for its next step.
    Begun {
        /// Steps of the whole run.
        n_steps: u64,
        /// Held-out loss before the run.
        before: Option<f64>,
    },
    /// A step is done and saved.
    Step {
        /// Its losses and speed.
        step: TuneStep,
    },
    /// What the user should know though nothing failed.
    Notice {
        /// What it is.
        error: Error,
    },
    /// The adapter and the report are written.
    Done {
        /// How the run ended.
        report: TuneReport,
    },
    /// It could not continue.
    Failed {
        /// Why.
        error: Error,
    },
}

/// Runs the job of a folder from where it stands until it is complete, fails, or `on_progress` interrupts it.
pub fn run_job(
    folder: &Path,
    disk: &dyn Io,
    clock: &dyn Clock,
    on_progress: &mut dyn FnMut(TuneProgress) -> AfterStep,
) {
    match crate::guarded(|| run(folder, disk, clock, on_progress)) {
        Ok(Some(report)) => _ = on_progress(TuneProgress::Done { report }),
        Ok(None) => {}
        Err(error) => _ = on_progress(TuneProgress::Failed { error }),
    }
}

/// None: it was interrupted.
fn run(
    folder: &Path,
    disk: &dyn Io,
    clock: &dyn Clock,
    on_progress: &mut dyn FnMut(TuneProgress) -> AfterStep,
) -> Result<Option<TuneReport>> {
    let Some(_lock) = FileLock::try_acquire(&folder.join(LOCK))? else {
        let message = "Another process of Inglenook is working on this run.";
        return Err(Error::new(
            contract::ErrorKind::Conflict,
            "tune.running",
            message,
            "Pause it there, or wait until it has finished.",
        ));
    };
    // A run that was told to end while it wrote its report has ended.
    if let Some(report) = run_folder::report(folder, disk)? {
        return Ok(Some(report));
    }
    let job = TuneJob::read(folder, disk)?;
    let file = Arc::new(model_file::open(&job.location)?);
    let bytes = disk.read_within(&folder.join(&job.data), MAX_DATA_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let dataset = read_data(&text, &job.data, &file, &job.settings, &job.now)?;
    let n_ctx = job.settings.max_tokens;
    let options = TrainerOptions { n_ctx, ..TrainerOptions::for_memory(platform::memory::free_bytes()) };
    let shape = LoraShape { rank: job.settings.rank, alpha: job.settings.alpha };
    let mut start = |options| Trainer::start(Arc::clone(&file), shape, job.settings.seed, options);
    let mut notice = |error| _ = on_progress(TuneProgress::Notice { error });
    let trainer = job.device.start(&file, options, clock, &mut notice, &mut start)?;
    let (state, model) = (folder.join(files::STATE), file.fingerprint());
    let mut run = match disk.exists(&state)? {
        true => TuneRun::resume(trainer, &dataset, job.settings, &model, &disk.read(&state)?)?,
        false => TuneRun::start(trainer, &dataset, job.settings, &model)?,
    };
    if !steps_to_end(&mut run, &job, folder, (disk, clock), on_progress)? {
        return Ok(None);
    }
    let report = save(&run, folder, disk)?.0;
    // The models that answer get the memory of the training.
    drop(run);
    let source = AnswerSource { file, dataset: &dataset, now: &job.now, threads: job.device.threads };
    save_answers(&source, folder, disk, clock);
    Ok(Some(report))
}

/// Returns whether the run is complete.
fn steps_to_end(
    run: &mut TuneRun<'_>,
    job: &TuneJob,
    folder: &Path,
    (disk, clock): (&dyn Io, &dyn Clock),
    on_progress: &mut dyn FnMut(TuneProgress) -> AfterStep,
) -> Result<bool> {
    let begun = TuneProgress::Begun { n_steps: run.n_steps(), before: run.before() };
    if on_progress(begun) == AfterStep::Interrupt {
        return Ok(false);
    }
    let steps = folder.join(files::STEPS);
    let mut lost_line = None;
    let mut on_progress = |progress: TuneProgress| {
        if let TuneProgress::Step { step } = &progress {
            let line = serde_json::to_string(step).map(|json| format!("{json}\n")).unwrap_or_default();
            // The curve is worth less than the run.
            lost_line = disk.append(&steps, line.as_bytes()).err().or(lost_line.take());
        }
        on_progress(progress)
    };
    let is_complete = job.is_ending || train(run, folder, disk, clock, &mut on_progress)?;
    if let Some(error) = lost_line {
        tracing::warn!("steps are missing in the curve of a run: {error}");
    }
    Ok(is_complete)
}
