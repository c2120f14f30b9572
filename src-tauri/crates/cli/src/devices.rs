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
    let gpus = kernels::gpu::adapters();
    let choice = auto_choice(global, &machine, recall)?;
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
            "adapters": gpus.iter().map(gpu_json).collect::<Vec<_>>(),
            "bandwidth_gb_s": bandwidth / GB,
            "auto": auto(&choice, &machine, used.name(), &why),
        }));
        return Ok(());
    }
    let level = match used == cpu.detected {
        true => used.name().to_owned(),
        false => format!("{} (the CPU supports {})", used.name(), cpu.detected.name()),
    };
    let check = match machine.wrong.is_empty() {
        true => "match the reference on this CPU".to_owned(),
        false => format!("WRONG on this CPU and disabled: {}", machine.wrong.join(", ")),
    };
    let few = match machine.few_threads == threads {
        true => String::new(),
        false => format!("; {} for decoding, which memory bandwidth limits", machine.few_threads),
    };
    out::text(&text::table(&[
        vec!["processor".into(), cpu.name],
        vec!["features".into(), cpu.features.join(" ")],
        vec!["kernels".into(), level],
        vec!["checked".into(), check],
        vec!["threads".into(), format!("{threads} ({}){few}", machine.why)],
        vec!["power".into(), power.into()],
        vec!["memory bandwidth".into(), format!("{:.1} GB/s", bandwidth / GB)],
        vec!["GPUs".into(), list_gpus(&gpus)],
        vec!["auto uses".into(), format!("{}: {why}", choice.backend())],
    ]));
    Ok(())
}

/// The automatic choice of device; measures GPUs that have no cached result.
fn auto_choice(global: &Global, machine: &Machine, recall: Recall) -> Result<Choice> {
    let dirs = DataDirs::resolve(global.app_config()?.data_dir)?;
    let (request, clock) = (open_model::gpu_request(global)?, RealClock::new());
    let mut cpu_options = LoadOptions::default();
    machine.apply(&mut cpu_options);
    Ok(open_model::gpus(&dirs, &request, &clock).choose(recall, &cpu_options))
}

fn auto(choice: &Choice, machine: &Machine, level: &str, why: &str) -> Value {
    json!({
        "backend": choice.backend(),
        "cards": choice.gpus.iter().map(|gpu| gpu.at).collect::<Vec<_>>(),
        "measured": choice.measured,
        "level": level,
        "threads": machine.threads,
        "why": why,
        "threads_why": machine.why,
    })
}

fn gpu_json(gpu: &AdapterInfo) -> Value {
    json!({
        "name": gpu.name,
        "kind": gpu.kind.name(),
        "api": gpu.api,
        "driver": gpu.driver,
        "memory_bytes": gpu.memory_bytes,
        "features": gpu.features,
        "max_binding_bytes": gpu.max_binding_bytes,
        "max_buffer_bytes": gpu.max_buffer_bytes,
        "subgroup": gpu.subgroup,
    })
}

/// Formats the GPUs on one line: "0: NVIDIA H200 (discrete, vulkan, 150.8 GB, f16 subgroups)".
fn list_gpus(gpus: &[AdapterInfo]) -> String {
    let describe = |(at, gpu): (usize, &AdapterInfo)| {
        let memory = gpu.memory_bytes.map(|n| format!("{:.1} GB", n as f64 / GB));
        let facts = [Some(gpu.kind.name().to_owned()), Some(gpu.api.clone()), memory];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        format!("{at}: {} ({}; {})", gpu.name, facts.join(", "), gpu.features.join(", "))
    };
    match gpus {
        [] => "none with a driver for Vulkan, Metal or DirectX 12".to_owned(),
        gpus => gpus.iter().enumerate().map(describe).collect::<Vec<_>>().join("; "),
    }
}
