//! Fallback ladder after a GPU fault: reopen, shrink (rows, key-value precision, layers), finally the CPU.
//!
//! Pure: it changes the load options, and the caller loads by them.

use kernels::{BackendKind, KvPrecision, LaneReduction, Precision};

use super::gpu_health::GpuHealth;
use super::{DEFAULT_MAX_ROWS, Devices, LoadOptions};
use crate::error::EngineError;
use crate::kv::requantize::KvRequantize;
use crate::kv::size::next_smaller;
use crate::spec::ModelSpec;

/// What was done about a GPU that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuFallback {
    /// The GPU was reopened.
    Reopened,
    /// Prompts are read in smaller runs of this many rows.
    MaxRows(usize),
    /// Keys and values have a smaller precision.
    KvPrecision(KvPrecision),
    /// Matrix multiplications have a safer precision.
    Precision(Precision),
    /// Its kernels do without subgroups.
    NoSubgroups,
    /// It computes fewer layers; the CPU computes the others.
    FewerLayers {
        /// Layers on the GPU.
        on_gpu: usize,
        /// Layers of the model.
        of: usize,
    },
    /// It is no longer used. This many other replicas continue.
    OtherReplicas(usize),
    /// The CPU computes.
    Cpu,
    /// The CPU computes until the program restarts.
    CpuForSession,
}

/// A GPU failure that answers survived, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuIncident {
    /// The failure.
    pub error: EngineError,
    /// The reaction.
    pub fallback: GpuFallback,
}

/// Factor and lower bound of each row reduction. Below it, weights would be read for too few tokens.
const ROW_REDUCTION: usize = 4;
const MIN_ROWS: usize = 16;

/// Denominator of the smallest share of layers worth a GPU: below 1/8, transfers cost more than they save.
const MIN_GPU_LAYER_SHARE: usize = 8;

/// Chooses the next fallback for `error` and changes `options` accordingly. `requested` are the user's options.
pub(super) fn next_fallback(
    error: &EngineError,
    options: &mut LoadOptions,
    requested: &LoadOptions,
    health: &GpuHealth,
    spec: &ModelSpec,
) -> GpuFallback {
    match error.code() {
        "kernels.gpu_memory" => {
            reduce_memory(options, spec).unwrap_or_else(|| use_cpu(options, requested, GpuFallback::Cpu))
        }
        "kernels.gpu_lost" | "kernels.gpu_time_out" if !health.record_failure() => GpuFallback::Reopened,
        "kernels.gpu_lost" | "kernels.gpu_time_out" => {
            use_cpu(options, requested, GpuFallback::CpuForSession)
        }
        "kernels.gpu_precision" | "kernels.gpu_wrong" => use_safer_precision(error, options)
            .unwrap_or_else(|| use_cpu(options, requested, GpuFallback::Cpu)),
        "kernels.gpu_subgroups" => {
            avoid_subgroups(options).unwrap_or_else(|| use_cpu(options, requested, GpuFallback::Cpu))
        }
        _ => use_cpu(options, requested, GpuFallback::Cpu),
    }
}

/// Non-finite results may be overflows of F16 (above 65,504): F32 is tried before the CPU. Returns `None` if it was
/// F32 already.
fn use_safer_precision(error: &EngineError, options: &mut LoadOptions) -> Option<GpuFallback> {
    let next = match error.code() {
        "kernels.gpu_precision" => options.gpu_precision.safer()?,
        _ => options.gpu_precision.in_use().safer().map(|_| Precision::F32)?,
    };
    options.gpu_precision = next;
    Some(GpuFallback::Precision(next))
}

/// Switches to kernels that share by memory. They give the same bits where both are right. Returns `None` if they
/// were in use.
fn avoid_subgroups(options: &mut LoadOptions) -> Option<GpuFallback> {
    match options.gpu_lane_reduction {
        LaneReduction::SharedMemory => None,
        LaneReduction::Subgroups => {
            options.gpu_lane_reduction = LaneReduction::SharedMemory;
            // Cooperative matrices need subgroups.
            if options.gpu_precision == Precision::Matrices {
                options.gpu_precision = Precision::F32;
            }
            Some(GpuFallback::NoSubgroups)
        }
    }
}

/// Moves everything to the CPU, without the reductions made for the GPU.
fn use_cpu(options: &mut LoadOptions, requested: &LoadOptions, fallback: GpuFallback) -> GpuFallback {
    *options = LoadOptions { devices: Devices::Cpu, ..requested.clone() };
    fallback
}

