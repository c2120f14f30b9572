//! Estimates how much of a model a GPU would hold. Memory that its driver doesn't report is
//! unknown, never guessed.

use engine::memory_estimate::MemoryEstimate;

use super::{LoadDefaults, MachineFacts, gigabytes};
use contract::types::FitGpu;

/// A GPU that would compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetGpu {
    pub name: String,
    /// What a model may take of it. None: the driver doesn't say.
    pub memory_bytes: Option<u64>,
}

/// The work requested of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GpuShare {
    #[default]
    Nothing,
    /// The first N layers (None: as many as fit) on the GPU, if it was faster than the processor.
    IfFaster(Option<u32>),
    /// As many layers as fit; where it isn't known, all.
    Fitting,
    /// The first N layers.
    Layers(u32),
}

/// The GPU's share of a model that takes `total` bytes in all. None: no GPU is requested, or there
/// is none.
pub fn share(
    memory_estimate: &MemoryEstimate,
    total: u64,
    n_ctx: usize,
    here: &MachineFacts,
    asked: &LoadDefaults,
) -> Option<FitGpu> {
    let gpu = here.gpu.as_ref()?;
    let all = Some(memory_estimate.layer_weights.len()).filter(|n| *n > 0);
    let kv = crate::engine_types::kv_precision(asked.kv);
    let fits = gpu.memory_bytes.and_then(|bytes| memory_estimate.layers_within(bytes, n_ctx, kv));
    let n_asked = match asked.gpu_share {
        GpuShare::Nothing => return None,
        GpuShare::IfFaster(None) | GpuShare::Fitting => fits.or(all),
        GpuShare::IfFaster(Some(n)) | GpuShare::Layers(n) => all.map(|all| all.min(n as usize)),
    };
    let on_card_bytes = n_asked.and_then(|n| memory_estimate.first_layers(n, n_ctx, kv));
    let count = |n: Option<usize>| n.and_then(|n| u32::try_from(n).ok());
    Some(FitGpu {
        name: gpu.name.clone(),
        memory_bytes: gpu.memory_bytes,
        layers: count(all),
        layers_asked: count(n_asked),
        layers_fit: count(fits),
        stays_bytes: on_card_bytes.map(|bytes| total.saturating_sub(bytes)),
        on_card_bytes,
    })
}

/// What stays in system memory, if the GPU surely holds the rest.
pub fn surely_stays(card: &FitGpu) -> Option<u64> {
    let fits = card.layers_asked? <= card.layers_fit?;
    card.stays_bytes.filter(|_| fits)
}

/// As a sentence.
pub fn said(card: &FitGpu) -> String {
    let name = &card.name;
    let (Some(asked), Some(all)) = (card.layers_asked, card.layers) else {
        return format!("How much of it fits on {name} is known after the download.");
    };
    let bytes = card.on_card_bytes.map_or_else(|| "an unknown amount".to_owned(), gigabytes);
    match (card.memory_bytes, card.layers_fit) {
        (Some(memory), Some(fit)) if fit >= asked => {
            let stays = card.stays_bytes.filter(|n| *n > 0);
            let stays = stays.map_or_else(String::new, |n| format!("; the CPU computes {}", gigabytes(n)));
            format!("{asked} of {all} layers fit on {name}: {bytes} of {}{stays}.", gigabytes(memory))
        }
        (Some(memory), Some(fit)) => format!(
            "{asked} layers need {bytes}, more than the {} of {name}: {fit} of {all} fit (--gpu-layers {fit}).",
            gigabytes(memory)
        ),
        (Some(_) | None, _) => format!(
            "{asked} of {all} layers need {bytes} on {name}. Whether they fit is unknown, because the driver doesn't report its memory."
        ),
    }
}

#[cfg(test)]
mod tests {
    use engine::shape;
    use weights::WeightFile;

