//! A GPU that fails while answers are written: whatever fails and whenever, the answers are the same.
//!
//! What was done about it is reported once.

use std::sync::Arc;

use engine::{
    Chunk, Devices, FaultPlan, GpuFallback, GpuFault, GpuIncident, LoadOptions, LogitsSelection, Model,
    SequenceId,
};
use weights::WeightFile;

mod families;
mod memory;
mod session;
mod table;
mod together;
mod wrong;

pub const FAULTS: [GpuFault; 5] =
    [GpuFault::Lost, GpuFault::Memory, GpuFault::Invalid, GpuFault::TimeOut, GpuFault::Wrong];

/// Set to have every fault at every submission; otherwise each has some.
const ALL_VARIABLE: &str = "INGLENOOK_ALL_FAULTS";

pub fn wants_all() -> bool {
    std::env::var_os(ALL_VARIABLE).is_some()
}

pub fn open(family: &str) -> Arc<WeightFile> {
    let dir = inglenook_tests::workspace_root().join("tests/reference/families").join(family);
    Arc::new(WeightFile::open(&dir).unwrap())
}

pub fn options(faults: &FaultPlan) -> LoadOptions {
    LoadOptions {
        devices: Devices::Gpu { layers: None },
        faults: faults.clone(),
        ctx: Some(256),
        threads: Some(1),
        max_sequences: 4,
        ..LoadOptions::default()
    }
}

pub fn load(file: &Arc<WeightFile>, options: &LoadOptions) -> Model {
    Model::load(file.clone(), options, &mut |_| {}).unwrap()
}

/// The likeliest token after what a sequence holds and `tokens`.
pub fn next(model: &mut Model, seq: SequenceId, tokens: &[u32]) -> u32 {
    let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }]).unwrap();
    let row = logits.row(0).unwrap();
    (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32
}

pub fn is_on_gpu(model: &Model) -> bool {
    !model.info().devices[0].starts_with("cpu")
}

pub fn gpu_incidents(model: &mut Model) -> Vec<GpuIncident> {
    std::iter::from_fn(|| model.take_gpu_incident()).collect()
}

pub fn fallbacks(model: &mut Model) -> Vec<GpuFallback> {
    gpu_incidents(model).into_iter().map(|incident| incident.fallback).collect()
}
