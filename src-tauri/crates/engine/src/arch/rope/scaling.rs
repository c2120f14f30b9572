//! RoPE scaling rules as arithmetic, and how either container describes them.

use std::f64::consts::PI;

use serde_json::Value;
use weights::write::OwnedValue;

use super::super::hparams::{HParamKey, HParams, JsonNumbers, MAX_FACTOR, MAX_POSITIONS};
use super::super::keys;
use crate::error::Result;

/// GGUF tensor with one divisor per frequency.
const DIVISORS: &str = "rope_freqs.weight";
const LONG_DIVISORS: &str = "rope_factors_long.weight";
const SHORT_DIVISORS: &str = "rope_factors_short.weight";
/// 0 means none.
const FACTOR: HParamKey = HParamKey { gguf: "rope.scaling.factor", hf: "" };
const OLD_FACTOR: HParamKey = HParamKey { gguf: "rope.scale_linear", hf: "" };
const ORIGINAL_CONTEXT: HParamKey =
    HParamKey { gguf: "rope.scaling.original_context_length", hf: "original_max_position_embeddings" };
const ATTENTION_FACTOR: HParamKey = HParamKey { gguf: "rope.scaling.attn_factor", hf: "" };
const BETA_FAST: HParamKey = HParamKey { gguf: "rope.scaling.yarn_beta_fast", hf: "" };
const BETA_SLOW: HParamKey = HParamKey { gguf: "rope.scaling.yarn_beta_slow", hf: "" };
const LOG_MULTIPLIER: HParamKey = HParamKey { gguf: "rope.scaling.yarn_log_multiplier", hf: "" };
const DEFAULT_BETA_FAST: f64 = 32.0;
const DEFAULT_BETA_SLOW: f64 = 1.0;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FrequencyScaling {
    None,
    /// Divides all frequencies by the factor.
    Linear {
        factor: f64,
    },
    /// Llama 3: divides long waves by the factor, keeps short ones, with a smooth ramp between.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        original_context: f64,
    },
    Yarn(Yarn),
    /// One divisor per pair, and a factor on the rotated values (LongRoPE).
    Divisors {
        divisors: Vec<f32>,
        mscale: f64,
    },
    /// Rotates only the first `share` of the pairs, with frequencies as if all were rotated.
    Proportional {
        share: f64,
    },
}

/// Peng et al. 2023, arXiv 2309.00071: fast dimensions keep their frequency, slow ones are divided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Yarn {
    pub factor: f64,
    pub original_context: f64,
    /// Rotations over the original context above which a dimension is kept, and below which it is divided.
    pub beta_fast: f64,
    pub beta_slow: f64,
    /// Whether the ramp's ends are rounded to whole dimensions.
    pub truncate: bool,
    pub mscale: f64,
}

impl FrequencyScaling {
    /// Scales frequencies (n_rot / 2) of a rotation with that base. Returns the factor on the rotated values.
    pub(super) fn apply(&self, inv_freq: &mut [f64], base: f64) -> f64 {
        match self {
            Self::None => {}
            Self::Linear { factor } => inv_freq.iter_mut().for_each(|f| *f /= factor),
            Self::Divisors { divisors, mscale } => {
                inv_freq.iter_mut().zip(divisors).for_each(|(f, &divisor)| *f /= f64::from(divisor));
                return *mscale;
            }
            Self::Llama3 { factor, low, high, original_context } => {
                for f in inv_freq {
                    let n_waves = original_context * *f / (2.0 * PI); // waves over the original context
                    let kept = ((n_waves - low) / (high - low)).clamp(0.0, 1.0);
                    *f = kept * *f + (1.0 - kept) * *f / factor;
                }
            }
            Self::Yarn(yarn) => {
                yarn.apply(inv_freq, base);
                return yarn.mscale;
            }
            Self::Proportional { share } => {
                let n_turned = (share * inv_freq.len() as f64) as usize;
                inv_freq.iter_mut().skip(n_turned).for_each(|f| *f = 0.0);
            }
        }
        1.0
    }

