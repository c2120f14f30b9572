//! Sizes of a model that is not here, from its published figures. Unpublished ones are taken from
//! models of its size: weights dominate memory and speed, so the rest may be off by half.

use engine::memory_estimate::{KvLayerGroup, MemoryEstimate};

use contract::types::FitFacts;

/// Bits of a parameter in the most common mix, where the format is not named.
const USUAL_BITS: f64 = 4.85;
/// Where no length is published.
const USUAL_CONTEXT: u32 = 32_768;
/// Of recent models.
const USUAL_VOCABULARY: usize = 151_936;
const USUAL_HEAD: usize = 128;
/// Floats of a token's keys in all layers of a model of three billion parameters, and how they grow with the model.
const KEYS: (f64, f64) = (20_000.0, 0.5);
/// Width of a model of three billion parameters, and how it grows.
const WIDTH: (f64, f64) = (2560.0, 0.36);

/// About. Zero bytes give a model that takes nothing.
pub fn sizes(facts: &FitFacts) -> MemoryEstimate {
    let bits = USUAL_BITS / 8.0;
    let parameters = facts.parameters.map_or(facts.bytes as f64 / bits, |n| n as f64).max(1.0);
    let active = facts.active_parameters.map_or(parameters, |n| n as f64).clamp(1.0, parameters);
    let of_three = active / 3e9;
    let keys = (KEYS.0 * of_three.powf(KEYS.1)).max(USUAL_HEAD as f64);
    let width = WIDTH.0 * of_three.powf(WIDTH.1);
    let read = (facts.bytes as f64 * (active / parameters)) as u64;
    let context_length = facts.context_length.unwrap_or(USUAL_CONTEXT).max(1) as usize;
    MemoryEstimate {
        weights: facts.bytes,
        read: [(facts.dtype.clone().unwrap_or_else(|| "Q4_K".into()), read)].into(),
        layer_weights: Vec::new(),
        before_layers: 0,
        behind_layers: 0,
        layers: vec![KvLayerGroup {
            n: (keys / USUAL_HEAD as f64).round().max(1.0) as usize,
            n_kv_heads: 1,
            head_dim: USUAL_HEAD,
            window: None,
        }],
        state_floats: 0,
        // three widths, and a feed-forward part of three times the width, three times
        row_floats: (12.0 * width) as u64,
        n_heads: (width / USUAL_HEAD as f64) as usize,
        head_dim: USUAL_HEAD,
        max_rows: engine::model::DEFAULT_MAX_ROWS,
        n_vocab: USUAL_VOCABULARY,
        context_length,
        embeds: false,
        vision_weights: 0,
        vision_activations: 0,
    }
}
