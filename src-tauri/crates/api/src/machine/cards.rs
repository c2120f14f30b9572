//! Which graphics cards compute, and how much of a model each gets.
//!
//! Where nobody asks for one, a card has to be faster than the processor: measured when it is first seen with a driver,
//! and kept. Looking at a card, which may end a program where its driver is broken, is noted before it is done. Without
//! a card in the computer nothing is looked at, and nothing kept.

mod find;
mod parts;
mod planned;
mod race;
mod record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::memory_estimate::MemoryEstimate;
use engine::{Devices, LoadOptions};
use io::{Clock, Io, RealIo};
use kernels::gpu::{AdapterInfo, pick};
use kernels::{GpuCache, GpuFacts, GpuKey};
use kernels::{GpuSelector, VerificationScope};
use serde::{Deserialize, Serialize};
use weights::WeightFile;

use super::Recall;
use crate::error::{Error, ErrorKind, Result};
use crate::worker::protocol::{Backend, CardPrecision};

pub use find::Finder;
pub use parts::room;
pub use planned::{FaultKind, PlannedFault};
pub use race::{Measured, Rates};
use record::Record;

/// What the user asks of graphics cards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Layers on them. None: as many as fit.
    pub layers: Option<usize>,
    /// Bytes of each one's memory that a model may take. None: most of it.
    pub memory: Option<u64>,
    /// Of their products.
    #[serde(default)]
    pub precision: CardPrecision,
    /// Which, by their number or a part of their name. Empty: the best.
    pub devices: Vec<String>,
    #[serde(default)]
    pub spread: Spread,
    /// Folder of what drivers compiled. None: it isn't kept.
    pub cache: Option<PathBuf>,
    /// of tests
    #[serde(default)]
    pub fault: Option<PlannedFault>,
}

/// What several graphics cards have of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// each the whole of it where it is known to fit, else layers of it
    #[default]
    Auto,
    /// some layers each
    Layers,
    /// each the whole of it: sequences are spread over them
    Copies,
}

/// Where looks are taken, and what is known of it kept.
pub struct Cards<'a> {
    pub io: &'a dyn Io,
    pub clock: &'a dyn Clock,
    /// None: nothing is kept, and no card is chosen by itself.
    pub folder: Option<&'a Path>,
    pub asked: &'a Asked,
    pub finder: Finder,
}

/// A card, and its number among all that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub at: usize,
    pub info: AdapterInfo,
}

/// What computes, and why.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Best first. Empty: the processor.
    pub cards: Vec<Chosen>,
    pub why: String,
    /// What the user should know though nothing failed.
    pub notice: Option<Error>,
    /// What was measured of cards that are here.
    pub measured: Vec<Measured>,
}

/// Models of fewer bytes of weights are no work for a card: the processor has answered before one is opened.
const LEAST_BYTES: u64 = 64 << 20;

/// Looks at cards that never came to an end, from which on none is taken.
const MOST_UNFINISHED: u32 = 2;

impl<'a> Cards<'a> {
    /// For models that are loaded so.
    pub fn of(machine: &'a super::Asked, asked: &'a Asked, clock: &'a dyn Clock) -> Self {
        Self { io: &RealIo, clock, folder: machine.folder.as_deref(), asked, finder: Finder::SYSTEM }
    }
}

