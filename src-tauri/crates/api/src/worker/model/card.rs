//! What the user is told of a graphics card that failed or isn't there: what it means for them, then the cause.

use engine::model::health::GIVEN_UP;
use engine::{CardTrouble, EngineError, Model, Relief};

use crate::error::{Error, ErrorKind};

/// What became of a card while a model was loaded.
pub fn loaded(model: &mut Model) -> Vec<Error> {
    let mut all: Vec<Error> = std::iter::from_fn(|| model.take_trouble()).map(|it| told(&it)).collect();
    all.extend(model.info().instead.as_ref().and_then(instead));
    all
}

/// What was asked for is not there: the processor computes. None: that was said when it came to it.
fn instead(error: &EngineError) -> Option<Error> {
    let message = format!("Using the CPU instead of the GPU: {error}.");
    let told = || Error::new(ErrorKind::Device, error.code(), message, error.remedy());
    (error.code() != GIVEN_UP).then(told)
}

/// The card failed, and answers go on.
pub fn told(trouble: &CardTrouble) -> Error {
    let CardTrouble { error, relief } = trouble;
    let done = match *relief {
        Relief::Anew => "The GPU was briefly unavailable. The answer continues without loss".to_owned(),
        Relief::Rows(n) => {
            format!("GPU memory is low: prompts are processed in smaller batches of {n} tokens")
        }
        Relief::Kv(_) => {
            "GPU memory is low: the KV cache now uses 8 bits, with hardly any loss of quality"
                .to_owned()
        }
        Relief::Precision(precision) => {
            format!("The GPU can't use the chosen precision and multiplies in {}", precision.name())
        }
        Relief::Subgroups => {
            "With this driver, subgroup operations give wrong results on the GPU. They are turned off, which is slightly slower"
                .to_owned()
        }
        Relief::Layers { on_card, of } => format!(
            "GPU memory is low: the GPU computes {on_card} of {of} layers, the CPU the rest"
        ),
        Relief::Others(n) => {
            let others = if n == 1 { "the other one continues".to_owned() } else { format!("the other {n} continue") };
            format!("One of the GPUs failed and is no longer used: {others}, and the answer continues without loss")
        }
        Relief::Cpu => {
            "The GPU failed. The CPU takes over, and the answer continues without loss".to_owned()
        }
        Relief::CpuForSession => {
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
            Relief::Anew,
            Relief::Rows(64),
            Relief::Kv(KvDType::Q8_0),
            Relief::Layers { on_card: 4, of: 32 },
            Relief::Precision(Precision::F32),
            Relief::Subgroups,
            Relief::Others(1),
            Relief::Others(2),
            Relief::Cpu,
            Relief::CpuForSession,
        ];
        let words: Vec<String> = all
            .map(|relief| told(&CardTrouble { error: error(), relief }).message().to_owned())
            .into_iter()
            .collect();
        for (at, message) in words.iter().enumerate() {
            assert!(message.contains("the card has no memory left"), "{message}");
            assert!(!words[..at].contains(message), "{message}");
        }
        assert!(words[1].contains("64 tokens") && words[3].contains("4 of 32 layers"));
        assert!(instead(&error()).is_some());
        assert!(instead(&EngineError::new(GIVEN_UP, "", "")).is_none());
    }
}
