//! Rotary frequencies as the two containers describe them: base, scaling, and which dimensions turn.

use std::f64::consts::PI;

use serde_json::Value;
use weights::write::OwnedValue;

use super::hyper::{Hyper, Key, MAX_FACTOR, Numbers};
use crate::error::Result;
use crate::spec::Rotary;

/// The base where none is given; every published config without one means this.
const DEFAULT_BASE: f64 = 10_000.0;

const BASE: Key = Key { gguf: "rope.freq_base", hf: "rope_theta" };
const N_ROT: Key = Key { gguf: "rope.dimension_count", hf: "" };
/// The tensor of a GGUF that divides the frequencies one by one.
const DIVISORS: &str = "rope_freqs.weight";
/// 0 stands for none.
const FACTOR: Key = Key { gguf: "rope.scaling.factor", hf: "" };
const OLD_FACTOR: Key = Key { gguf: "rope.scale_linear", hf: "" };

/// How trained frequencies are stretched over a longer context.
#[derive(Debug, Clone, PartialEq)]
enum Scaling {
    None,
    /// All frequencies divided by the factor.
    Linear {
        factor: f64,
    },
    /// Llama 3: long waves divided by the factor, short ones kept, a smooth ramp between.
    Llama3 {
        factor: f64,
        low: f64,
        high: f64,
        original_context: f64,
    },
    /// One divisor per pair, as a tensor of the file.
    Divisors(Vec<f32>),
}

/// The rotary embedding of a model whose heads have `head_dim` elements.
pub(super) fn rotary(hyper: &Hyper<'_>, head_dim: usize) -> Result<Rotary> {
    let n_rot = rotated(hyper, head_dim)?;
    let base = base(hyper)?;
    let mut inv_freq: Vec<f64> =
        (0..n_rot / 2).map(|pair| base.powf(-2.0 * pair as f64 / n_rot as f64)).collect();
    hyper.note("rope.dimension_count", OwnedValue::U32(n_rot as u32));
    for scaling in scalings(hyper, n_rot)? {
        let before = inv_freq.clone();
        scale(&mut inv_freq, &scaling);
        note(hyper, &scaling, &before, &inv_freq);
    }
    let inv_freq = inv_freq.iter().map(|&f| f as f32).collect();
    Ok(Rotary { n_rot, inv_freq, mscale: 1.0, style: hyper.rope_style() })
}

fn rotated(hyper: &Hyper<'_>, head_dim: usize) -> Result<usize> {
    let n_rot = match hyper.config() {
        None => hyper.optional_count(N_ROT, head_dim)?.unwrap_or(head_dim),
        Some(config) => {
            let factor = Numbers::new(config, "").optional_real("partial_rotary_factor", 0.0, 1.0)?;
            (factor.unwrap_or(1.0) * head_dim as f64) as usize
        }
    };
    if n_rot == 0 || n_rot % 2 != 0 {
        let key = if hyper.config().is_some() { "head_dim".into() } else { hyper.name(N_ROT) };
        return Err(hyper.wrong(&key, format!("{n_rot} rotated dimensions; they turn in pairs")));
    }
    Ok(n_rot)
}

/// Newer configs keep the base among the scaling's parameters.
fn base(hyper: &Hyper<'_>) -> Result<f64> {
    if let Some(parameters) = parameters(hyper)
        && let Some(base) =
            Numbers::new(parameters, "rope_parameters.").optional_real("rope_theta", 1.0, MAX_FACTOR)?
    {
        hyper.note(BASE.gguf, OwnedValue::F32(base as f32));
        return Ok(base);
    }
    Ok(hyper.optional_real(BASE, 1.0, MAX_FACTOR)?.unwrap_or(DEFAULT_BASE))
}

fn parameters<'a>(hyper: &'a Hyper<'_>) -> Option<&'a Value> {
    let config = hyper.config()?;
    ["rope_parameters", "rope_scaling"].iter().find_map(|key| config.get(key).filter(|v| v.is_object()))
}

fn scalings(hyper: &Hyper<'_>, n_rot: usize) -> Result<Vec<Scaling>> {
    match hyper.config() {
        Some(_) => Ok(vec![parameters(hyper).map_or(Ok(Scaling::None), |p| hf_scaling(hyper, p))?]),
        None => {
            let divisors = hyper.optional_factors(DIVISORS, n_rot / 2)?;
            Ok(vec![gguf_scaling(hyper)?, divisors.map_or(Scaling::None, Scaling::Divisors)])
        }
    }
}