    /// Notes what a GGUF has instead of a config's scaling: keys, or the ratio of each frequency as divisors.
    pub(super) fn note(&self, hparams: &HParams<'_>, before: &[f64], after: &[f64]) {
        let ratios = || before.iter().zip(after).map(|(b, a)| (b / a).min(UNTURNED) as f32).collect();
        match self {
            Self::None => {}
            Self::Linear { factor } => {
                hparams.note("rope.scaling.type", OwnedValue::Str("linear".into()));
                hparams.note(FACTOR.gguf, OwnedValue::F32(*factor as f32));
            }
            Self::Llama3 { .. } | Self::Proportional { .. } => hparams.note_tensor(DIVISORS, ratios()),
            Self::Divisors { mscale, .. } => {
                hparams.note(ATTENTION_FACTOR.gguf, OwnedValue::F32(*mscale as f32));
            }
            Self::Yarn(yarn) => {
                hparams.note("rope.scaling.type", OwnedValue::Str("yarn".into()));
                hparams.note(FACTOR.gguf, OwnedValue::F32(yarn.factor as f32));
                hparams.note(ORIGINAL_CONTEXT.gguf, OwnedValue::U32(yarn.original_context as u32));
                hparams.note(BETA_FAST.gguf, OwnedValue::F32(yarn.beta_fast as f32));
                hparams.note(BETA_SLOW.gguf, OwnedValue::F32(yarn.beta_slow as f32));
                if yarn.mscale == 1.0 {
                    hparams.note(LOG_MULTIPLIER.gguf, OwnedValue::F32(1.0));
                }
            }
        }
    }
}

/// Divisor that GGUF files give to unrotated pairs.
const UNTURNED: f64 = 1e30;

impl Yarn {
    fn apply(&self, inv_freq: &mut [f64], base: f64) {
        let n_rot = 2.0 * inv_freq.len() as f64;
        let dimension =
            |n_turns: f64| n_rot * (self.original_context / (n_turns * 2.0 * PI)).ln() / (2.0 * base.ln());
        let (mut low, mut high) = (dimension(self.beta_fast), dimension(self.beta_slow));
        if self.truncate {
            (low, high) = (low.floor(), high.ceil());
        }
        let (low, mut high) = (low.max(0.0), high.min(n_rot - 1.0));
        if low == high {
            high += 1e-3; // as the reference does, to avoid division by zero
        }
        for (i, f) in inv_freq.iter_mut().enumerate() {
            let divided = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
            *f = *f / self.factor * divided + *f * (1.0 - divided);
        }
    }
}

/// YaRN's factor on the rotated values: attention grows sharper with the context.
pub(super) fn yarn_mscale(factor: f64, weight: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * weight * factor.ln() + 1.0 }
}

/// Reads a GGUF's keys, in the order to apply them. Divisors only if `divided`.
pub(super) fn gguf(hparams: &HParams<'_>, n_pairs: usize, divided: bool) -> Result<Vec<FrequencyScaling>> {
    let scaling = match hparams.optional_text("rope.scaling.type")? {
        Some("none" | "longrope") => FrequencyScaling::None,
        Some("yarn") => gguf_yarn(hparams)?,
        // A factor without a type is linear.
        None | Some("linear") => {
            let factor = match hparams.optional_real(FACTOR, 0.0, MAX_FACTOR)? {
                Some(factor) => Some(factor),
                None => hparams.optional_real(OLD_FACTOR, 0.0, MAX_FACTOR)?,
            };
            factor
                .filter(|&f| f != 0.0)
                .map_or(FrequencyScaling::None, |factor| FrequencyScaling::Linear { factor })
        }
        Some(other) => return Err(hparams.unsupported(&format!("rope scaling \"{other}\""))),
    };
    if !divided {
        return Ok(vec![scaling]);
    }
    let original = hparams.optional_count(ORIGINAL_CONTEXT, MAX_POSITIONS)?;
    let is_long = original.is_some_and(|n| hparams.n_ctx() > n);
    let by_length = if is_long { LONG_DIVISORS } else { SHORT_DIVISORS };
    let mut mscale = 1.0;
    let divisors = match hparams.optional_factors(by_length, n_pairs)? {
        Some(divisors) => {
            mscale = hparams.optional_real(ATTENTION_FACTOR, 0.0, MAX_FACTOR)?.unwrap_or(1.0);
            Some(divisors)
        }
        None => hparams.optional_factors(DIVISORS, n_pairs)?,
    };
    let divisors =
        divisors.map_or(FrequencyScaling::None, |divisors| FrequencyScaling::Divisors { divisors, mscale });
    Ok(vec![scaling, divisors])
}

fn gguf_yarn(hparams: &HParams<'_>) -> Result<FrequencyScaling> {
    let factor = hparams.real(FACTOR, f64::MIN_POSITIVE, MAX_FACTOR)?;
    let weight = hparams.optional_real(LOG_MULTIPLIER, 0.0, MAX_FACTOR)?.filter(|w| *w != 0.0);
    let mscale = match weight {
        // The keys' own factor over the one meant for all dimensions.
        Some(weight) => yarn_mscale(factor, 1.0) / yarn_mscale(factor, weight),
        None => yarn_mscale(factor, 1.0),
    };
    let attention_factor = hparams.optional_real(ATTENTION_FACTOR, 0.0, MAX_FACTOR)?;
    Ok(FrequencyScaling::Yarn(Yarn {
        factor,
        original_context: hparams.count(ORIGINAL_CONTEXT, MAX_POSITIONS)? as f64,
        beta_fast: hparams.optional_real(BETA_FAST, 0.0, MAX_FACTOR)?.unwrap_or(DEFAULT_BETA_FAST),
        beta_slow: hparams.optional_real(BETA_SLOW, 0.0, MAX_FACTOR)?.unwrap_or(DEFAULT_BETA_SLOW),
        truncate: true, // GGUF has no key for it
        mscale: mscale * attention_factor.unwrap_or(1.0),
    }))
}

