//! The resource use of a turn, reported at its end if it had the model and the machine to itself.

use super::model::LoadedModel;
use contract::protocol::{RunFacts, Step, TurnResult};
use platform::memory;

/// The last turn that ended among `steps`. `is_alone`: no other model is in memory.
pub fn of(model: &LoadedModel, steps: &[(String, Step)], is_alone: bool) -> Option<RunFacts> {
    let finished = steps.iter().rev().find_map(|(_, step)| match step {
        Step::Done(finished) => Some(finished),
        Step::Queued { .. }
        | Step::Loading { .. }
        | Step::Began { .. }
        | Step::Prefill { .. }
        | Step::Compacted { .. }
        | Step::Wanting { .. }
        | Step::Token { .. }
        | Step::ToolCall { .. }
        | Step::Notice { .. }
        | Step::Rest { .. }
        | Step::Failed { .. } => None,
    })?;
    let TurnResult { accepted_tokens, generated_tokens, prompt_tokens, decode_tok_s, .. } = **finished;
    // tokens that were guessed come several at once: they say nothing about one; contexts that age take less than theirs
    if model.is_busy() || accepted_tokens > 0 || model.load.kv_aging != contract::KvAging::Off {
        return None;
    }
    let grown = || Some(memory::used_bytes()?.saturating_sub(model.used_before?));
    Some(RunFacts {
        model: model.reference.id.clone(),
        kv: model.load.kv,
        generated: generated_tokens,
        tokens: prompt_tokens.saturating_add(generated_tokens),
        tok_s: decode_tok_s,
        // further turns leave contexts behind that are not this one's
        memory_bytes: (is_alone && model.n_taken == 1).then(grown).flatten(),
    })
}
