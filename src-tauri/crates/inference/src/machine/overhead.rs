//! What a token costs apart from its weights: handing out and awaiting work, layer by layer, and
//! attention to earlier tokens. For small models and long conversations that dominates. Measured on
//! layers with almost no weights.

use std::sync::Arc;
use std::time::Duration;

use engine::memory_estimate::MemoryEstimate;
use engine::shape::{self, Shape};
use engine::{Chunk, LoadOptions, LogitsSelection, Model, SequenceId, TokenId};
use io::Clock;
use weights::{SharedBytes, WeightFile};

use crate::estimate::OverheadCosts;
use contract::Result;

/// Positions that a token attends to where attention is measured.
const DEEP: usize = 512;

/// Tokens of a round, and rounds; the best counts, since interference only slows.
const TOKENS: usize = 16;
const ROUNDS: usize = 4;

/// Errors: no memory.
pub fn measure(options: &LoadOptions, clock: &dyn Clock) -> Result<OverheadCosts> {
    let file = layers()?;
    let sizes = MemoryEstimate::of(&file)?;
    let options = LoadOptions { max_sequences: 1, ctx: Some(DEEP + 2 * TOKENS), ..options.clone() };
    let mut model = Model::load(Arc::new(file), &options, &mut |_| {})?;
    let seq = model.new_sequence()?;
    let at_once = of_token(&mut model, seq, clock)?;
    let prompt: Vec<TokenId> = (0..DEEP).map(|at| (at % sizes.n_vocab) as TokenId).collect();
    model.forward(&[Chunk { seq, tokens: &prompt, logits: LogitsSelection::None }])?;
    let deep = of_token(&mut model, seq, clock)?;
    let attended = sizes.attended(DEEP + TOKENS / 2) - sizes.attended(TOKENS / 2);
    Ok(OverheadCosts {
        layer_s: at_once / sizes.n_layers() as f64,
        attended_s: (deep - at_once).max(0.0) / attended as f64,
    })
}

/// Seconds of a token behind what the sequence holds, which it holds again afterwards.
fn of_token(model: &mut Model, seq: SequenceId, clock: &dyn Clock) -> Result<f64> {
    let n_held = model.len(seq)?;
    let mut best = Duration::MAX;
    for _ in 0..=ROUNDS {
        let start = clock.monotonic();
        for token in 0..TOKENS {
            model.forward(&[Chunk { seq, tokens: &[token as TokenId], logits: LogitsSelection::Last }])?;
        }
        best = best.min(clock.monotonic().saturating_sub(start));
        model.truncate(seq, n_held)?;
    }
    Ok((best.as_secs_f64() / TOKENS as f64).max(1e-9))
}

/// With heads as most models have them, four to a key.
fn layers() -> Result<WeightFile> {
    let published = shape::find("llama-3.2-1b")?;
    let narrow = Shape {
        n_layers: 8,
        d_model: 64,
        n_heads: 8,
        n_kv_heads: 2,
        head_dim: 64,
        d_ff: 64,
        n_vocab: 512,
        ..published
    };
    let mut bytes = Vec::new();
    shape::write(&narrow, shape::mix("q8_0")?, 1, &mut bytes)?;
    Ok(WeightFile::from_bytes("layers to measure", SharedBytes::from_vec(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_have_hardly_a_weight() {
        let sizes = MemoryEstimate::of(&layers().unwrap()).unwrap();
        assert!(sizes.read.values().sum::<u64>() < 1 << 20, "{:?}", sizes.read);
        assert_eq!((sizes.n_layers(), sizes.attended(1)), (8, 8 * 8 * 64));
    }
}