/// Shrinks the next demand on GPU memory. Returns `None` if nothing is left to shrink.
fn reduce_memory(options: &mut LoadOptions, spec: &ModelSpec) -> Option<GpuFallback> {
    let rows = options.max_rows.unwrap_or(DEFAULT_MAX_ROWS);
    if rows > MIN_ROWS && !spec.is_bidirectional() {
        let rows = (rows / ROW_REDUCTION).max(MIN_ROWS);
        options.max_rows = Some(rows);
        return Some(GpuFallback::MaxRows(rows));
    }
    // Requantized contexts have two precisions already.
    if options.kv_requantize == KvRequantize::Off
        && let Some(kv) = next_smaller(spec, options.kv)
    {
        options.kv = kv;
        return Some(GpuFallback::KvPrecision(kv));
    }
    let of = spec.layers.len();
    let (devices, on_gpu) = halve_gpu_layers(&options.devices, of)?;
    if on_gpu * MIN_GPU_LAYER_SHARE < of {
        return None;
    }
    options.devices = devices;
    Some(GpuFallback::FewerLayers { on_gpu, of })
}

/// Moves half of each GPU's layers to the CPU. Returns the layers left on GPUs, or `None` if there is no GPU or one
/// would have none.
fn halve_gpu_layers(devices: &Devices, of: usize) -> Option<(Devices, usize)> {
    match devices {
        Devices::Auto | Devices::Scalar | Devices::Cpu | Devices::Replicas(_) => None,
        Devices::Gpu { layers } => {
            let on_gpu = layers.unwrap_or(of).min(of) / 2;
            (on_gpu > 0).then_some((Devices::Gpu { layers: Some(on_gpu) }, on_gpu))
        }
        Devices::Split(parts) => {
            let gpus = parts.iter().filter(|(kind, _)| *kind == BackendKind::Gpu);
            let halves: Vec<_> = gpus.map(|(kind, n)| (*kind, n / 2)).collect();
            let on_gpu = halves.iter().map(|(_, n)| n).sum();
            let is_whole = !halves.is_empty() && halves.iter().all(|(_, n)| *n > 0);
            let rest = std::iter::once((BackendKind::Cpu, of - on_gpu));
            is_whole.then(|| (Devices::Split(halves.into_iter().chain(rest).collect()), on_gpu))
        }
    }
}

#[cfg(test)]
mod tests {
    use kernels::KvDType;

    use super::*;
    use crate::scheduler::tests::small;

    fn error(code: &'static str) -> EngineError {
        EngineError::new(code, "", "")
    }

    #[test]
    fn a_full_gpu_is_used_less_and_less() {
        let model = small("llama-3.2-1b", 16);
        let requested = LoadOptions { devices: Devices::Gpu { layers: None }, ..LoadOptions::default() };
        let (mut options, health) = (requested.clone(), GpuHealth::default().or_new());
        let mut full = || {
            let fallback =
                next_fallback(&error("kernels.gpu_memory"), &mut options, &requested, &health, model.spec());
            (fallback, options.clone())
        };
        let steps: Vec<_> = (0..7).map(|_| full()).collect();
        let expected = [
            GpuFallback::MaxRows(64),
            GpuFallback::MaxRows(16),
            GpuFallback::KvPrecision(KvDType::Q8_0.both()),
            GpuFallback::FewerLayers { on_gpu: 8, of: 16 },
            GpuFallback::FewerLayers { on_gpu: 4, of: 16 },
            GpuFallback::FewerLayers { on_gpu: 2, of: 16 },
            GpuFallback::Cpu,
        ];
        assert_eq!(steps.iter().map(|(fallback, _)| *fallback).collect::<Vec<_>>(), expected);
        let (_, last_on_gpu) = &steps[5];
        assert_eq!((last_on_gpu.max_rows, last_on_gpu.kv), (Some(16), KvDType::Q8_0.both()));
        assert_eq!(last_on_gpu.devices, Devices::Gpu { layers: Some(2) });
        assert_eq!(
            steps[6].1,
            LoadOptions { devices: Devices::Cpu, ..requested.clone() },
            "nothing is reduced there"
        );
    }

