//! How fast this computer reads and multiplies weights of each format. Measured on a few synthetic
//! layers, and cached per processor, thread count and version. Whole tokens are measured, not
//! memory alone, so that estimates need no factor for decoding. Costs outside the weights are in
//! `overhead`. What was measured beside other programs that compute is never kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::memory_estimate::MemoryEstimate;
use engine::shape::{self, Shape, ShapeFact};
use engine::{Chunk, LoadOptions, LogitsSelection, Model};
use io::{Clock, Io};
use serde::{Deserialize, Serialize};
use weights::{SharedBytes, WeightFile};

use super::Machine;
use super::other_load::CpuTimes;
use super::overhead;
use crate::estimate::MeasuredSpeeds;
use contract::Result;

/// In the data folder. A damaged one counts as none.
const FILE: &str = "speeds.json";

/// Sets that are kept: processors, and numbers of threads on each.
const MAX_KEPT: usize = 16;

/// Formats that can be measured, and the mix that consists of them. Others are estimated by their kin.
const MEASURABLE: [(&str, &str); 12] = [
    ("Q8_0", "q8_0"),
    ("Q6_K", "q6_k"),
    ("Q5_K", "q5_k_s"),
    ("Q4_K", "q4_k_s"),
    ("Q4_0", "q4_0"),
    ("Q4_1", "q4_1"),
    ("Q5_0", "q5_0"),
    ("Q3_K", "q3_k_s"),
    ("IQ4_XS", "iq4_xs"),
    ("F16", "f16"),
    ("BF16", "bf16"),
    ("MXFP4", "mxfp4_moe"),
];

/// Measured where nothing is known yet: the formats of most models that are offered.
pub const USUAL: [&str; 3] = ["Q8_0", "Q6_K", "Q4_K"];

/// Tokens of a round, and rounds; the best counts, since interference only slows.
const TOKENS: u32 = 8;
const ROUNDS: usize = 4;

/// Larger than caches, small enough to be made in a moment.
const MIN_BYTES: u64 = 128 << 20;
const MAX_LAYERS: u32 = 4;

/// On what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SpeedKey {
    name: String,
    level: String,
    threads: usize,
    version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SpeedEntry {
    #[serde(flatten)]
    key: SpeedKey,
    speeds: MeasuredSpeeds,
}

/// Speeds that were just measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeedMeasurement {
    /// With those that were known before.
    pub speeds: MeasuredSpeeds,
    /// No other program computed meanwhile. Others are not kept: they are measured again.
    pub is_quiet: bool,
}

/// The speeds measured on this machine, kept in a file, and their measurement.
pub struct SpeedCache<'a> {
    io: &'a dyn Io,
    folder: &'a Path,
    key: SpeedKey,
}

impl<'a> SpeedCache<'a> {
    pub fn of(io: &'a dyn Io, folder: &'a Path, machine: &Machine) -> Self {
        let name = kernels::devices::describe().map(|cpu| cpu.name).unwrap_or_default();
        let level = machine.level.map_or("", |level| level.name()).to_owned();
        let threads = machine.few_threads;
        Self {
            io,
            folder,
            key: SpeedKey { name, level, threads, version: env!("CARGO_PKG_VERSION").to_owned() },
        }
    }

    /// Without formats where nothing was measured yet.
    pub fn known(&self) -> MeasuredSpeeds {
        let entry = self.read().into_iter().find(|entry| entry.key == self.key);
        let mut known = entry.map(|entry| entry.speeds).unwrap_or_default();
        let is_time = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
        if !is_time(known.beside.layer_s) || !is_time(known.beside.attended_s) {
            return MeasuredSpeeds::default();
        }
        for speeds in [&mut known.formats, &mut known.cached] {
            speeds.retain(|_, speed| speed.is_finite() && *speed > 0.0);
        }
        known
    }

