//! Rotary frequencies as the two containers describe them: base, scaling, and rotated dimensions.

use serde_json::Value;
use weights::write::OwnedValue;

use super::hparams::{HParamKey, HParams, JsonNumbers, MAX_FACTOR, MAX_POSITIONS};
use crate::error::Result;
use crate::spec::Rotary;

mod scaling;

use scaling::{FrequencyScaling, Yarn, yarn_mscale};

/// Default base. Every published config without a base means this one.
const DEFAULT_BASE: f64 = 10_000.0;

const BASE: HParamKey = HParamKey { gguf: "rope.freq_base", hf: "rope_theta" };
const N_ROT: HParamKey = HParamKey { gguf: "rope.dimension_count", hf: "" };

/// One of a model's rotations.
#[derive(Debug, Clone, Copy)]
pub(super) struct RopeKind {
    /// Name of such layers in a config: `rope_parameters` may have an object for each.
    pub layer_type: &'static str,
    pub base: HParamKey,
    pub default_base: f64,
    pub n_rot: HParamKey,
    /// Whether the file's single scaling applies to this kind too.
    pub scaled: bool,
}

/// The rotation of models with a single one.
const ONLY: RopeKind =
    RopeKind { layer_type: "", base: BASE, default_base: DEFAULT_BASE, n_rot: N_ROT, scaled: true };

/// Full-attention layers of models that also have windowed ones.
pub(super) const FULL: RopeKind = RopeKind { layer_type: "full_attention", ..ONLY };

/// Windowed layers with their own rotation.
pub(super) const SLIDING: RopeKind = RopeKind {
    layer_type: "sliding_attention",
    base: HParamKey { gguf: "rope.freq_base_swa", hf: "rope_local_base_freq" },
    default_base: DEFAULT_BASE,
    n_rot: HParamKey { gguf: "rope.dimension_count_swa", hf: "" },
    scaled: false,
};

/// Returns the rotation of windowed layers that turn as the others do, without the file's scaling.
pub(super) fn windowed_unscaled(hparams: &HParams<'_>) -> Result<RopeKind> {
    let default_base = match hparams.is_gguf() {
        true => hparams.optional_real(BASE, 1.0, MAX_FACTOR)?.unwrap_or(DEFAULT_BASE),
        false => DEFAULT_BASE,
    };
    let base = HParamKey { gguf: SLIDING.base.gguf, hf: BASE.hf };
    Ok(RopeKind { base, default_base, n_rot: N_ROT, ..SLIDING })
}

/// Reads the rotary embedding of heads with `head_dim` elements. In a GGUF pairs are side by side, as llama's
/// converter permutes them; families it leaves unpermuted set the style themselves.
pub(super) fn rotary(hparams: &HParams<'_>, head_dim: usize) -> Result<Rotary> {
    of_kind(hparams, head_dim, &ONLY)
}

/// Reads the rotation of layers of one kind.
pub(super) fn of_kind(hparams: &HParams<'_>, head_dim: usize, kind: &RopeKind) -> Result<Rotary> {
    let own = parameters(hparams).and_then(|p| p.get(kind.layer_type)).filter(|own| own.is_object());
    let parameters = own.or_else(|| parameters(hparams).filter(|_| kind.scaled));
    let n_rot = rotated(hparams, head_dim, parameters, kind)?;
    let alpha = alpha(parameters)?;
    let mut base = base(hparams, parameters, kind)?;
    if let Some(alpha) = alpha.filter(|_| n_rot > 2) {
        base *= alpha.powf(n_rot as f64 / (n_rot as f64 - 2.0));
        hparams.note(kind.base.gguf, OwnedValue::F32(base as f32));
    }
    let mut inv_freq: Vec<f64> =
        (0..n_rot / 2).map(|pair| base.powf(-2.0 * pair as f64 / n_rot as f64)).collect();
    hparams.note(kind.n_rot.gguf, OwnedValue::U32(n_rot as u32));
    let scalings = match (hparams.rope_factor(), hparams.config()) {
        (Some(factor), _) if kind.scaled => vec![extended(hparams, factor)?],
        (_, Some(_)) if alpha.is_some() => Vec::new(),
        (_, Some(_)) => {
            vec![
                parameters
                    .map_or(Ok(FrequencyScaling::None), |p| scaling::hugging_face(hparams, p, n_rot / 2))?,
            ]
        }
        (_, None) if kind.scaled => scaling::gguf(hparams, n_rot / 2, true)?,
        (_, None) => Vec::new(),
    };
    let mut mscale = 1.0;
    for scaling in scalings {
        let before = inv_freq.clone();
        mscale *= scaling.apply(&mut inv_freq, base);
        scaling.note(hparams, &before, &inv_freq);
    }
    let inv_freq = inv_freq.iter().map(|&f| f as f32).collect();
    Ok(Rotary { n_rot, inv_freq, mscale: mscale as f32, style: hparams.rope_style() })
}