fn gguf_scaling(hyper: &Hyper<'_>) -> Result<Scaling> {
    match hyper.optional_text("rope.scaling.type")? {
        Some("none") => Ok(Scaling::None),
        // a factor without type is linear
        None | Some("linear") => {
            let factor = match hyper.optional_real(FACTOR, 0.0, MAX_FACTOR)? {
                Some(factor) => Some(factor),
                None => hyper.optional_real(OLD_FACTOR, 0.0, MAX_FACTOR)?,
            };
            Ok(factor.filter(|&f| f != 0.0).map_or(Scaling::None, |factor| Scaling::Linear { factor }))
        }
        Some(other) => Err(hyper.unsupported(&format!("rope scaling \"{other}\""))),
    }
}

fn hf_scaling(hyper: &Hyper<'_>, parameters: &Value) -> Result<Scaling> {
    let numbers = Numbers::new(parameters, "rope_scaling.");
    let kind = ["rope_type", "type"].iter().find_map(|key| parameters.get(key).and_then(Value::as_str));
    match kind.unwrap_or("default") {
        "default" => Ok(Scaling::None),
        "linear" => Ok(Scaling::Linear { factor: numbers.real("factor", 1.0, MAX_FACTOR)? }),
        "llama3" => {
            let low = numbers.real("low_freq_factor", f64::MIN_POSITIVE, MAX_FACTOR)?;
            let high = numbers.real("high_freq_factor", f64::MIN_POSITIVE, MAX_FACTOR)?;
            if high <= low {
                let message = format!("{high} is not above low_freq_factor {low}");
                return Err(hyper.wrong("rope_scaling.high_freq_factor", message));
            }
            let factor = numbers.real("factor", 1.0, MAX_FACTOR)?;
            let original_context = numbers.real("original_max_position_embeddings", 1.0, MAX_FACTOR)?;
            Ok(Scaling::Llama3 { factor, low, high, original_context })
        }
        other => Err(hyper.unsupported(&format!("rope scaling \"{other}\""))),
    }
}

/// What a GGUF has instead of a config's scaling: keys, or Llama 3's ramp worked out as divisors.
fn note(hyper: &Hyper<'_>, scaling: &Scaling, before: &[f64], after: &[f64]) {
    match scaling {
        Scaling::None | Scaling::Divisors(_) => {}
        Scaling::Linear { factor } => {
            hyper.note("rope.scaling.type", OwnedValue::Str("linear".into()));
            hyper.note(FACTOR.gguf, OwnedValue::F32(*factor as f32));
        }
        Scaling::Llama3 { .. } => {
            let divisors = before.iter().zip(after).map(|(before, after)| (before / after) as f32);
            hyper.note_tensor(DIVISORS, divisors.collect());
        }
    }
}

fn scale(inv_freq: &mut [f64], scaling: &Scaling) {
    match scaling {
        Scaling::None => {}
        Scaling::Linear { factor } => inv_freq.iter_mut().for_each(|f| *f /= factor),
        Scaling::Divisors(divisors) => {
            inv_freq.iter_mut().zip(divisors).for_each(|(f, &divisor)| *f /= f64::from(divisor));
        }
        Scaling::Llama3 { factor, low, high, original_context } => {
            for f in inv_freq {
                let n_waves = original_context * *f / (2.0 * PI); // waves over the original context
                let kept = ((n_waves - low) / (high - low)).clamp(0.0, 1.0);
                *f = kept * *f + (1.0 - kept) * *f / factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_keeps_short_waves_and_stretches_long_ones() {
        let scaling = Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 64.0 };
        // as transformers computes them: 4 waves and more stay, 1 and fewer are divided by 8
        let frequency = |n_waves: f64| n_waves * 2.0 * PI / 64.0;
        for (n_waves, expected) in [(5.0, 5.0), (4.0, 4.0), (1.0, 1.0 / 8.0), (0.5, 0.5 / 8.0)] {
            let mut f = [frequency(n_waves)];
            scale(&mut f, &scaling);
            assert!((f[0] - frequency(expected)).abs() < 1e-12, "{n_waves} waves");
        }
        let mut f = [frequency(2.5)];
        scale(&mut f, &scaling);
        assert!((f[0] - (0.5 * frequency(2.5) + 0.5 * frequency(2.5) / 8.0)).abs() < 1e-12);
    }
}
