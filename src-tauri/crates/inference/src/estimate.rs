//! Will it run here? Estimates from a model's memory figures, this computer and the load options.
//! Arithmetic on plain data, identical for a file on disk, a header, and a published model.

mod draft;
mod gpu;
pub mod offers;
mod published;

use std::collections::BTreeMap;

use engine::memory_estimate::MemoryEstimate;
use serde::{Deserialize, Serialize};

use crate::{engine_types, memory_budget};
use contract::protocol::Kv;
use contract::settings::DEFAULT_CONTEXT;
use contract::types::{FitMeasured, FitNeeds, FitVerdict, ModelFit};

pub use draft::DraftEstimate;
pub use gpu::{GpuShare, TargetGpu};
pub use published::sizes as published;

/// Human reading speed, in tokens per second: slower answers keep people waiting.
const READING_TOK_S: f64 = 5.0;

/// Tokens that a conversation holds at its beginning.
const BEGINNING: u32 = 256;

/// A measured speed this far from what was foretold is believed; further off, something else was going on.
const BELIEVED: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Models of no more bytes stay in the caches of most processors between two tokens; larger ones count as if none did.
const CACHED_BYTES: u64 = 8 << 20;

/// What this computer has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineFacts {
    /// Memory that a model could have now. None: the system doesn't say.
    pub free_bytes: Option<u64>,
    pub total_bytes: Option<u64>,
    pub speeds: MeasuredSpeeds,
    /// The GPU that would compute, if requested. None: there is none.
    pub gpu: Option<TargetGpu>,
}

/// What was measured of this computer. Without formats: nothing was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSpeeds {
    /// How fast weights of each are read and multiplied: bytes per second.
    pub formats: BTreeMap<String, f64>,
    /// The same of models that caches hold between two tokens.
    #[serde(default)]
    pub cached: BTreeMap<String, f64>,
    #[serde(flatten)]
    pub beside: OverheadCosts,
}

/// What a token costs apart from its weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OverheadCosts {
    /// Seconds of a layer: work that is handed out and waited for, norms, rotations.
    pub layer_s: f64,
    /// Seconds for one value of a query against one position.
    pub attended_s: f64,
}

impl MeasuredSpeeds {
    /// Speed for a format in a model that reads `n_bytes` per token.
    fn of(&self, format: &str, n_bytes: u64) -> Option<f64> {
        let cached = if n_bytes <= CACHED_BYTES { self.cached.get(format).copied() } else { None };
        cached.or_else(|| self.of_memory(format))
    }

    /// Of a format that wasn't measured: that of a mix of it (`Q4_K` for `Q4_K_M`), else the slowest there is.
    fn of_memory(&self, format: &str) -> Option<f64> {
        let format = format.to_uppercase();
        let kin = self.formats.iter().filter(|(name, _)| format.starts_with(name.as_str()));
        let kin = kin.max_by_key(|(name, _)| name.len()).map(|(_, speed)| *speed);
        kin.or_else(|| self.formats.values().copied().reduce(f64::min))
    }

    /// Of keys and values: they are read as floats are.
    fn of_context(&self) -> Option<f64> {
        self.formats.values().copied().reduce(f64::max)
    }
}

/// How the model is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadDefaults {
    pub context: u32,
    pub kv: Kv,
    /// Requested layers on the GPU.
    pub gpu_share: GpuShare,
    /// Bytes of it that a model may take at most. None: what it has room for.
    pub gpu_limit: Option<u64>,
    /// What drafts for it. None: nothing that is loaded beside it.
    pub draft: Option<DraftEstimate>,
}

impl Default for LoadDefaults {
    fn default() -> Self {
        Self {
            context: DEFAULT_CONTEXT,
            kv: Kv::default(),
            gpu_share: GpuShare::default(),
            gpu_limit: None,
            draft: None,
        }
    }
}

/// Where a memory estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EstimateBasis {
    /// The file, or its header.
    Exactly,
    /// What is published.
    About,
}