    /// Those of `formats` that can be measured and have not been.
    pub fn unknown<'f>(&self, formats: impl IntoIterator<Item = &'f str>) -> Vec<&'static str> {
        let known = self.known();
        let mut missing: Vec<&'static str> = Vec::new();
        for format in formats {
            let row = MEASURABLE.iter().find(|(name, _)| format.eq_ignore_ascii_case(name));
            missing.extend(row.map(|(name, _)| *name).filter(|name| !known.formats.contains_key(*name)));
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Measures some formats, and keeps what came of it if no other program computed meanwhile.
    pub fn learn(
        &self,
        formats: &[&'static str],
        options: &LoadOptions,
        clock: &dyn Clock,
    ) -> Result<SpeedMeasurement> {
        let times = || CpuTimes::read(self.io, Path::new("/"));
        let before = times();
        let speeds = self.measured(formats, options, clock)?;
        let is_quiet = CpuTimes::is_quiet(before, times());
        if is_quiet {
            self.keep(&speeds);
        } else {
            tracing::info!("other programs computed while speeds were measured: they are not kept");
        }
        Ok(SpeedMeasurement { speeds, is_quiet })
    }

    /// What is known, with some formats measured now.
    fn measured(
        &self,
        formats: &[&'static str],
        options: &LoadOptions,
        clock: &dyn Clock,
    ) -> Result<MeasuredSpeeds> {
        let mut speeds = self.known();
        if speeds.formats.is_empty() {
            speeds.beside = overhead::measure(options, clock)?;
        }
        for (format, mix) in MEASURABLE.iter().filter(|(name, _)| formats.contains(name)) {
            let speed = measure(format, layers(mix)?, &speeds, options, clock)?;
            speeds.formats.insert((*format).to_owned(), speed);
            let cached = measure(format, few_layers(mix)?, &speeds, options, clock)?;
            speeds.cached.insert((*format).to_owned(), cached);
        }
        Ok(speeds)
    }

    /// A disk that is full costs another measurement, nothing else.
    fn keep(&self, speeds: &MeasuredSpeeds) {
        let mut all = self.read();
        all.retain(|entry| {
            (&entry.key.name, &entry.key.level, entry.key.threads)
                != (&self.key.name, &self.key.level, self.key.threads)
        });
        all.push(SpeedEntry { key: self.key.clone(), speeds: speeds.clone() });
        let n_old = all.len().saturating_sub(MAX_KEPT);
        all.drain(..n_old);
        let bytes = serde_json::to_vec_pretty(&all).expect("plain data becomes JSON");
        let written = self.io.create_dir_all(self.folder);
        let written = written.and_then(|()| self.io.write_atomic(&self.folder.join(FILE), &bytes));
        if let Err(error) = written {
            tracing::warn!("the measured speeds are not kept: {error}");
        }
    }

    fn read(&self) -> Vec<SpeedEntry> {
        let bytes = self.io.read(&self.folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// Bytes per second of weights of `format` on their way through a token.
fn measure(
    format: &str,
    file: WeightFile,
    known: &MeasuredSpeeds,
    options: &LoadOptions,
    clock: &dyn Clock,
) -> Result<f64> {
    let sizes = MemoryEstimate::of(&file)?;
    let ctx = (TOKENS as usize) * 2;
    let options = LoadOptions { max_sequences: 1, ctx: Some(ctx), ..options.clone() };
    let mut model = Model::load(Arc::new(file), &options, &mut |_| {})?;
    let seq = model.new_sequence()?;
    let mut best = Duration::MAX;
    for _ in 0..=ROUNDS {
        let start = clock.monotonic();
        for token in 0..TOKENS {
            model.forward(&[Chunk { seq, tokens: &[token], logits: LogitsSelection::Last }])?;
        }
        best = best.min(clock.monotonic().saturating_sub(start));
        model.truncate(seq, 0)?;
    }
    let seconds = (best.as_secs_f64() / f64::from(TOKENS)).max(1e-9);
    let beside = known.beside.layer_s * sizes.n_layers() as f64;
    // where hardly anything is left, something disturbed what was measured of layers without weights
    let of_weights = (seconds - beside).max(seconds * 0.5);
    Ok(share(format, &sizes, &known.formats, of_weights))
}

/// The speed of one format where a token of several took so long: others count by what is known of them.
fn share(format: &str, sizes: &MemoryEstimate, known: &BTreeMap<String, f64>, seconds: f64) -> f64 {
    let (mut n_bytes, mut others) = (0, 0.0);
    for (name, n) in &sizes.read {
        match known.get(name).filter(|_| name != format) {
            Some(speed) => others += *n as f64 / speed,
            None => n_bytes += n,
        }
    }
    // where the others alone would have taken nearly as long, what is known of them says nothing here
    let whole = || sizes.read.values().sum::<u64>() as f64 / seconds;
    if others < seconds * 0.5 { n_bytes as f64 / (seconds - others) } else { whole() }
}

/// A few layers of a published shape.
pub(super) fn layers(mix: &str) -> Result<WeightFile> {
    let of_two = MemoryEstimate::of(&shape::outline(&slice(mix, 2)?, shape::mix(mix)?)?)?.weights;
    let n_layers = if of_two >= MIN_BYTES { 2 } else { MAX_LAYERS };
    let mut bytes = Vec::new();
    shape::write(&slice(mix, n_layers)?, shape::mix(mix)?, 1, &mut bytes)?;
    Ok(WeightFile::from_bytes("layers to measure", SharedBytes::from_vec(bytes))?)
}

/// Narrow ones, which caches hold.
pub(super) fn few_layers(mix: &str) -> Result<WeightFile> {
    let (d_model, d_ff, n_heads, n_kv_heads, n_vocab) = (256, 1024, 4, 2, 512);
    let narrow = Shape { d_model, d_ff, n_heads, n_kv_heads, n_vocab, ..slice(mix, 4)? };
    let mut bytes = Vec::new();
    shape::write(&narrow, shape::mix(mix)?, 1, &mut bytes)?;
    Ok(WeightFile::from_bytes("layers to measure", SharedBytes::from_vec(bytes))?)
}

/// With a small vocabulary, so that layers are most of it; formats that only experts have are measured with experts.
fn slice(mix: &str, n_layers: u32) -> Result<Shape> {
    let has_experts = mix.starts_with("mxfp4");
    let published = shape::find(if has_experts { "gpt-oss-20b" } else { "llama-3.2-1b" })?;
    let more = if has_experts { FEW_EXPERTS } else { published.more };
    Ok(Shape { n_layers, n_vocab: 4096, more, ..published })
}

/// Of the published 32, enough for caches to hold none.
static FEW_EXPERTS: &[&[(&str, ShapeFact)]] = &[&[
    ("expert_count", ShapeFact::Count(8)),
    ("expert_used_count", ShapeFact::Count(4)),
    ("expert_feed_forward_length", ShapeFact::Count(2880)),
    ("attention.sliding_window", ShapeFact::Count(128)),
]];

#[cfg(test)]
mod tests {
    use io::{RealClock, RealIo};

    use contract::CpuRequest;
    use test_support::TempDir;

    use super::super::{Recall, prepare};
    use super::*;

    #[test]
    fn every_format_has_layers_that_consist_of_it() {
        for (format, mix) in MEASURABLE {
            let outline = shape::outline(&slice(mix, 2).unwrap(), shape::mix(mix).unwrap()).unwrap();
            let sizes = MemoryEstimate::of(&outline).unwrap();
            let of_it = sizes.read.get(format).copied().unwrap_or(0);
            assert!(of_it * 2 > sizes.read.values().sum(), "{format}: {:?}", sizes.read);
        }
    }

    #[test]
    fn a_speed_is_the_part_that_others_leave() {
        let sizes = MemoryEstimate {
            read: [("A".to_owned(), 300), ("B".to_owned(), 100)].into(),
            ..MemoryEstimate::default()
        };
        let known = |speed: f64| [("B".to_owned(), speed)].into();
        assert_eq!(share("A", &sizes, &BTreeMap::new(), 4.0), 100.0);
        assert_eq!(share("A", &sizes, &known(100.0), 4.0), 100.0);
        assert_eq!(share("A", &sizes, &known(50.0), 5.0), 100.0);
        // B cannot have been as slow as it is known to be
        assert_eq!(share("A", &sizes, &known(10.0), 4.0), 100.0);
    }

    #[test]
    fn what_was_measured_is_kept_for_the_same_machine_only() {
        let folder = TempDir::new();
        let asked = CpuRequest { threads: Some(1), ..CpuRequest::default() };
        let mut machine = prepare(&RealIo, &RealClock::new(), &asked, Recall::Remember).unwrap();
        let speeds = SpeedCache::of(&RealIo, folder.path(), &machine);
        assert_eq!(speeds.unknown(["Q4_0", "q4_0", "F32", "IQ1_S"]), ["Q4_0"]);
        let mut options = LoadOptions::default();
        machine.apply(&mut options);
        let measured = speeds.learn(&["Q4_0"], &options, &RealClock::new()).unwrap();
        assert_eq!(speeds.unknown(["Q4_0"]).is_empty(), measured.is_quiet);
        speeds.keep(&measured.speeds);
        assert!(
            speeds.known().formats["Q4_0"] > 1e6
                && speeds.known().beside.layer_s > 0.0
                && speeds.unknown(["Q4_0"]).is_empty()
        );
        machine.few_threads = 2;
        let other = SpeedCache::of(&RealIo, folder.path(), &machine);
        assert!(other.known() == MeasuredSpeeds::default());
        RealIo.write_atomic(&folder.path().join(FILE), b"[{\"speeds\":").unwrap();
        assert!(speeds.known() == MeasuredSpeeds::default());
    }
}
