//! A run over a dataset, step by step: which examples, at which rate, and how far it has come.
//!
//! Guarantees: with one seed every step depends only on the state before it, so that a resumed run ends with the same
//! matrices, bit for bit.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, LabelledExample};
use super::optimizer::{AdamW, LearningRate};
use super::state;
use super::trainer::{Trainer, TrainingExample};
use crate::error::{EngineError, Result};

/// Settings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Rank of each pair.
    pub rank: usize,
    /// The update is B · A · alpha / rank.
    pub alpha: f64,
    /// Learning rate after the warm-up.
    pub lr: f64,
    /// How often each example is learned.
    pub epochs: usize,
    /// Longest example in tokens.
    pub max_tokens: usize,
    /// Examples of one step.
    pub step_examples: usize,
    /// Determines the first values, the held-out examples and the order.
    pub seed: u64,
    /// Length that gradients are shortened to.
    pub clip: f64,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            rank: 16,
            alpha: 32.0,
            lr: 2e-4,
            epochs: 3,
            max_tokens: 2048,
            step_examples: 4,
            seed: 0,
            clip: 1.0,
        }
    }
}

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepReport {
    /// From 1.
    pub step: u64,
    /// Mean loss of the step's examples, before it.
    pub loss: f64,
    /// Mean loss of the held-out examples after it, where it was measured.
    pub held_out: Option<f64>,
    /// Tokens that were learned from.
    pub n_tokens: usize,
}

/// What a state file says besides the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RunHeader {
    settings: RunSettings,
    /// Hash of the data.
    data: u64,
    /// Hash of the model.
    model: String,
    before: Option<f64>,
    /// Held-out losses so far.
    measured: Vec<f64>,
    has_stopped: bool,
}

/// A run in progress.
pub struct TuneRun<'a> {
    trainer: Trainer,
    dataset: &'a Dataset,
    header: RunHeader,
    /// Examples to measure, encoded.
    held_out: Vec<TrainingExample>,
}

/// Measurements of the held-out loss in a run, besides those before it.
const MEASUREMENTS: u64 = 10;
/// A run ends when the held-out loss has risen this often in a row.
const MAX_RISES: usize = 3;
/// Share of the steps that warm up.
const WARMUP_DIVISOR: u64 = 20;

impl<'a> TuneRun<'a> {
    /// Starts a run: measures the held-out loss. `model` is the model's fingerprint.
    ///
    /// Errors: `tune.*` for settings; those of a pass.
    pub fn start(
        mut trainer: Trainer,
        dataset: &'a Dataset,
        settings: RunSettings,
        model: &str,
    ) -> Result<Self> {
        check(&settings)?;
        let held_out = encoded(&dataset.held_out);
        let before = match held_out.is_empty() {
            true => None,
            false => Some(trainer.loss(&held_out)?),
        };
        let (data, model) = (dataset.fingerprint(), model.to_owned());
        let header = RunHeader { settings, data, model, before, measured: Vec::new(), has_stopped: false };
        Ok(Self { trainer, dataset, header, held_out })
    }

    /// Continues from the bytes of [`TuneRun::state`]. `trainer` was started with the same settings.
    ///
    /// Errors: `tune.state_damaged`; `tune.resume` if model, data or settings differ.
    pub fn resume(
        mut trainer: Trainer,
        dataset: &'a Dataset,
        settings: RunSettings,
        model: &str,
        bytes: &[u8],
    ) -> Result<Self> {
        let saved: state::RunState<RunHeader> = state::decode(bytes)?;
        let header = saved.header;
        let differing = if header.model != model {
            Some("model")
        } else if header.data != dataset.fingerprint() {
            Some("data")
        } else if header.settings != settings || !trainer.restore(saved.parameters, saved.moments) {
            Some("settings")
        } else {
            None
        };
        if let Some(what) = differing {
            return Err(EngineError::new(
                "tune.resume",
                format!("this run was started with another {what}"),
                "Resume it with the same model, data and settings, or start a new run in another folder.",
            ));
        }
        Ok(Self { trainer, dataset, header, held_out: encoded(&dataset.held_out) })
    }

    /// Returns the state after the last step.
    ///
    /// Errors: none in practice.
    pub fn state(&self) -> Result<Vec<u8>> {
        state::encode(&self.header, self.trainer.parameters(), self.trainer.moments())
    }