/// Reads the factor by which YaRN grows queries and keys of a latent attention, from a GGUF.
pub(super) fn gguf_latent_factor(hparams: &HParams<'_>) -> Result<Option<f64>> {
    if hparams.optional_text("rope.scaling.type")? != Some("yarn") {
        return Ok(None);
    }
    let factor = hparams.real(FACTOR, f64::MIN_POSITIVE, MAX_FACTOR)?;
    let weight = hparams.optional_real(LOG_MULTIPLIER, 0.0, MAX_FACTOR)?.filter(|w| *w != 0.0);
    Ok(weight.map(|weight| if factor <= 1.0 { 1.0 } else { weight * factor.ln() + 1.0 }))
}

/// Reads the same from a config.
pub(super) fn hf_latent_factor(hparams: &HParams<'_>, parameters: &Value) -> Result<Option<f64>> {
    let kind = ["rope_type", "type"].iter().find_map(|key| parameters.get(key).and_then(Value::as_str));
    if kind.is_none_or(|kind| kind == "default") {
        return Ok(None);
    }
    let numbers = JsonNumbers::new(parameters, "rope_scaling.");
    let weight = numbers.optional_real("mscale_all_dim", 0.0, MAX_FACTOR)?.filter(|w| *w != 0.0);
    let Some(weight) = weight else { return Ok(None) };
    hparams.note(LOG_MULTIPLIER.gguf, OwnedValue::F32((0.1 * weight) as f32));
    let factor = numbers.real("factor", f64::MIN_POSITIVE, MAX_FACTOR)?;
    Ok(Some(yarn_mscale(factor, weight)))
}

/// Reads `rope_parameters` or `rope_scaling` of a config.
pub(super) fn hugging_face(
    hparams: &HParams<'_>,
    parameters: &Value,
    n_pairs: usize,
) -> Result<FrequencyScaling> {
    let numbers = JsonNumbers::new(parameters, "rope_scaling.");
    let kind = ["rope_type", "type"].iter().find_map(|key| parameters.get(key).and_then(Value::as_str));
    match kind.unwrap_or("default") {
        "default" => Ok(FrequencyScaling::None),
        "linear" => Ok(FrequencyScaling::Linear { factor: numbers.real("factor", 1.0, MAX_FACTOR)? }),
        "llama3" => {
            let low = numbers.real("low_freq_factor", f64::MIN_POSITIVE, MAX_FACTOR)?;
            let high = numbers.real("high_freq_factor", f64::MIN_POSITIVE, MAX_FACTOR)?;
            if high <= low {
                let message = format!("{high} is not above low_freq_factor {low}");
                return Err(hparams.wrong("rope_scaling.high_freq_factor", message));
            }
            let factor = numbers.real("factor", 1.0, MAX_FACTOR)?;
            let original_context = numbers.real("original_max_position_embeddings", 1.0, MAX_FACTOR)?;
            Ok(FrequencyScaling::Llama3 { factor, low, high, original_context })
        }
        "yarn" => hf_yarn(hparams, parameters),
        "longrope" | "su" => long_rope(hparams, parameters, n_pairs),
        "proportional" => {
            let share = numbers.optional_real("partial_rotary_factor", 0.0, 1.0)?.unwrap_or(1.0);
            Ok(FrequencyScaling::Proportional { share })
        }
        other => Err(hparams.unsupported(&format!("rope scaling \"{other}\""))),
    }
}

fn hf_yarn(hparams: &HParams<'_>, parameters: &Value) -> Result<FrequencyScaling> {
    let numbers = JsonNumbers::new(parameters, "rope_scaling.");
    let original_context = match numbers.optional_real("original_max_position_embeddings", 1.0, MAX_FACTOR)? {
        Some(n) => n,
        None => hparams.count(keys::CONTEXT, MAX_POSITIONS)? as f64,
    };
    let factor = numbers.real("factor", f64::MIN_POSITIVE, MAX_FACTOR)?;
    let real = |key: &str| numbers.optional_real(key, 0.0, MAX_FACTOR);
    let mscale = match (real("attention_factor")?, real("mscale")?, real("mscale_all_dim")?) {
        (Some(mscale), ..) => mscale,
        (None, Some(some), Some(all)) if some != 0.0 && all != 0.0 => {
            yarn_mscale(factor, some) / yarn_mscale(factor, all)
        }
        (None, ..) => yarn_mscale(factor, 1.0),
    };
    Ok(FrequencyScaling::Yarn(Yarn {
        factor,
        original_context,
        beta_fast: real("beta_fast")?.filter(|b| *b != 0.0).unwrap_or(DEFAULT_BETA_FAST),
        beta_slow: real("beta_slow")?.filter(|b| *b != 0.0).unwrap_or(DEFAULT_BETA_SLOW),
        truncate: parameters.get("truncate").and_then(Value::as_bool).unwrap_or(true),
        mscale,
    }))
}

