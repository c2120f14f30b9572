//! What follows when a graphics card fails, step by step: one that was lost is opened anew, from one whose memory is full
//! less is asked, and what can't be helped goes to the processor. Pure: it changes the options, others load by them.

use kernels::{BackendKind, KvDType, LaneReduction, Precision};

use super::gpu_health::GpuHealth;
use super::{DEFAULT_MAX_ROWS, Devices, LoadOptions};
use crate::error::EngineError;
use crate::kv::requantize::KvRequantize;
use crate::kv::size::in_fewer_bits;
use crate::spec::ModelSpec;

/// What was done about a card that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuFallback {
    /// it was opened anew
    Reopened,
    /// prompts are read in smaller pieces: so many tokens at once
    MaxRows(usize),
    /// keys and values are stored in fewer bits
    KvPrecision(KvDType),
    /// it multiplies in a precision that less can go wrong with
    Precision(Precision),
    /// its kernels do without subgroups
    NoSubgroups,
    /// it has fewer layers, the processor the others
    FewerLayers { on_gpu: usize, of: usize },
    /// it is left out: so many others, which have the whole model too, go on
    OtherReplicas(usize),
    /// the processor computes
    Cpu,
    /// and will until the program starts again
    CpuForSession,
}

/// A card that failed though answers go on, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuIncident {
    pub error: EngineError,
    pub fallback: GpuFallback,
}

/// Rows of one run are made fewer by so much at a time, down to these: fewer would read weights for too few tokens.
const ROW_REDUCTION: usize = 4;
const MIN_ROWS: usize = 16;

/// Of a model's layers a card has at least so many: below, what is sent to and fro is not worth it.
const MIN_GPU_LAYER_SHARE: usize = 8;

/// What is asked next of a card that failed with `error`, and by which options. `asked`: those of the user.
pub(super) fn next(
    error: &EngineError,
    options: &mut LoadOptions,
    asked: &LoadOptions,
    health: &GpuHealth,
    spec: &ModelSpec,
) -> GpuFallback {
    match error.code() {
        "kernels.gpu_memory" => less(options, spec).unwrap_or_else(|| cpu(options, asked, GpuFallback::Cpu)),
        "kernels.gpu_lost" | "kernels.gpu_time_out" if !health.failed() => GpuFallback::Reopened,
        "kernels.gpu_lost" | "kernels.gpu_time_out" => cpu(options, asked, GpuFallback::CpuForSession),
        "kernels.gpu_precision" | "kernels.gpu_wrong" => {
            safer(error, options).unwrap_or_else(|| cpu(options, asked, GpuFallback::Cpu))
        }
        "kernels.gpu_subgroups" => {
            without_subgroups(options).unwrap_or_else(|| cpu(options, asked, GpuFallback::Cpu))
        }
        _ => cpu(options, asked, GpuFallback::Cpu),
    }
}

/// Results that are no numbers may be those of halves, which end at 65,504: floats are tried before the processor.
/// None: there are floats already.
fn safer(error: &EngineError, options: &mut LoadOptions) -> Option<GpuFallback> {
    let next = match error.code() {
        "kernels.gpu_precision" => options.gpu_precision.in_use().safer()?,
        _ => options.gpu_precision.in_use().safer().map(|_| Precision::F32)?,
    };
    options.gpu_precision = next;
    Some(GpuFallback::Precision(next))
}

/// Kernels that share by memory are others than those that err, and give the same bits where those are right. None: it
/// had those.
fn without_subgroups(options: &mut LoadOptions) -> Option<GpuFallback> {
    match options.gpu_lane_reduction {
        LaneReduction::SharedMemory => None,
        LaneReduction::Subgroups => {
            options.gpu_lane_reduction = LaneReduction::SharedMemory;
            // cooperative matrices belong to subgroups
            if options.gpu_precision == Precision::Matrices {
                options.gpu_precision = Precision::F16;
            }
            Some(GpuFallback::NoSubgroups)
        }
    }
}

/// The processor has what the card was spared.
fn cpu(options: &mut LoadOptions, asked: &LoadOptions, fallback: GpuFallback) -> GpuFallback {
    *options = LoadOptions { devices: Devices::Cpu, ..asked.clone() };
    fallback
}