/// The numbers and the verdict. `run`: what was measured of the same model before.
pub fn estimate(
    memory_estimate: &MemoryEstimate,
    known: EstimateBasis,
    here: &MachineFacts,
    asked: &LoadDefaults,
    run: Option<FitMeasured>,
) -> ModelFit {
    let memory_estimate = &*DraftEstimate::with_target(asked.draft.as_ref(), memory_estimate);
    let draft = asked.draft.as_ref().and_then(DraftEstimate::separate);
    let n_ctx = (asked.context as usize).min(memory_estimate.context_length.max(1));
    let context = u32::try_from(n_ctx).unwrap_or(u32::MAX);
    let kv = engine_types::kv_precision(asked.kv);
    let needs = needs(memory_estimate, draft, n_ctx, asked.kv);
    let longest = here.free_bytes.and_then(|free| memory_estimate.longest_within(draft, free, kv));
    let longest = match here.free_bytes {
        Some(_) => longest,
        None => Some(memory_estimate.context_length),
    };
    let learned = run.and_then(|run| Some(run.tok_s / run.estimated_tok_s?));
    let learned = learned.filter(|ratio| BELIEVED.contains(ratio)).unwrap_or(1.0);
    let speed =
        |depth| tok_s(memory_estimate, &here.speeds, asked.kv, depth).map(|speed| rounded(speed * learned));
    let (tok_s, tok_s_full) = (speed(BEGINNING.min(context)), speed(context));
    let is_tight = here.free_bytes.is_some_and(|free| memory_budget::is_tight(memory_estimate.weights, free));
    let card = gpu::share(memory_estimate, needs.total, n_ctx, here, asked);
    // The bytes that surely fit on the GPU are not required of system memory.
    let taken = card.as_ref().and_then(gpu::surely_stays).unwrap_or(needs.total);
    let verdict = match here.free_bytes {
        Some(free) if taken > free => FitVerdict::WontFit,
        _ if is_tight || tok_s.is_some_and(|speed| speed < READING_TOK_S) => FitVerdict::Slow,
        _ => FitVerdict::RunsWell,
    };
    let longest_context = longest.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    ModelFit {
        reason: [
            Some(reason(verdict, &needs, here, tok_s, longest_context.filter(|_| !is_tight))),
            card.as_ref().map(gpu::said),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" "),
        verdict,
        exact: known == EstimateBasis::Exactly,
        context,
        kv: kv_name(asked.kv),
        needs,
        free_bytes: here.free_bytes,
        total_bytes: here.total_bytes,
        card,
        longest_context,
        tok_s,
        tok_s_full,
        measured: run,
    }
}

fn needs(memory_estimate: &MemoryEstimate, draft: Option<&MemoryEstimate>, n_ctx: usize, kv: Kv) -> FitNeeds {
    let needs = memory_estimate.needs_with_draft(draft, n_ctx, engine_types::kv_precision(kv));
    let engine::model::MemoryNeeds { weights, context, activations, vocabulary } = needs;
    FitNeeds { weights, context, activations, vocabulary, total: needs.total() }
}

/// Memory for a conversation of `tokens` tokens, with the model and what drafts for it.
pub fn memory_at(
    memory_estimate: &MemoryEstimate,
    draft: Option<&DraftEstimate>,
    tokens: u32,
    kv: Kv,
) -> u64 {
    let target = DraftEstimate::with_target(draft, memory_estimate);
    needs(&target, draft.and_then(DraftEstimate::separate), tokens as usize, kv).total
}

/// Tokens per second after `depth` tokens. None: nothing was measured here.
pub fn tok_s(memory_estimate: &MemoryEstimate, speeds: &MeasuredSpeeds, kv: Kv, depth: u32) -> Option<f64> {
    let mut seconds = 0.0;
    let n_read = memory_estimate.read.values().sum();
    for (format, n_bytes) in &memory_estimate.read {
        seconds += *n_bytes as f64 / speeds.of(format, n_read)?;
    }
    let depth = depth as usize;
    // heads that share keys compute on what was read once: whichever takes longer hides the other
    let read = memory_estimate.kv_read(depth, engine_types::kv_precision(kv)) as f64 / speeds.of_context()?;
    seconds += read.max(memory_estimate.attended(depth) as f64 * speeds.beside.attended_s);
    seconds += memory_estimate.n_layers() as f64 * speeds.beside.layer_s;
    (seconds > 0.0).then(|| 1.0 / seconds)
}

/// One decimal below a hundred: more would claim too much.
fn rounded(speed: f64) -> f64 {
    if speed < 100.0 { (speed * 10.0).round() / 10.0 } else { speed.round() }
}

/// As settings and flags name it.
pub fn kv_name(kv: Kv) -> String {
    kv.to_string()
}

fn reason(
    verdict: FitVerdict,
    needs: &FitNeeds,
    here: &MachineFacts,
    tok_s: Option<f64>,
    longest: Option<u32>,
) -> String {
    let free = here.free_bytes.map_or_else(|| "an unknown amount".to_owned(), gigabytes);
    let total = gigabytes(needs.total);
    match (verdict, tok_s) {
        (FitVerdict::WontFit, _) => match longest {
            Some(n) => format!("Needs {total}, {free} is free. With a context of {n} tokens it fits."),
            None => format!("Needs {total}, {free} is free. Choose a smaller one."),
        },
        (FitVerdict::Slow, Some(speed)) if speed < READING_TOK_S => {
            format!("Needs {total} of {free}. Slow: about {speed} tokens per second.")
        }
        (FitVerdict::Slow, _) => {
            format!("Needs {total} of {free}. Slow: parts of it are read from disk repeatedly.")
        }
        (FitVerdict::RunsWell, Some(speed)) => {
            format!("Needs {total} of {free}. About {speed} tokens per second.")
        }
        (FitVerdict::RunsWell, None) => format!("Needs {total} of {free}."),
    }
}

fn gigabytes(n: u64) -> String {
    match n {
        0..100_000_000 => format!("{} MB", n.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tests;
