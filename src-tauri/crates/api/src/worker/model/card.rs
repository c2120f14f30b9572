//! What the user is told of a graphics card that failed or isn't there: what it means for them, then the cause.

use engine::model::gpu_health::GPU_GIVEN_UP;
use engine::{EngineError, GpuFallback, GpuIncident, Model};

use crate::error::{Error, ErrorKind};

/// What became of a card while a model was loaded.
pub fn loaded(model: &mut Model) -> Vec<Error> {
    let mut all: Vec<Error> = std::iter::from_fn(|| model.take_gpu_incident()).map(|it| told(&it)).collect();
    all.extend(model.info().fallback_error.as_ref().and_then(instead));
    all
}

/// What was asked for is not there: the processor computes. None: that was said when it came to it.
fn instead(error: &EngineError) -> Option<Error> {
    let message = format!("The processor computes instead of the graphics card: {error}.");
    let told = || Error::new(ErrorKind::Device, error.code(), message, error.remedy());
    (error.code() != GPU_GIVEN_UP).then(told)
}

/// The card failed, and answers go on.
pub fn told(trouble: &GpuIncident) -> Error {
    let GpuIncident { error, fallback } = trouble;
    let done = match *fallback {
        GpuFallback::Reopened => "The graphics card was away for a moment; the answer goes on without a loss".to_owned(),
        GpuFallback::MaxRows(n) => {
            format!("The graphics card is short of memory: prompts are read in smaller pieces, {n} tokens at once")
        }
        GpuFallback::KvPrecision(_) => {
            "The graphics card is short of memory: the context is kept in 8 bits, which costs hardly any quality"
                .to_owned()
        }
        GpuFallback::Precision(precision) => {
            format!("The graphics card does without the precision that was chosen: it multiplies in {}", precision.name())
        }
        GpuFallback::NoSubgroups => {
            "With this driver the graphics card computes something wrongly by its subgroups: it does without them, a \
             little more slowly, and nothing is lost"
                .to_owned()
        }
        GpuFallback::FewerLayers { on_gpu, of } => format!(
            "The graphics card is short of memory: it computes {on_gpu} of {of} layers, the processor the others"
        ),
        GpuFallback::OtherReplicas(n) => {
            let others = if n == 1 { "the other goes".to_owned() } else { format!("the other {n} go") };
            format!("One of the graphics cards failed and is left out: {others} on, and the answer without a loss")
        }
        GpuFallback::Cpu => {
            "The graphics card can't go on; the processor does, and the answer goes on without a loss".to_owned()
        }
        GpuFallback::CpuForSession => {
            "The graphics card failed twice within ten minutes: the processor computes until Inglenook starts again, \
             and the answer goes on without a loss"
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
            GpuFallback::KvPrecision(KvDType::Q8_0),
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