/// Ding et al. 2024, arXiv 2402.13753: one list of divisors within the original context, one beyond it.
fn long_rope(hparams: &HParams<'_>, parameters: &Value, n_pairs: usize) -> Result<FrequencyScaling> {
    let numbers = JsonNumbers::new(parameters, "rope_scaling.");
    let context = hparams.count(keys::CONTEXT, MAX_POSITIONS)? as f64;
    let original = match numbers.optional_real(ORIGINAL_CONTEXT.hf, 1.0, MAX_FACTOR)? {
        Some(n) => n,
        None => hparams.optional_count(ORIGINAL_CONTEXT, MAX_POSITIONS)?.map_or(context, |n| n as f64),
    };
    let list = |key: &str, tensor| {
        let list = parameters.get(key).and_then(Value::as_array);
        let divisors: Vec<f32> =
            list.into_iter().flatten().filter_map(Value::as_f64).map(|x| x as f32).collect();
        if divisors.len() != n_pairs || divisors.iter().any(|d| !d.is_finite() || *d <= 0.0) {
            let message = format!("it is not a list of {n_pairs} positive numbers");
            return Err(hparams.wrong(&format!("rope_scaling.{key}"), message));
        }
        hparams.note_tensor(tensor, divisors.clone());
        Ok(divisors)
    };
    let (short, long) = (list("short_factor", SHORT_DIVISORS)?, list("long_factor", LONG_DIVISORS)?);
    let is_long = hparams.n_ctx() as f64 > original;
    let divisors = if is_long { long } else { short };
    // Phi 3.5 MoE gives a factor for each length.
    let by_length = if is_long { "long_mscale" } else { "short_mscale" };
    let own = match numbers.optional_real(by_length, 0.0, MAX_FACTOR)? {
        Some(factor) => Some(factor),
        None => numbers.optional_real("attention_factor", 0.0, MAX_FACTOR)?,
    };
    let mscale = match own {
        Some(mscale) => mscale,
        None => {
            let factor = match numbers.optional_real("factor", f64::MIN_POSITIVE, MAX_FACTOR)? {
                Some(factor) => factor,
                None => context / original,
            };
            if factor <= 1.0 { 1.0 } else { (1.0 + factor.ln() / original.ln()).sqrt() }
        }
    };
    Ok(FrequencyScaling::Divisors { divisors, mscale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_keeps_short_waves_and_divides_long_ones() {
        let scaling = FrequencyScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 64.0 };
        // as transformers computes them: 4 waves and more stay, 1 and fewer are divided by 8
        let frequency = |n_waves: f64| n_waves * 2.0 * PI / 64.0;
        for (n_waves, expected) in [(5.0, 5.0), (4.0, 4.0), (1.0, 1.0 / 8.0), (0.5, 0.5 / 8.0)] {
            let mut f = [frequency(n_waves)];
            scaling.apply(&mut f, 1e4);
            assert!((f[0] - frequency(expected)).abs() < 1e-12, "{n_waves} waves");
        }
        let mut f = [frequency(2.5)];
        scaling.apply(&mut f, 1e4);
        assert!((f[0] - (0.5 * frequency(2.5) + 0.5 * frequency(2.5) / 8.0)).abs() < 1e-12);
    }

    #[test]
    fn yarn_keeps_fast_dimensions_and_divides_slow_ones() {
        let yarn = |truncate| {
            let (factor, original_context) = (8.0, 4096.0);
            let (beta_fast, beta_slow) = (32.0, 1.0);
            FrequencyScaling::Yarn(Yarn {
                factor,
                original_context,
                beta_fast,
                beta_slow,
                truncate,
                mscale: 1.5,
            })
        };
        let plain: Vec<f64> = (0..64).map(|i| 1e4f64.powf(-f64::from(i) / 64.0)).collect();
        for truncate in [true, false] {
            let mut scaled = plain.clone();
            assert_eq!(yarn(truncate).apply(&mut scaled, 1e4), 1.5);
            assert_eq!(scaled[0], plain[0]);
            assert!((scaled[63] - plain[63] / 8.0).abs() < 1e-15);
            assert!(scaled.iter().zip(&plain).all(|(s, p)| s <= p && *s >= p / 8.0 - 1e-15));
        }
    }
}
