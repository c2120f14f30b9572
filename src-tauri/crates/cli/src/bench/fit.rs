//! `nook bench --test fit`: estimated memory and speed of a model, compared with the measured ones.

use std::sync::Arc;

use contract::Result;
use contract::protocol::Kv;
use engine::memory_estimate::MemoryEstimate;
use engine::{Chunk, LogitsSelection, Model, SequenceId, TokenId};
use inference::estimate;
use inference::machine::Recall;
use inference::machine::speeds::SpeedCache;
use io::{Clock, RealClock, RealIo};
use platform::DataDirs;
use platform::memory;
use serde::Serialize;
use weights::WeightFile;

use super::BenchArgs;
use super::speed::Spread;
use crate::args::global::Global;
use crate::{open_model, out, text};

/// Largest relative error of an acceptable estimate.
const MAX_RELATIVE_ERROR: f64 = 0.15;

#[derive(Debug, Serialize)]
struct FitRow {
    /// Compared quantity: `memory_bytes` or `tok_s`.
    what: &'static str,
    foretold: f64,
    measured: f64,
    /// foretold / measured
    ratio: f64,
    bar: f64,
    met: bool,
}

impl FitRow {
    fn new(what: &'static str, foretold: f64, measured: f64) -> Self {
        let ratio = foretold / measured;
        Self {
            what,
            foretold,
            measured,
            ratio,
            bar: MAX_RELATIVE_ERROR,
            met: (ratio - 1.0).abs() <= MAX_RELATIVE_ERROR,
        }
    }

    fn show(&self, as_json: bool) {
        if as_json {
            return out::json(self);
        }
        let format_quantity = |n: f64| match self.what {
            "tok_s" => format!("{n:.1} tok/s"),
            _ => text::bytes(n as u64),
        };
        let Self { what, foretold, measured, ratio, bar, met } = self;
        out::line(&format!(
            "{what:<13} estimated {:>11}  measured {:>11}  {:>+6.1} %  within {:.0} %: {}",
            format_quantity(*foretold),
            format_quantity(*measured),
            (ratio - 1.0) * 100.0,
            bar * 100.0,
            if *met { "yes" } else { "NO" }
        ));
    }
}

pub fn fit(global: &Global, file: WeightFile, args: &BenchArgs) -> Result<()> {
    let (prompt, generate) = (args.prompt.max(1), args.generate.max(1));
    let tokens = prompt + generate;
    let clock = RealClock::new();
    let options = open_model::load_options(global, Kv::F16, tokens + 1)?;
    let kv = global.kv.unwrap_or(Kv::F16);
    let sizes = MemoryEstimate::of(&file)?;
    let folder = DataDirs::resolve(global.app_config()?.data_dir)?.data;
    let machine = open_model::machine(global, Recall::Remember)?;
    let before = memory::used_bytes();
    let mut model = open_model::shared_model(Arc::new(file), &options, global)?;
    let mut rates = Vec::new();
    for _ in 0..args.repeat {
        let seq = model.new_sequence()?;
        rates.push(run(&mut model, seq, prompt, generate, &clock)?);
        if rates.len() == 1
            && let (Some(before), Some(after)) = (before, memory::used_bytes())
        {
            let foretold = estimate::memory_at(&sizes, None, u32::try_from(tokens).unwrap_or(u32::MAX), kv);
            FitRow::new("memory_bytes", foretold as f64, after.saturating_sub(before) as f64)
                .show(global.json);
        }
        model.free(seq);
        model.promote_to_large_pages();
    }
    // After loading the model: memory that this frees would hide the cost of loading.
    let known = SpeedCache::of(&RealIo, &folder, &machine);
    let unknown = known.unknown(sizes.read.keys().map(String::as_str));
    let speeds = match unknown.is_empty() {
        true => known.known(),
        false => known.learn(&unknown, &options, &clock)?.speeds,
    };
    let depth = u32::try_from(prompt + generate / 2).unwrap_or(u32::MAX);
    if let Some(foretold) = estimate::tok_s(&sizes, &speeds, kv, depth) {
        FitRow::new("tok_s", foretold, Spread::of(rates).median).show(global.json);
    }
    Ok(())
}

/// Decode speed after a prompt, in tokens per second.
fn run(model: &mut Model, seq: SequenceId, prompt: usize, generate: usize, clock: &RealClock) -> Result<f64> {
    let n_vocab = model.info().n_vocab as u64;
    let ids: Vec<TokenId> =
        (0..prompt + generate).map(|at| ((at as u64 * 7919 + 17) % n_vocab) as TokenId).collect();
    let (first, rest) = ids.split_at(prompt);
    model.forward(&[Chunk { seq, tokens: first, logits: LogitsSelection::Last }])?;
    let start = clock.monotonic();
    for token in rest {
        model.forward(&[Chunk { seq, tokens: &[*token], logits: LogitsSelection::Last }])?;
    }
    Ok(generate as f64 / clock.monotonic().saturating_sub(start).as_secs_f64().max(1e-9))
}