    #[test]
    fn all_gpus_shrink_alike() {
        let split = |parts: &[(BackendKind, usize)]| Devices::Split(parts.to_vec());
        let (gpu, cpu) = (BackendKind::Gpu, BackendKind::Cpu);
        for (before, after) in [
            (split(&[(gpu, 16)]), Some((split(&[(gpu, 8), (cpu, 8)]), 8))),
            (split(&[(gpu, 8), (gpu, 5), (cpu, 3)]), Some((split(&[(gpu, 4), (gpu, 2), (cpu, 10)]), 6))),
            (split(&[(gpu, 15), (gpu, 1)]), None),
            (split(&[(cpu, 16)]), None),
            (Devices::Cpu, None),
        ] {
            assert_eq!(halve_gpu_layers(&before, 16), after, "{before:?}");
        }
        let model = small("llama-3.2-1b", 16);
        let mut options = LoadOptions { devices: split(&[(gpu, 16)]), ..LoadOptions::default() };
        let (requested, health) = (options.clone(), GpuHealth::default().or_new());
        let mut full =
            || next_fallback(&error("kernels.gpu_memory"), &mut options, &requested, &health, model.spec());
        let last = std::iter::from_fn(|| Some(full())).take(7).last();
        assert_eq!((last, options.devices), (Some(GpuFallback::Cpu), Devices::Cpu));
    }

    #[test]
    fn a_failing_precision_is_replaced_by_a_safer_one() {
        let model = small("llama-3.2-1b", 2);
        for (requested, code, expected) in [
            (Precision::Matrices, "kernels.gpu_precision", vec![Precision::F32]),
            (Precision::Auto, "kernels.gpu_precision", vec![Precision::F32]),
            (Precision::F16, "kernels.gpu_precision", vec![Precision::F32]),
            (Precision::Matrices, "kernels.gpu_wrong", vec![Precision::F32]),
            (Precision::Auto, "kernels.gpu_wrong", vec![]),
        ] {
            let devices = Devices::Gpu { layers: None };
            let requested = LoadOptions { devices, gpu_precision: requested, ..LoadOptions::default() };
            let (mut options, health) = (requested.clone(), GpuHealth::default().or_new());
            for precision in expected {
                let fallback = next_fallback(&error(code), &mut options, &requested, &health, model.spec());
                assert_eq!((fallback, options.gpu_precision), (GpuFallback::Precision(precision), precision));
                assert_eq!(options.devices, requested.devices);
            }
            assert_eq!(
                next_fallback(&error(code), &mut options, &requested, &health, model.spec()),
                GpuFallback::Cpu
            );
        }
    }

    #[test]
    fn subgroups_are_avoided_before_the_cpu_is_used() {
        let model = small("llama-3.2-1b", 2);
        for (requested, left) in [(Precision::Auto, Precision::Auto), (Precision::Matrices, Precision::F32)] {
            let devices = Devices::Gpu { layers: None };
            let requested = LoadOptions { devices, gpu_precision: requested, ..LoadOptions::default() };
            let (mut options, health) = (requested.clone(), GpuHealth::default().or_new());
            let mut errs = || {
                next_fallback(
                    &error("kernels.gpu_subgroups"),
                    &mut options,
                    &requested,
                    &health,
                    model.spec(),
                )
            };
            assert_eq!(errs(), GpuFallback::NoSubgroups);
            let without = LoadOptions {
                gpu_lane_reduction: LaneReduction::SharedMemory,
                gpu_precision: left,
                ..requested.clone()
            };
            assert_eq!(options, without);
            assert_eq!(
                next_fallback(
                    &error("kernels.gpu_wrong"),
                    &mut options.clone(),
                    &requested,
                    &health,
                    model.spec()
                ),
                GpuFallback::Cpu
            );
            let again = next_fallback(
                &error("kernels.gpu_subgroups"),
                &mut options,
                &requested,
                &health,
                model.spec(),
            );
            assert_eq!((again, options.devices), (GpuFallback::Cpu, Devices::Cpu));
        }
    }

    #[test]
    fn errors_that_shrinking_cannot_help_move_to_the_cpu() {
        let model = small("llama-3.2-1b", 2);
        let devices = Devices::Gpu { layers: None };
        let requested = LoadOptions { devices, gpu_precision: Precision::F32, ..LoadOptions::default() };
        for code in
            ["kernels.gpu_absent", "kernels.gpu_invalid", "kernels.gpu_wrong", "kernels.gpu_precision"]
        {
            let (mut options, health) = (requested.clone(), GpuHealth::default().or_new());
            assert_eq!(
                next_fallback(&error(code), &mut options, &requested, &health, model.spec()),
                GpuFallback::Cpu
            );
            assert_eq!(options.devices, Devices::Cpu);
        }
        let (mut options, health) = (requested.clone(), GpuHealth::default().or_new());
        let mut lost =
            || next_fallback(&error("kernels.gpu_lost"), &mut options, &requested, &health, model.spec());
        assert_eq!([lost(), lost()], [GpuFallback::Reopened, GpuFallback::CpuForSession]);
    }
}
