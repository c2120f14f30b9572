//! Which GPUs compute, and how much of a model each gets. Unless requested, a GPU must be faster
//! than the processor: measured at its first use with a driver, and cached. Probing a GPU may crash
//! the program if its driver is broken, so each probe is recorded first. Without a GPU nothing is
//! probed or stored.

mod benchmark;
mod cache;
mod detect;
mod fault_plan;
mod layer_split;

use std::collections::BTreeMap;
use std::path::Path;

use engine::memory_estimate::MemoryEstimate;
use engine::{Devices, LoadOptions};
use io::{Clock, Io, RealIo};
use kernels::gpu::{AdapterInfo, pick};
use kernels::{GpuCache, GpuFacts, GpuKey, GpuSelector, VerificationScope};
use weights::WeightFile;

use super::Recall;
use crate::engine_types;
use crate::estimate::DraftEstimate;
use contract::protocol::Backend;
use contract::{CpuRequest, Error, ErrorKind, GpuRequest, GpuSpread, Result};

pub use benchmark::{GpuMeasurement, Rates};
use cache::GpuRecord;
pub use detect::Finder;
pub use layer_split::room;

/// How GPUs are looked for, and where findings are kept.
pub struct GpuPlanner<'a> {
    pub io: &'a dyn Io,
    pub clock: &'a dyn Clock,
    /// None: nothing is cached, and no GPU is chosen automatically.
    pub folder: Option<&'a Path>,
    pub asked: &'a GpuRequest,
    pub finder: Finder,
}

/// A GPU, and its index among all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenGpu {
    pub at: usize,
    pub info: AdapterInfo,
}

/// What computes, and why.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Best first. Empty: the processor.
    pub gpus: Vec<ChosenGpu>,
    pub why: String,
    /// What the user should know though nothing failed.
    pub notice: Option<Error>,
    /// What was measured of gpus that are here.
    pub measured: Vec<GpuMeasurement>,
}

/// Models with fewer bytes of weights don't pay on a GPU: the processor has answered before one is
/// opened.
const MIN_BYTES: u64 = 64 << 20;

/// Unfinished probes from which on no GPU is used.
const MAX_UNFINISHED: u32 = 2;

impl<'a> GpuPlanner<'a> {
    /// For models that are loaded so.
    pub fn of(machine: &'a CpuRequest, asked: &'a GpuRequest, clock: &'a dyn Clock) -> Self {
        Self { io: &RealIo, clock, folder: machine.folder.as_deref(), asked, finder: Finder::SYSTEM }
    }
}

