//! Changes to a model's context at load: RoPE scaling and an imposed sliding window. Both change the model's output.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use crate::spec::{ModelSpec, Rope};

/// RoPE scaling beyond the trained context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeScaling {
    /// YaRN (Peng et al. 2023, arXiv 2309.00071).
    Yarn {
        /// Resulting context, in percent of the trained one.
        percent: u32,
    },
}

/// No model answers sensibly beyond this.
const MAX_PERCENT: u32 = 6400;

impl RopeScaling {
    /// Parses `yarn:FACTOR`.
    ///
    /// Errors: `request.rope_scaling`.
    pub fn parse(text: &str) -> Result<Self> {
        let factor = text.strip_prefix("yarn:").and_then(|factor| factor.trim().parse().ok());
        factor.and_then(Self::yarn).ok_or_else(|| {
            EngineError::new(
                "request.rope_scaling",
                format!("\"{text}\" is not a RoPE scaling"),
                format!("Use yarn:FACTOR, such as yarn:2; at most yarn:{}.", MAX_PERCENT / 100),
            )
        })
    }

    /// Creates YaRN scaling. `None` for a factor outside of (1, 64].
    pub fn yarn(factor: f64) -> Option<Self> {
        let percent = (factor * 100.0).round();
        (percent > 100.0 && percent <= f64::from(MAX_PERCENT))
            .then_some(Self::Yarn { percent: percent as u32 })
    }

    /// Returns the multiple of the trained context.
    pub fn factor(self) -> f64 {
        match self {
            Self::Yarn { percent } => f64::from(percent) / 100.0,
        }
    }
}

/// Returns the positions the model supports after scaling. Learned positions cannot be scaled.
pub(super) fn longest(spec: &ModelSpec, scaling: Option<RopeScaling>) -> usize {
    match (scaling, spec.embedding.n_positions) {
        (None, _) | (Some(_), Some(_)) => spec.context_length,
        (Some(scaling), None) => (spec.context_length as f64 * scaling.factor()) as usize,
    }
}

/// Limits the windows of all layers with rotary positions. Layers without positions keep full attention, narrower
/// windows stay.
///
/// Errors: `request.kv_window`.
pub fn limit_windows(spec: &mut ModelSpec, window: usize) -> Result<()> {
    if window == 0 {
        return Err(EngineError::new(
            "request.kv_window",
            "an attention window needs at least one token",
            "Use a larger --kv-window, or omit it.",
        ));
    }
    for layer in spec.layers_with_assistant_mut() {
        let Some(attention) = layer.mixer.attention_mut() else { continue };
        match attention.rope {
            Rope::None => {}
            Rope::Rotary(_) | Rope::ByAxis { .. } => {
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
    fn factors_are_parsed_and_bounded() {
        for (text, percent) in [("yarn:2", 200), ("yarn:1.5", 150), ("yarn: 64", 6400)] {
            assert_eq!(RopeScaling::parse(text).unwrap(), RopeScaling::Yarn { percent }, "{text}");
        }
        for text in ["yarn", "yarn:", "yarn:1", "yarn:0.5", "yarn:-2", "yarn:65", "yarn:nan", "linear:2", ""]
        {
            assert_eq!(RopeScaling::parse(text).unwrap_err().code(), "request.rope_scaling", "{text}");
        }
    }
}
