//! What a user may ask of a model's context beyond what it was trained for: positions stretched over more text, and
//! a window on what its layers see. Both change the model.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use crate::spec::{ModelSpec, Rope};

/// How positions are stretched beyond the trained context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeScaling {
    /// YaRN (Peng et al. 2023, arXiv 2309.00071), to so many hundredths of the trained context.
    Yarn { percent: u32 },
}

/// Further than this no model answers sensibly.
const MAX_PERCENT: u32 = 6400;

impl RopeScaling {
    /// `yarn:2`. Error `request.rope_scaling`.
    pub fn parse(text: &str) -> Result<Self> {
        let factor = text.strip_prefix("yarn:").and_then(|factor| factor.trim().parse().ok());
        factor.and_then(Self::yarn).ok_or_else(|| {
            EngineError::new(
                "request.rope_scaling",
                format!("\"{text}\" is no stretch of positions"),
                format!("Give yarn:FACTOR, such as yarn:2; at most yarn:{}.", MAX_PERCENT / 100),
            )
        })
    }

    /// None: no stretch, or none that is sensible.
    pub fn yarn(factor: f64) -> Option<Self> {
        let percent = (factor * 100.0).round();
        (percent > 100.0 && percent <= f64::from(MAX_PERCENT))
            .then_some(Self::Yarn { percent: percent as u32 })
    }

    /// Multiple of the trained context.
    pub fn factor(self) -> f64 {
        match self {
            Self::Yarn { percent } => f64::from(percent) / 100.0,
        }
    }
}

/// Positions that the model can have: those it was trained for, stretched. A table of learned positions can't be.
pub(super) fn longest(spec: &ModelSpec, scaling: Option<RopeScaling>) -> usize {
    match (scaling, spec.embedding.n_positions) {
        (None, _) | (Some(_), Some(_)) => spec.context_length,
        (Some(scaling), None) => (spec.context_length as f64 * scaling.factor()) as usize,
    }
}

/// Layers that know positions by rotation see no further back than `window`; those without keep everything, and
/// narrower windows stay.
pub fn narrow(spec: &mut ModelSpec, window: usize) -> Result<()> {
    if window == 0 {
        return Err(EngineError::new(
            "request.kv_window",
            "a window of 0 tokens sees nothing",
            "Give a larger --kv-window, or none.",
        ));
    }
    for layer in &mut spec.layers {
        let Some(attention) = layer.mixer.attention_mut() else { continue };
        match attention.rope {
            Rope::None => {}
            Rope::Rotary(_) => {
                attention.window = Some(attention.window.map_or(window, |own| own.min(window)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_read_and_bounded() {
        for (text, percent) in [("yarn:2", 200), ("yarn:1.5", 150), ("yarn: 64", 6400)] {
            assert_eq!(RopeScaling::parse(text).unwrap(), RopeScaling::Yarn { percent }, "{text}");
        }
        for text in ["yarn", "yarn:", "yarn:1", "yarn:0.5", "yarn:-2", "yarn:65", "yarn:nan", "linear:2", ""]
        {
            assert_eq!(RopeScaling::parse(text).unwrap_err().code(), "request.rope_scaling", "{text}");
        }
    }
}