/// None: less can't be asked of it.
fn less(options: &mut LoadOptions, spec: &ModelSpec) -> Option<GpuFallback> {
    let rows = options.max_rows.unwrap_or(DEFAULT_MAX_ROWS);
    if rows > MIN_ROWS && !spec.is_bidirectional() {
        let rows = (rows / ROW_REDUCTION).max(MIN_ROWS);
        options.max_rows = Some(rows);
        return Some(GpuFallback::MaxRows(rows));
    }
    // what ages has two precisions already
    if options.kv_requantize == KvRequantize::Off
        && let Some(kv) = in_fewer_bits(spec, options.kv)
    {
        options.kv = kv;
        return Some(GpuFallback::KvPrecision(kv));
    }
    let of = spec.layers.len();
    let (devices, on_gpu) = with_half_the_layers(&options.devices, of)?;
    if on_gpu * MIN_GPU_LAYER_SHARE < of {
        return None;
    }
    options.devices = devices;
    Some(GpuFallback::FewerLayers { on_gpu, of })
}

/// Each card with half of its layers, the processor with the others; how many the cards have then. None: there is no
/// card, or one would have none.
fn with_half_the_layers(devices: &Devices, of: usize) -> Option<(Devices, usize)> {
    match devices {
        Devices::Auto | Devices::Scalar | Devices::Cpu | Devices::Replicas(_) => None,
        Devices::Gpu { layers } => {
            let on_gpu = layers.unwrap_or(of).min(of) / 2;
            (on_gpu > 0).then_some((Devices::Gpu { layers: Some(on_gpu) }, on_gpu))
        }
        Devices::Split(parts) => {
            let cards = parts.iter().filter(|(kind, _)| *kind == BackendKind::Gpu);
            let halves: Vec<_> = cards.map(|(kind, n)| (*kind, n / 2)).collect();
            let on_gpu = halves.iter().map(|(_, n)| n).sum();
            let is_whole = !halves.is_empty() && halves.iter().all(|(_, n)| *n > 0);
            let rest = std::iter::once((BackendKind::Cpu, of - on_gpu));
            is_whole.then(|| (Devices::Split(halves.into_iter().chain(rest).collect()), on_gpu))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::small;

    fn error(code: &'static str) -> EngineError {
        EngineError::new(code, "", "")
    }

    #[test]
    fn less_and_less_is_asked_of_a_full_card() {
        let model = small("llama-3.2-1b", 16);
        let asked = LoadOptions { devices: Devices::Gpu { layers: None }, ..LoadOptions::default() };
        let (mut options, health) = (asked.clone(), GpuHealth::default().or_own());
        let mut full = || {
            let fallback = next(&error("kernels.gpu_memory"), &mut options, &asked, &health, model.spec());
            (fallback, options.clone())
        };
        let steps: Vec<_> = (0..7).map(|_| full()).collect();
        let expected = [
            GpuFallback::MaxRows(64),
            GpuFallback::MaxRows(16),
            GpuFallback::KvPrecision(KvDType::Q8_0),
            GpuFallback::FewerLayers { on_gpu: 8, of: 16 },
            GpuFallback::FewerLayers { on_gpu: 4, of: 16 },
            GpuFallback::FewerLayers { on_gpu: 2, of: 16 },
            GpuFallback::Cpu,
        ];
        assert_eq!(steps.iter().map(|(fallback, _)| *fallback).collect::<Vec<_>>(), expected);
        let (_, last_on_gpu) = &steps[5];
        assert_eq!((last_on_gpu.max_rows, last_on_gpu.kv), (Some(16), KvDType::Q8_0));
        assert_eq!(last_on_gpu.devices, Devices::Gpu { layers: Some(2) });
        assert_eq!(
            steps[6].1,
            LoadOptions { devices: Devices::Cpu, ..asked.clone() },
            "nothing is spared there"
        );
    }

    #[test]
    fn several_cards_are_spared_alike() {
        let split = |parts: &[(BackendKind, usize)]| Devices::Split(parts.to_vec());
        let (card, cpu) = (BackendKind::Gpu, BackendKind::Cpu);
        for (before, after) in [
            (split(&[(card, 16)]), Some((split(&[(card, 8), (cpu, 8)]), 8))),
            (split(&[(card, 8), (card, 5), (cpu, 3)]), Some((split(&[(card, 4), (card, 2), (cpu, 10)]), 6))),
            (split(&[(card, 15), (card, 1)]), None),
            (split(&[(cpu, 16)]), None),
            (Devices::Cpu, None),
        ] {
            assert_eq!(with_half_the_layers(&before, 16), after, "{before:?}");
        }
        let model = small("llama-3.2-1b", 16);
        let mut options = LoadOptions { devices: split(&[(card, 16)]), ..LoadOptions::default() };
        let (asked, health) = (options.clone(), GpuHealth::default().or_own());
        let mut full = || next(&error("kernels.gpu_memory"), &mut options, &asked, &health, model.spec());
        let last = std::iter::from_fn(|| Some(full())).take(7).last();
        assert_eq!((last, options.devices), (Some(GpuFallback::Cpu), Devices::Cpu));
    }

    #[test]
    fn a_precision_that_errs_gives_way_to_a_safer_one() {
        let model = small("llama-3.2-1b", 2);
        for (asked, code, expected) in [
            (Precision::Matrices, "kernels.gpu_precision", vec![Precision::F16, Precision::F32]),
            (Precision::F16, "kernels.gpu_precision", vec![Precision::F32]),
            (Precision::Matrices, "kernels.gpu_wrong", vec![Precision::F32]),
            (Precision::Auto, "kernels.gpu_wrong", vec![]),
        ] {
            let devices = Devices::Gpu { layers: None };
            let asked = LoadOptions { devices, gpu_precision: asked, ..LoadOptions::default() };
            let (mut options, health) = (asked.clone(), GpuHealth::default().or_own());
            for precision in expected {
                let fallback = next(&error(code), &mut options, &asked, &health, model.spec());
                assert_eq!((fallback, options.gpu_precision), (GpuFallback::Precision(precision), precision));
                assert_eq!(options.devices, asked.devices);
            }
            assert_eq!(next(&error(code), &mut options, &asked, &health, model.spec()), GpuFallback::Cpu);
        }
    }

    #[test]
    fn a_card_is_tried_without_subgroups_before_the_processor() {
        let model = small("llama-3.2-1b", 2);
        for (asked, left) in [(Precision::Auto, Precision::Auto), (Precision::Matrices, Precision::F16)] {
            let devices = Devices::Gpu { layers: None };
            let asked = LoadOptions { devices, gpu_precision: asked, ..LoadOptions::default() };
            let (mut options, health) = (asked.clone(), GpuHealth::default().or_own());
            let mut errs =
                || next(&error("kernels.gpu_subgroups"), &mut options, &asked, &health, model.spec());
            assert_eq!(errs(), GpuFallback::NoSubgroups);
            let without = LoadOptions {
                gpu_lane_reduction: LaneReduction::SharedMemory,
                gpu_precision: left,
                ..asked.clone()
            };
            assert_eq!(options, without);
            assert_eq!(
                next(&error("kernels.gpu_wrong"), &mut options.clone(), &asked, &health, model.spec()),
                if left == Precision::F16 {
                    GpuFallback::Precision(Precision::F32)
                } else {
                    GpuFallback::Cpu
                }
            );
            let again = next(&error("kernels.gpu_subgroups"), &mut options, &asked, &health, model.spec());
            assert_eq!((again, options.devices), (GpuFallback::Cpu, Devices::Cpu));
        }
    }

    #[test]
    fn what_a_smaller_part_would_not_help_goes_to_the_processor() {
        let model = small("llama-3.2-1b", 2);
        let asked = LoadOptions { devices: Devices::Gpu { layers: None }, ..LoadOptions::default() };
        for code in
            ["kernels.gpu_absent", "kernels.gpu_invalid", "kernels.gpu_wrong", "kernels.gpu_precision"]
        {
            let (mut options, health) = (asked.clone(), GpuHealth::default().or_own());
            assert_eq!(next(&error(code), &mut options, &asked, &health, model.spec()), GpuFallback::Cpu);
            assert_eq!(options.devices, Devices::Cpu);
        }
        let (mut options, health) = (asked.clone(), GpuHealth::default().or_own());
        let mut lost = || next(&error("kernels.gpu_lost"), &mut options, &asked, &health, model.spec());
        assert_eq!([lost(), lost()], [GpuFallback::Reopened, GpuFallback::CpuForSession]);
    }
}