    use super::super::{EstimateBasis, MeasuredSpeeds, estimate};
    use super::*;
    use contract::types::{FitVerdict, ModelFit};

    const GB: u64 = 1_000_000_000;

    fn memory_estimate() -> MemoryEstimate {
        let (shape, mix) = (shape::find("llama-3.1-8b").unwrap(), shape::mix("q4_k_m").unwrap());
        let outline: WeightFile = shape::outline(&shape, mix).unwrap();
        MemoryEstimate::of(&outline).unwrap()
    }

    /// The estimate for the given free memory and GPU memory.
    fn fit(free: u64, memory_bytes: Option<u64>, gpu_share: GpuShare) -> ModelFit {
        let speeds =
            MeasuredSpeeds { formats: [("Q4_K".to_owned(), 50e9)].into(), ..MeasuredSpeeds::default() };
        let gpu = Some(TargetGpu { name: "Card X".into(), memory_bytes });
        let here = MachineFacts { free_bytes: Some(free), total_bytes: Some(2 * free), speeds, gpu };
        let asked = LoadDefaults { context: 8192, gpu_share, ..LoadDefaults::default() };
        estimate(&memory_estimate(), EstimateBasis::Exactly, &here, &asked, None)
    }

    #[test]
    fn a_card_holds_what_fits_and_says_what_stays() {
        assert_eq!(fit(16 * GB, Some(24 * GB), GpuShare::Nothing).card, None, "nobody asked it");
        let whole = fit(16 * GB, Some(24 * GB), GpuShare::Fitting);
        let card = whole.card.unwrap();
        assert_eq!((card.layers, card.layers_asked, card.layers_fit), (Some(32), Some(32), Some(32)));
        let (on_card, stays) = (card.on_card_bytes.unwrap(), card.stays_bytes.unwrap());
        assert_eq!(on_card + stays, whole.needs.total);
        assert!(
            whole.reason.contains("32 of 32 layers fit on Card X: 6.1 GB of 24.0 GB"),
            "{}",
            whole.reason
        );

        let part = fit(16 * GB, Some(4 * GB), GpuShare::Fitting).card.unwrap();
        let n = part.layers_fit.unwrap();
        assert!((10..30).contains(&n) && part.layers_asked == Some(n), "as many as fit: {part:?}");
        let all = fit(16 * GB, Some(4 * GB), GpuShare::Layers(32));
        assert!(all.reason.contains(&format!("{n} of 32 fit (--gpu-layers {n})")), "{}", all.reason);
        let fewer = fit(16 * GB, Some(4 * GB), GpuShare::Layers(n));
        let card = fewer.card.unwrap();
        assert!(card.on_card_bytes.unwrap() <= 4 * GB && card.stays_bytes.unwrap() > GB, "{card:?}");
        assert_eq!(fit(16 * GB, Some(24 * GB), GpuShare::Layers(99)).card.unwrap().layers_asked, Some(32));
    }

    #[test]
    fn memory_that_nobody_knows_is_called_unknown_and_counts_for_nothing() {
        let unknown = fit(5 * GB, None, GpuShare::Fitting);
        let card = unknown.card.unwrap();
        assert_eq!((card.memory_bytes, card.layers_fit), (None, None));
        assert!(unknown.reason.contains("unknown"), "{}", unknown.reason);
        assert_eq!(unknown.verdict, FitVerdict::WontFit, "as if there were no card");
        assert_ne!(
            fit(5 * GB, Some(24 * GB), GpuShare::Fitting).verdict,
            FitVerdict::WontFit,
            "the card holds it"
        );
        assert_ne!(
            fit(5 * GB, Some(3 * GB), GpuShare::IfFaster(None)).verdict,
            FitVerdict::WontFit,
            "both hold it"
        );
        assert_eq!(fit(5 * GB, Some(2 * GB), GpuShare::Layers(32)).verdict, FitVerdict::WontFit, "it can't");
    }
}