impl Cards<'_> {
    /// The devices for a model, written into `options`, where threads and the like are already. Errors: no family knows
    /// the model.
    pub fn place(&self, backend: Backend, file: &WeightFile, options: &mut LoadOptions) -> Result<Placed> {
        options.gpu_precision = self.asked.precision.of_products();
        let is_small = file.len_bytes() < LEAST_BYTES && !self.finder.software;
        let choice = match backend {
            Backend::Cpu | Backend::Scalar => Choice::default(),
            Backend::Auto if is_small => Choice::default(),
            Backend::Auto => self.choose(Recall::Remember, options),
            Backend::Gpu => self.named(),
        };
        options.faults = self.asked.fault.map_or_else(|| options.faults.clone(), PlannedFault::plan);
        if choice.cards.is_empty() {
            // a card that is asked for and not there is told by whoever opens it
            options.devices = match backend {
                Backend::Auto | Backend::Cpu => Devices::Cpu,
                Backend::Gpu => Devices::Gpu { layers: self.asked.layers },
                Backend::Scalar => Devices::Scalar,
            };
            options.gpus = self.asked.devices.iter().map(|name| GpuSelector::parse(name)).collect();
            return Ok(Placed { notice: choice.notice, why: choice.why, ..Placed::default() });
        }
        let (record, keys) = (self.record(), choice.keys());
        options.gpu_cache = record.notebook(self.io, self.asked.cache.as_deref(), keys.clone());
        options.gpu_verification = self.check();
        let parts = self.parts(&choice, &MemoryEstimate::of(file)?, options);
        let notice = choice.notice.clone().or_else(|| parts.notice(&choice));
        parts.apply(options);
        let is_marked = self.folder.is_some() && !keys.iter().all(|key| record.is_proven(key));
        if is_marked {
            self.begin();
        }
        let (known, before) = (options.gpu_cache.clone(), options.gpu_cache.all());
        Ok(Placed { notice, known, before, keys, is_marked, why: choice.why })
    }

    /// The whole model on each of several, if it fits. Otherwise, where nobody names them, more than one only where one is
    /// not enough.
    fn parts(&self, choice: &Choice, sizes: &MemoryEstimate, options: &LoadOptions) -> parts::Parts {
        let chosen: Vec<&Chosen> = choice.cards.iter().collect();
        if let Some(copies) = parts::copies(&chosen, sizes, self.asked, options) {
            return copies;
        }
        let first = parts::share_out(&chosen[..1], sizes, self.asked, options);
        let is_enough = self.asked.devices.is_empty() && first.n_layers() >= sizes.layer_weights.len();
        let mut parts = if is_enough { first } else { parts::share_out(&chosen, sizes, self.asked, options) };
        parts.lacks_copies = self.asked.spread == Spread::Copies && chosen.len() > 1;
        parts
    }

    /// What `auto` takes: cards in the order of their kinds, the first that is faster than the processor, with those
    /// that are like it. `cpu`: how the processor would compute.
    pub fn choose(&self, recall: Recall, cpu: &LoadOptions) -> Choice {
        let found = if self.folder.is_some() { (self.finder.look)(self.io) } else { Vec::new() };
        let is_card = |info: &AdapterInfo| info.kind.is_hardware() || self.finder.software;
        let mut cards: Vec<Chosen> =
            found.into_iter().enumerate().map(|(at, info)| Chosen { at, info }).collect();
        cards.retain(|card| is_card(&card.info));
        if cards.is_empty() {
            return Choice { why: "no GPU with a suitable driver was found".into(), ..Choice::default() };
        }
        let mut record = self.record();
        if recall == Recall::Anew {
            cards.iter().for_each(|card| record.forget(&card.info.key()));
            record.unfinished = 0;
            self.write(&record);
        }
        if record.unfinished >= MOST_UNFINISHED {
            return given_up();
        }
        let mut choice = Choice::default();
        let mut reasons = Vec::new();
        for card in &cards {
            match self.judge(card, recall, cpu, &mut choice) {
                Ok(why) => {
                    let first = card.clone();
                    let like = |other: &&Chosen| {
                        let (a, b) = (&other.info, &first.info);
                        other.at != first.at && (a.kind, &a.api) == (b.kind, &b.api)
                    };
                    let others: Vec<Chosen> = cards.iter().filter(like).cloned().collect();
                    choice.cards = std::iter::once(first.clone()).chain(others).collect();
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

    /// Why a card is taken. Errors: why not.
    fn judge(
        &self,
        card: &Chosen,
        recall: Recall,
        cpu: &LoadOptions,
        choice: &mut Choice,
    ) -> std::result::Result<String, String> {
        let (name, key, processor) = (&card.info.name, card.info.key(), race::processor(cpu));
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
        let times = race.of_cpu.turn_s() / race.of_card.turn_s();
        match race.is_won() {
            true => Ok(format!("{name} is {times:.1} times as fast as the CPU")),
            false => Err(format!("the CPU is {:.1} times as fast as {name}", 1.0 / times)),
        }
    }

    /// Measures a card against the processor, and keeps what came of it.
    fn race(&self, card: &Chosen, cpu: &LoadOptions, processor: &str) {
        let (key, cache) = (card.info.key(), self.asked.cache.as_deref());
        self.begin();
        let known = self.record().notebook(self.io, cache, vec![key.clone()]);
        let options = LoadOptions {
            devices: Devices::Gpu { layers: None },
            gpus: vec![GpuSelector::Nth(card.at)],
            gpu_cache: known.clone(),
            gpu_verification: self.check(),
            ..cpu.clone()
        };
        let ran = race::run((self.finder.layers)(), cpu, &options, self.clock);
        let mut record = self.record();
        record.found(self.io, cache, &key, &known.get(&key));
        match ran {
            Ok((of_card, of_cpu)) => {
                let race = race::Race { processor: processor.to_owned(), of_card, of_cpu };
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

    /// The cards that the user names, else the first there is, software too.
    fn named(&self) -> Choice {
        let found = (self.finder.all)();
        let wanted = self.asked.devices.iter().map(|name| GpuSelector::parse(name));
        let wanted = wanted.chain(self.asked.devices.is_empty().then_some(GpuSelector::Any));
        let mut cards: Vec<Chosen> = Vec::new();
        for at in wanted.filter_map(|card| pick(&found, &card)) {
            cards.push(Chosen { at, info: found[at].clone() });
        }
        Choice { cards, why: "as requested".into(), ..Choice::default() }
    }

    /// Keeps what was found out in a load, and since. `placed`: what `place` returned for it; `went_well`: a model came
    /// of it.
    pub fn keep(&self, placed: &Placed, went_well: bool) {
        let known = placed.known.all();
        if self.folder.is_none() || (known == placed.before && !placed.is_marked) {
            return;
        }
        let mut record = self.record();
        for (key, known) in &known {
            record.found(self.io, self.asked.cache.as_deref(), key, known);
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

    fn record(&self) -> Record {
        self.folder.map(|folder| Record::read(self.io, folder)).unwrap_or_default()
    }

    /// A disk that is full must not keep a model from loading.
    fn write(&self, record: &Record) {
        let Some(folder) = self.folder else { return };
        if let Err(error) = record.write(self.io, folder) {
            tracing::warn!("what was found of graphics cards is not kept: {error}");
        }
    }
}

impl Choice {
    fn keys(&self) -> Vec<GpuKey> {
        self.cards.iter().map(|card| card.info.key()).collect()
    }

    /// By the names that settings and flags have.
    pub fn backend(&self) -> &'static str {
        if self.cards.is_empty() { "cpu" } else { "gpu" }
    }
}

/// How a model was placed, and what was known before.
#[derive(Debug, Default)]
pub struct Placed {
    pub notice: Option<Error>,
    pub why: String,
    /// What is known of its cards, as it is found out.
    known: GpuCache,
    before: BTreeMap<GpuKey, GpuFacts>,
    keys: Vec<GpuKey>,
    is_marked: bool,
}

/// Names of cards, with commas between them.
pub fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The card that `auto` takes, and what a model may have of it, as far as is kept: no driver is asked. None: none.
pub fn remembered(io: &dyn Io, folder: &Path) -> Option<(String, Option<u64>)> {
    Record::read(io, folder).best()
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