impl GpuPlanner<'_> {
    /// The devices for a model, written into `options`, where threads and the like are already. Errors: no family knows
    /// the model.
    pub fn place(
        &self,
        backend: Backend,
        file: &WeightFile,
        options: &mut LoadOptions,
    ) -> Result<GpuPlacement> {
        options.gpu_precision = engine_types::gpu_precision(self.asked.precision);
        let is_small = file.len_bytes() < MIN_BYTES && !self.finder.software;
        let choice = match backend {
            Backend::Cpu | Backend::Scalar => Choice::default(),
            Backend::Auto if is_small => Choice::default(),
            Backend::Auto => self.choose(Recall::Remember, options),
            Backend::Gpu => self.named(),
        };
        options.faults = self.asked.fault.map_or_else(|| options.faults.clone(), fault_plan::plan);
        if choice.gpus.is_empty() {
            // a missing GPU is reported by the code that opens it
            options.devices = match backend {
                Backend::Auto | Backend::Cpu => Devices::Cpu,
                Backend::Gpu => Devices::Gpu { layers: self.asked.layers },
                Backend::Scalar => Devices::Scalar,
            };
            options.gpus = self.asked.devices.iter().map(|name| GpuSelector::parse(name)).collect();
            return Ok(GpuPlacement { notice: choice.notice, why: choice.why, ..GpuPlacement::default() });
        }
        let (record, keys) = (self.record(), choice.keys());
        options.gpu_cache = record.notebook(self.io, self.asked.cache.as_deref(), keys.clone());
        options.gpu_verification = self.check();
        let parts = self.parts(&choice, &sizes_with_assistant(file, options)?, options);
        let notice = choice.notice.clone().or_else(|| parts.notice(&choice));
        parts.apply(options);
        let is_marked = self.folder.is_some() && !keys.iter().all(|key| record.is_proven(key));
        if is_marked {
            self.begin();
        }
        let (gpu_cache, before) = (options.gpu_cache.clone(), options.gpu_cache.all());
        Ok(GpuPlacement { notice, gpu_cache, before, keys, is_marked, why: choice.why })
    }

    /// The whole model on each of several GPUs, if it fits. Otherwise, unless requested, it is
    /// split only if one is not enough.
    fn parts(
        &self,
        choice: &Choice,
        memory_estimate: &MemoryEstimate,
        options: &LoadOptions,
    ) -> layer_split::Parts {
        let chosen: Vec<&ChosenGpu> = choice.gpus.iter().collect();
        if let Some(copies) = layer_split::copies(&chosen, memory_estimate, self.asked, options) {
            return copies;
        }
        let first = layer_split::share_out(&chosen[..1], memory_estimate, self.asked, options);
        let is_enough =
            self.asked.devices.is_empty() && first.n_layers() >= memory_estimate.layer_weights.len();
        let mut parts = if is_enough {
            first
        } else {
            layer_split::share_out(&chosen, memory_estimate, self.asked, options)
        };
        parts.lacks_copies = self.asked.spread == GpuSpread::Copies && chosen.len() > 1;
        parts
    }

    /// What `auto` takes: gpus in the order of their kinds, the first that is faster than the processor, with those
    /// that are like it. `cpu`: how the processor would compute.
    pub fn choose(&self, recall: Recall, cpu: &LoadOptions) -> Choice {
        let found = if self.folder.is_some() { (self.finder.look)(self.io) } else { Vec::new() };
        let is_card = |info: &AdapterInfo| info.kind.is_hardware() || self.finder.software;
        let mut gpus: Vec<ChosenGpu> =
            found.into_iter().enumerate().map(|(at, info)| ChosenGpu { at, info }).collect();
        gpus.retain(|card| is_card(&card.info));
        if gpus.is_empty() {
            return Choice { why: "no GPU with a suitable driver was found".into(), ..Choice::default() };
        }
        let mut record = self.record();
        if recall == Recall::Anew {
            gpus.iter().for_each(|card| record.forget(&card.info.key()));
            record.unfinished = 0;
            self.write(&record);
        }
        if record.unfinished >= MAX_UNFINISHED {
            return given_up();
        }
        let mut choice = Choice::default();
        let mut reasons = Vec::new();
        for card in &gpus {
            match self.judge(card, recall, cpu, &mut choice) {
                Ok(why) => {
                    let first = card.clone();
                    let like = |other: &&ChosenGpu| {
                        let (a, b) = (&other.info, &first.info);
                        other.at != first.at && (a.kind, &a.api) == (b.kind, &b.api)
                    };
                    let others: Vec<ChosenGpu> = gpus.iter().filter(like).cloned().collect();
                    choice.gpus = std::iter::once(first.clone()).chain(others).collect();
                    choice.why = why;
                    choice.notice = None;
                    return choice;
                }
                Err(why) => reasons.push(why),
            }
        }
        choice.why = reasons.join("; ");
        choice
    }

    /// Why a GPU is used. Errors: why not.
    fn judge(
        &self,
        card: &ChosenGpu,
        recall: Recall,
        cpu: &LoadOptions,
        choice: &mut Choice,
    ) -> std::result::Result<String, String> {
        let (name, key, processor) = (&card.info.name, card.info.key(), benchmark::processor(cpu));
        let mut record = self.record();
        if record.race(&key, &processor).is_none() && record.why_not(&key).is_none() {
            if recall == Recall::Only {
                return Err(format!("{name} has not been measured yet"));
            }
            self.race(card, cpu, &processor);
            record = self.record();
        }
        if let Some(why) = record.why_not(&key) {
            choice.notice.get_or_insert_with(|| refused(name, &why));
            return Err(format!("{name} is disabled: {why}"));
        }
        let Some(race) = record.race(&key, &processor) else {
            return Err(format!("{name} could not be measured"));
        };
        choice.measured.push(race.told(name));
        let times = race.cpu.turn_s() / race.gpu.turn_s();
        match race.is_won() {
            true => Ok(format!("{name} is {times:.1} times as fast as the CPU")),
            false => Err(format!("the CPU is {:.1} times as fast as {name}", 1.0 / times)),
        }
    }

    /// Measures a GPU against the processor, and caches the result.
    fn race(&self, card: &ChosenGpu, cpu: &LoadOptions, processor: &str) {
        let (key, cache) = (card.info.key(), self.asked.cache.as_deref());
        self.begin();
        let gpu_cache = self.record().notebook(self.io, cache, vec![key.clone()]);
        let options = LoadOptions {
            devices: Devices::Gpu { layers: None },
            gpus: vec![GpuSelector::Nth(card.at)],
            gpu_cache: gpu_cache.clone(),
            gpu_verification: self.check(),
            ..cpu.clone()
        };
        let ran = benchmark::run((self.finder.layers)(), cpu, &options, self.clock);
        let mut record = self.record();
        record.found(self.io, cache, &key, &gpu_cache.get(&key));
        match ran {
            Ok((gpu, cpu)) => {
                let race = benchmark::Race { processor: processor.to_owned(), gpu, cpu };
                record.set_race(&key, race, room(&card.info, None));
            }
            Err(error) if error.code().starts_with("kernels.gpu") => {
                record.set_failed(&key, error.to_string())
            }
            Err(error) => tracing::info!(code = error.code(), "no card was measured: {error}"),
        }
        record.unfinished = 0;
        self.write(&record);
    }

    fn check(&self) -> VerificationScope {
        if self.finder.software { VerificationScope::All } else { VerificationScope::Hardware }
    }

    /// The gpus that the user names, else the first there is, software too.
    fn named(&self) -> Choice {
        let found = (self.finder.all)();
        let wanted = self.asked.devices.iter().map(|name| GpuSelector::parse(name));
        let wanted = wanted.chain(self.asked.devices.is_empty().then_some(GpuSelector::Any));
        let mut gpus: Vec<ChosenGpu> = Vec::new();
        for at in wanted.filter_map(|card| pick(&found, &card)) {
            gpus.push(ChosenGpu { at, info: found[at].clone() });
        }
        Choice { gpus, why: "as requested".into(), ..Choice::default() }
    }

    /// Keeps what was found out in a load, and since. `placed`: what `place` returned for it; `went_well`: a model came
    /// of it.
    pub fn keep(&self, placed: &GpuPlacement, went_well: bool) {
        let gpu_cache = placed.gpu_cache.all();
        if self.folder.is_none() || (gpu_cache == placed.before && !placed.is_marked) {
            return;
        }
        let mut record = self.record();
        for (key, gpu_cache) in &gpu_cache {
            record.found(self.io, self.asked.cache.as_deref(), key, gpu_cache);
        }
        if went_well {
            placed.keys.iter().for_each(|key| record.prove(key));
        }
        record.unfinished = 0;
        self.write(&record);
    }

    /// A look begins that may end the program.
    fn begin(&self) {
        let mut record = self.record();
        record.unfinished += 1;
        self.write(&record);
    }

    fn record(&self) -> GpuRecord {
        self.folder.map(|folder| GpuRecord::read(self.io, folder)).unwrap_or_default()
    }

    /// A disk that is full must not keep a model from loading.
    fn write(&self, record: &GpuRecord) {
        let Some(folder) = self.folder else { return };
        if let Err(error) = record.write(self.io, folder) {
            tracing::warn!("what was found of graphics gpus is not kept: {error}");
        }
    }
}