    /// Returns the settings.
    pub fn settings(&self) -> RunSettings {
        self.header.settings
    }

    /// Returns the number of steps of the whole run.
    pub fn n_steps(&self) -> u64 {
        let per_epoch = self.dataset.train.len().div_ceil(self.header.settings.step_examples);
        (per_epoch * self.header.settings.epochs) as u64
    }

    /// Returns the number of steps done.
    pub fn n_done(&self) -> u64 {
        self.trainer.moments().n_steps
    }

    /// Returns the held-out loss before the run.
    pub fn before(&self) -> Option<f64> {
        self.header.before
    }

    /// Returns the held-out loss as last measured.
    pub fn after(&self) -> Option<f64> {
        self.header.measured.last().copied()
    }

    /// Returns whether the run ended early because the held-out loss rose.
    pub fn has_stopped(&self) -> bool {
        self.header.has_stopped
    }

    /// Returns the model in training.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Returns why the GPU has failed since the last call. The CPU has gone on.
    pub fn take_gpu_incident(&mut self) -> Option<EngineError> {
        self.trainer.take_gpu_incident()
    }

    /// Does the next step. `None`: the run is complete.
    ///
    /// Errors: those of a pass; `tune.diverged`.
    pub fn step(&mut self) -> Result<Option<StepReport>> {
        let (n_done, n_steps) = (self.n_done(), self.n_steps());
        if n_done >= n_steps || self.header.has_stopped {
            return Ok(None);
        }
        let settings = self.header.settings;
        let examples = self.examples_of(n_done);
        let loss = self.trainer.compute_gradients(&examples)?;
        self.trainer.clip(settings.clip);
        let warmup = (n_steps / WARMUP_DIVISOR).max(1);
        let rate = LearningRate { peak: settings.lr, warmup, total: n_steps };
        self.trainer.step(&AdamW::default(), rate.at(n_done));
        let step = n_done + 1;
        let interval = n_steps.div_ceil(MEASUREMENTS);
        let is_due = (step == n_steps || step.is_multiple_of(interval)) && !self.held_out.is_empty();
        let held_out = if is_due { Some(self.measure()?) } else { None };
        let n_tokens = examples.iter().map(|example| example.ids.len()).sum();
        Ok(Some(StepReport { step, loss, held_out, n_tokens }))
    }

    fn measure(&mut self) -> Result<f64> {
        let loss = self.trainer.loss(&self.held_out)?;
        let measured = &mut self.header.measured;
        measured.push(loss);
        let rises = measured.windows(2).rev().take_while(|pair| pair[1] > pair[0]).count();
        self.header.has_stopped = rises >= MAX_RISES;
        Ok(loss)
    }

    /// Every epoch has its own order, which depends on the seed and the epoch alone.
    fn examples_of(&self, step: u64) -> Vec<TrainingExample> {
        let RunSettings { step_examples, seed, .. } = self.header.settings;
        let per_epoch = self.dataset.train.len().div_ceil(step_examples) as u64;
        let (epoch, at) = (step / per_epoch, (step % per_epoch) as usize);
        let mut order: Vec<usize> = (0..self.dataset.train.len()).collect();
        order.shuffle(&mut StdRng::seed_from_u64(seed.wrapping_add(epoch + 1)));
        let part = order.iter().skip(at * step_examples).take(step_examples);
        part.map(|i| self.dataset.train[*i].tokens.clone()).collect()
    }
}

fn encoded(examples: &[LabelledExample]) -> Vec<TrainingExample> {
    examples.iter().map(|example| example.tokens.clone()).collect()
}

/// Errors: `tune.setting`.
fn check(settings: &RunSettings) -> Result<()> {
    let wrong = |what: &str, value: String| {
        let message = format!("{what} is {value}, which is out of range");
        Err(EngineError::new("tune.setting", message, "Use a positive number."))
    };
    let RunSettings { lr, epochs, step_examples, clip, .. } = *settings;
    if !(lr.is_finite() && lr > 0.0) {
        return wrong("the learning rate", lr.to_string());
    }
    if !(clip.is_finite() && clip > 0.0) {
        return wrong("the limit of gradients", clip.to_string());
    }
    if epochs == 0 || step_examples == 0 {
        return wrong("the number of epochs or of examples per step", "0".into());
    }
    Ok(())
}
