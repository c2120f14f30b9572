//! `nook devices`: what this computer can compute with, and what would be chosen.

use std::time::Duration;

use api::{Error, Result};
use io::{Clock, RealClock};
use kernels::devices::{describe, measure_bandwidth};
use serde_json::json;

use crate::args::Global;
use crate::{out, text};

/// How long memory is measured.
const BUDGET: Duration = Duration::from_millis(400);

const GB: f64 = 1e9;

pub fn devices(global: &Global) -> Result<()> {
    let error = |error: kernels::KernelError| Error::from(engine::EngineError::from(error));
    let cpu = describe().map_err(error)?;
    let threads = global.threads.map_or(cpu.n_threads, |n| n as usize);
    let clock = RealClock::new();
    let bandwidth = measure_bandwidth(threads, BUDGET, &|| clock.monotonic()).map_err(error)?;
    let why = format!(
        "{} kernels are the fastest this processor has; graphics cards are not supported yet",
        cpu.level.name()
    );
    if global.json {
        out::json(&json!({
            "cpu": {
                "name": cpu.name,
                "features": cpu.features,
                "level": cpu.level.name(),
                "detected_level": cpu.detected.name(),
                "threads": threads,
            },
            "adapters": [],
            "bandwidth_gb_s": bandwidth / GB,
            "auto": {"backend": "cpu", "level": cpu.level.name(), "threads": threads, "why": why},
        }));
        return Ok(());
    }
    let level = match cpu.level == cpu.detected {
        true => cpu.level.name().to_owned(),
        false => format!("{} (the processor has {})", cpu.level.name(), cpu.detected.name()),
    };
    out::text(&text::table(&[
        vec!["processor".into(), cpu.name],
        vec!["features".into(), cpu.features.join(" ")],
        vec!["kernels".into(), level],
        vec!["threads".into(), threads.to_string()],
        vec!["memory bandwidth".into(), format!("{:.1} GB/s", bandwidth / GB)],
        vec!["graphics cards".into(), "none in use".into()],
        vec!["auto chooses".into(), format!("cpu: {why}")],
    ]));
    Ok(())
}