/// The sizes of a model with the assistant that it is loaded with: a GPU holds both.
fn sizes_with_assistant(file: &WeightFile, options: &LoadOptions) -> Result<MemoryEstimate> {
    let sizes = MemoryEstimate::of(file)?;
    let draft = options.assistant.as_ref().map(|assistant| DraftEstimate::of(&assistant.0)).transpose()?;
    Ok(DraftEstimate::with_target(draft.as_ref(), &sizes).into_owned())
}

impl Choice {
    fn keys(&self) -> Vec<GpuKey> {
        self.gpus.iter().map(|card| card.info.key()).collect()
    }

    /// By the names that settings and flags have.
    pub fn backend(&self) -> &'static str {
        if self.gpus.is_empty() { "cpu" } else { "gpu" }
    }
}

/// How a model was placed, and what was known of its GPUs before.
#[derive(Debug, Default)]
pub struct GpuPlacement {
    pub notice: Option<Error>,
    pub why: String,
    /// What is known of its GPUs; the load adds to it.
    gpu_cache: GpuCache,
    before: BTreeMap<GpuKey, GpuFacts>,
    keys: Vec<GpuKey>,
    is_marked: bool,
}

/// Names of gpus, with commas between them.
pub fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The GPU that `auto` chooses, and its memory limit, from the cache alone: no driver is queried.
/// None: no such GPU is cached.
pub fn remembered(io: &dyn Io, folder: &Path) -> Option<(String, Option<u64>)> {
    GpuRecord::read(io, folder).best()
}

fn given_up() -> Choice {
    let why = "checking the GPU crashed this program twice";
    let message = format!("Using the CPU: {why}.");
    let remedy = "Update the GPU driver, then run `nook devices --retune`.";
    let notice = Error::new(ErrorKind::Device, "kernels.gpu_unfinished", message, remedy);
    Choice { why: why.into(), notice: Some(notice), ..Choice::default() }
}

fn refused(name: &str, why: &str) -> Error {
    let message = format!("Using the CPU instead of {name}: {why}.");
    let remedy = "Update the GPU driver, then run `nook devices --retune`.";
    Error::new(ErrorKind::Device, "kernels.gpu_wrong", message, remedy)
}

#[cfg(test)]
mod tests;
