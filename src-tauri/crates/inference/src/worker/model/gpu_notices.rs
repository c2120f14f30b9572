//! User notices about a GPU that failed or is missing: the consequence first, then the cause.

use engine::model::gpu_health::GPU_GIVEN_UP;
use engine::{EngineError, GpuFallback, GpuIncident, Model};

use contract::{Error, ErrorKind};

/// The fate of a GPU while a model was loaded.
pub fn loaded(model: &mut Model) -> Vec<Error> {
    let mut all: Vec<Error> = std::iter::from_fn(|| model.take_gpu_incident()).map(|it| told(&it)).collect();
    all.extend(model.info().fallback_error.as_ref().and_then(instead));
    all
}

/// What was asked for is not there: the processor computes. None: that was said when it came to it.
fn instead(error: &EngineError) -> Option<Error> {
    let message = format!("Using the CPU instead of the GPU: {error}.");
    let told = || Error::new(ErrorKind::Device, error.code(), message, error.remedy());
    (error.code() != GPU_GIVEN_UP).then(told)
}

/// Notice that the GPU failed while answers continue.
pub fn told(trouble: &GpuIncident) -> Error {
    let GpuIncident { error, fallback } = trouble;
    let done = match *fallback {
        GpuFallback::Reopened => "The GPU was briefly unavailable. The answer continues without loss".to_owned(),
        GpuFallback::MaxRows(n) => {
            format!("GPU memory is low: prompts are processed in smaller batches of {n} tokens")
        }
        GpuFallback::KvPrecision(_) => {
            "GPU memory is low: the KV cache now uses 8 bits, with hardly any loss of quality"
                .to_owned()
        }
        GpuFallback::Precision(precision) => {
            format!("The GPU can't use the chosen precision and multiplies in {}", precision.name())
        }
        GpuFallback::NoSubgroups => {
            "With this driver, subgroup operations give wrong results on the GPU. They are turned off, which is slightly slower"
                .to_owned()
        }
        GpuFallback::FewerLayers { on_gpu, of } => format!(
            "GPU memory is low: the GPU computes {on_gpu} of {of} layers, the CPU the rest"
        ),
        GpuFallback::OtherReplicas(n) => {
            let others = if n == 1 { "the other one continues".to_owned() } else { format!("the other {n} continue") };
            format!("One of the GPUs failed and is no longer used: {others}, and the answer continues without loss")
        }
        GpuFallback::Cpu => {
            "The GPU failed. The CPU takes over, and the answer continues without loss".to_owned()
        }
        GpuFallback::CpuForSession => {
            "The GPU failed twice within ten minutes. The CPU is used until Inglenook restarts, and the answer continues without loss"
                .to_owned()
        }
    };
    Error::new(ErrorKind::Device, error.code(), format!("{done}. ({error}.)"), error.remedy())
}

#[cfg(test)]
mod tests {
    use engine::{KvDType, Precision};

    use super::*;

    #[test]
    fn whatever_is_done_is_told_in_words_of_its_own() {
        let error = || EngineError::new("kernels.gpu_memory", "the card has no memory left", "Close a game.");
        let all = [
            GpuFallback::Reopened,
            GpuFallback::MaxRows(64),
            GpuFallback::KvPrecision(KvDType::Q8_0.both()),
            GpuFallback::FewerLayers { on_gpu: 4, of: 32 },
            GpuFallback::Precision(Precision::F32),
            GpuFallback::NoSubgroups,
            GpuFallback::OtherReplicas(1),
            GpuFallback::OtherReplicas(2),
            GpuFallback::Cpu,
            GpuFallback::CpuForSession,
        ];
        let words: Vec<String> = all
            .map(|fallback| told(&GpuIncident { error: error(), fallback }).message().to_owned())
            .into_iter()
            .collect();
        for (at, message) in words.iter().enumerate() {
            assert!(message.contains("the card has no memory left"), "{message}");
            assert!(!words[..at].contains(message), "{message}");
        }
        assert!(words[1].contains("64 tokens") && words[3].contains("4 of 32 layers"));
        assert!(instead(&error()).is_some());
        assert!(instead(&EngineError::new(GPU_GIVEN_UP, "", "")).is_none());
    }
}
