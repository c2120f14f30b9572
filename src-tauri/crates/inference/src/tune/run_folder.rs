//! What a run's folder says: steps, the report, and answers to held-out prompts.

use std::path::Path;

use contract::types::{TuneAnswers, TuneReport, TuneStep};
use contract::{Error, Result};
use io::Io;
use serde::de::DeserializeOwned;

use super::files;

/// A step has about 100 bytes; a run of a million steps is far beyond any.
const MAX_STEPS_BYTES: u64 = 128 << 20;
/// A report has less than one KB, answers have less than 100.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// Steps that were done, in order. One that was done again after an interruption counts once.
///
/// Errors: those of the disk.
pub fn steps(folder: &Path, disk: &dyn Io) -> Result<Vec<TuneStep>> {
    let path = folder.join(files::STEPS);
    if !disk.exists(&path)? {
        return Ok(Vec::new());
    }
    let bytes = disk.read_within(&path, MAX_STEPS_BYTES)?;
    let mut steps: Vec<TuneStep> = Vec::new();
    // A line that was being written when the computer stopped is left out.
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(step) = serde_json::from_slice::<TuneStep>(line) else { continue };
        while steps.last().is_some_and(|last| last.step >= step.step) {
            steps.pop();
        }
        steps.push(step);
    }
    Ok(steps)
}

/// The report of a run. None: it is not complete.
///
/// Errors: `tune.report` if it is damaged; those of the disk.
pub fn report(folder: &Path, disk: &dyn Io) -> Result<Option<TuneReport>> {
    read(&folder.join(files::REPORT), disk)
}

/// Held-out prompts with the answers of both models. Empty: there are none, or they are damaged.
pub fn answers(folder: &Path, disk: &dyn Io) -> Vec<TuneAnswers> {
    // The report is worth more than they are.
    read(&folder.join(files::ANSWERS), disk)
        .unwrap_or_else(|error| {
            tracing::warn!("answers to held-out prompts are left out: {error}");
            None
        })
        .unwrap_or_default()
}

/// None: there is no such file.
fn read<T: DeserializeOwned>(path: &Path, disk: &dyn Io) -> Result<Option<T>> {
    if !disk.exists(path)? {
        return Ok(None);
    }
    let bytes = disk.read_within(path, MAX_REPORT_BYTES)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        let message = format!("{} cannot be read: {error}.", path.display());
        Error::input("tune.report", message, "Remove the run and start it again.")
    })
}