/// Reads the factor by which a "dynamic" scaling with a fixed alpha (Hunyuan) grows the base, at every length.
fn alpha(parameters: Option<&Value>) -> Result<Option<f64>> {
    let Some(parameters) = parameters else { return Ok(None) };
    let kind = ["rope_type", "type"].iter().find_map(|key| parameters.get(key).and_then(Value::as_str));
    if kind != Some("dynamic") {
        return Ok(None);
    }
    let alpha = JsonNumbers::new(parameters, "rope_scaling.").optional_real("alpha", 0.0, MAX_FACTOR)?;
    Ok(alpha.filter(|alpha| *alpha != 0.0))
}

/// Returns the rotation of a latent attention, and the factor on its scores: YaRN sharpens them as a whole, not only
/// their rotated part.
pub(super) fn latent_sharpening(hparams: &HParams<'_>, rotary: Rotary) -> Result<(Rotary, f32)> {
    if hparams.rope_factor().is_some() {
        let factor = rotary.mscale * rotary.mscale;
        return Ok((Rotary { mscale: 1.0, ..rotary }, factor));
    }
    let factor = match hparams.config() {
        None => scaling::gguf_latent_factor(hparams)?,
        Some(_) => match parameters(hparams) {
            Some(parameters) => scaling::hf_latent_factor(hparams, parameters)?,
            None => None,
        },
    };
    let Some(factor) = factor else { return Ok((rotary, 1.0)) };
    // GGUFs state nothing else about the rotated values.
    let mscale = if hparams.is_gguf() { 1.0 } else { rotary.mscale };
    Ok((Rotary { mscale, ..rotary }, (factor * factor) as f32))
}

/// YaRN as requested by the user, instead of the file's own scaling.
fn extended(hparams: &HParams<'_>, factor: f64) -> Result<FrequencyScaling> {
    Ok(FrequencyScaling::Yarn(Yarn {
        factor,
        original_context: hparams.count(super::keys::CONTEXT, MAX_POSITIONS)? as f64,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: true,
        mscale: yarn_mscale(factor, 1.0),
    }))
}

fn rotated(
    hparams: &HParams<'_>,
    head_dim: usize,
    parameters: Option<&Value>,
    kind: &RopeKind,
) -> Result<usize> {
    let n_rot = match hparams.config() {
        None => hparams.optional_count(kind.n_rot, head_dim)?.unwrap_or(head_dim),
        Some(config) => {
            let share =
                |object| JsonNumbers::new(object, "").optional_real("partial_rotary_factor", 0.0, 1.0);
            // With a proportional rotation the whole head is rotated, the rest of it by zero.
            let is_proportional =
                parameters.and_then(|p| p.get("rope_type")?.as_str()) == Some("proportional");
            let factor = match parameters.map(share).transpose()?.flatten() {
                _ if is_proportional => None,
                Some(factor) => Some(factor),
                None => share(config)?,
            };
            (factor.unwrap_or(1.0) * head_dim as f64) as usize
        }
    };
    if n_rot == 0 || n_rot % 2 != 0 {
        let key = if hparams.config().is_some() { "head_dim".into() } else { hparams.name(kind.n_rot) };
        return Err(hparams.wrong(&key, format!("{n_rot} rotated dimensions is not an even number")));
    }
    Ok(n_rot)
}

/// Reads the base. Newer configs keep it among the scaling parameters.
fn base(hparams: &HParams<'_>, parameters: Option<&Value>, kind: &RopeKind) -> Result<f64> {
    if let Some(parameters) = parameters
        && let Some(base) =
            JsonNumbers::new(parameters, "rope_parameters.").optional_real("rope_theta", 1.0, MAX_FACTOR)?
    {
        hparams.note(kind.base.gguf, OwnedValue::F32(base as f32));
        return Ok(base);
    }
    Ok(hparams.optional_real(kind.base, 1.0, MAX_FACTOR)?.unwrap_or(kind.default_base))
}

fn parameters<'a>(hparams: &'a HParams<'_>) -> Option<&'a Value> {
    ["rope_parameters", "rope_scaling"].iter().find_map(|key| hparams.value(key).filter(|v| v.is_object()))
}
