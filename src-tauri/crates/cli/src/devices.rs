//! `nook devices`: the CPU and GPUs of this computer, and the automatic choice among them.

use std::time::Duration;

use clap::Args;
use contract::Error;
use contract::Result;
use engine::LoadOptions;
use inference::machine::gpus::Choice;
use inference::machine::{Machine, Power, Recall};
use io::{Clock, RealClock};
use kernels::devices::{describe, measure_bandwidth};
use kernels::gpu::AdapterInfo;
use platform::DataDirs;
use serde_json::{Value, json};

use crate::args::global::Global;
use crate::{open_model, out, text};

/// Time budget of the memory bandwidth measurement.
const BUDGET: Duration = Duration::from_millis(400);

const GB: f64 = 1e9;

#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// Check the kernels and measure threads and GPUs again, ignoring cached results
    #[arg(long)]
    pub retune: bool,
}

pub fn devices(global: &Global, args: &DevicesArgs) -> Result<()> {
    let error = |error: kernels::KernelError| Error::from(engine::EngineError::from(error));
    let cpu = describe().map_err(error)?;
    let recall = if args.retune { Recall::Anew } else { Recall::Remember };
    let machine = open_model::machine(global, recall)?;
    let threads = machine.threads;
    let used = machine.level.unwrap_or(cpu.level);
    let clock = RealClock::new();
    let bandwidth = measure_bandwidth(threads, BUDGET, &|| clock.monotonic()).map_err(error)?;
    let cards = kernels::gpu::adapters();
    let choice = chosen(global, &machine, recall)?;
    let why = format!(
        "{} kernels are the fastest {}; {}",
        used.name(),
        if machine.wrong.is_empty() { "this processor has" } else { "that are right on this processor" },
        choice.why
    );
    let power = match machine.power {
        Power::Mains => "mains",
        Power::Battery => "battery",
    };
    if global.json {
        out::json(&json!({
            "cpu": {
                "name": cpu.name,
                "features": cpu.features,
                "level": used.name(),
                "detected_level": cpu.detected.name(),
                "wrong_kernels": machine.wrong,
                "cores": machine.cores.n_physical(),
                "fast_cores": machine.cores.n_performance(),
                "threads": threads,
                "threads_for_single_tokens": machine.few_threads,
                "bound_to": machine.cpus,
                "power": power,
            },
            "adapters": cards.iter().map(described).collect::<Vec<_>>(),
            "bandwidth_gb_s": bandwidth / GB,
            "auto": auto(&choice, &machine, used.name(), &why),
        }));
        return Ok(());
    }
    let level = match used == cpu.detected {
        true => used.name().to_owned(),
        false => format!("{} (the processor has {})", used.name(), cpu.detected.name()),
    };
    let check = match machine.wrong.is_empty() {
        true => "match the reference on this CPU".to_owned(),
        false => format!("WRONG on this processor and out of use: {}", machine.wrong.join(", ")),
    };
    let few = match machine.few_threads == threads {
        true => String::new(),
        false => format!("; {} for single tokens: memory keeps no more busy", machine.few_threads),
    };
    out::text(&text::table(&[
        vec!["processor".into(), cpu.name],
        vec!["features".into(), cpu.features.join(" ")],
        vec!["kernels".into(), level],
        vec!["checked".into(), check],
        vec!["threads".into(), format!("{threads} ({}){few}", machine.why)],
        vec!["power".into(), power.into()],
        vec!["memory bandwidth".into(), format!("{:.1} GB/s", bandwidth / GB)],
        vec!["GPUs".into(), listed(&cards)],
        vec!["auto uses".into(), format!("{}: {why}", choice.backend())],
    ]));
    Ok(())
}

/// The automatic choice of device; measures GPUs that have no cached result.
fn chosen(global: &Global, machine: &Machine, recall: Recall) -> Result<Choice> {
    let dirs = DataDirs::resolve(global.app_config()?.data_dir)?;
    let (asked, clock) = (open_model::gpu_request(global)?, RealClock::new());
    let mut on_processor = LoadOptions::default();
    machine.apply(&mut on_processor);
    Ok(open_model::cards(&dirs, &asked, &clock).choose(recall, &on_processor))
}

fn auto(choice: &Choice, machine: &Machine, level: &str, why: &str) -> Value {
    json!({
        "backend": choice.backend(),
        "cards": choice.gpus.iter().map(|card| card.at).collect::<Vec<_>>(),
        "measured": choice.measured,
        "level": level,
        "threads": machine.threads,
        "why": why,
        "threads_why": machine.why,
    })
}

fn described(card: &AdapterInfo) -> Value {
    json!({
        "name": card.name,
        "kind": card.kind.name(),
        "api": card.api,
        "driver": card.driver,
        "memory_bytes": card.memory_bytes,
        "features": card.features,
        "max_binding_bytes": card.max_binding_bytes,
        "max_buffer_bytes": card.max_buffer_bytes,
        "subgroup": card.subgroup,
    })
}

/// Formats the GPUs on one line: "0: NVIDIA H200 (discrete, vulkan, 150.8 GB, f16 subgroups)".
fn listed(cards: &[AdapterInfo]) -> String {
    let card = |(at, card): (usize, &AdapterInfo)| {
        let memory = card.memory_bytes.map(|n| format!("{:.1} GB", n as f64 / GB));
        let facts = [Some(card.kind.name().to_owned()), Some(card.api.clone()), memory];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        format!("{at}: {} ({}; {})", card.name, facts.join(", "), card.features.join(", "))
    };
    match cards {
        [] => "none with a driver for Vulkan, Metal or DirectX 12".to_owned(),
        cards => cards.iter().enumerate().map(card).collect::<Vec<_>>().join("; "),
    }
}
