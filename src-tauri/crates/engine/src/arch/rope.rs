//! Rotary frequencies as the two containers describe them: base, scaling, and which dimensions turn.

use serde_json::Value;
use weights::write::OwnedValue;

use super::hparams::{HParamKey, HParams, JsonNumbers, MAX_FACTOR, MAX_POSITIONS};
use crate::error::Result;
use crate::spec::Rotary;

mod scaling;

use scaling::{FrequencyScaling, Yarn, yarn_mscale};

/// The base where none is given; every published config without one means this.
const DEFAULT_BASE: f64 = 10_000.0;

const BASE: HParamKey = HParamKey { gguf: "rope.freq_base", hf: "rope_theta" };
const N_ROT: HParamKey = HParamKey { gguf: "rope.dimension_count", hf: "" };

/// One of the rotations of a model whose layers differ in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RopeKind {
    /// The name of such layers in a config: `rope_parameters` may have an object for each.
    pub layer_type: &'static str,
    pub base: HParamKey,
    pub default_base: f64,
    pub n_rot: HParamKey,
    /// The file's one scaling (not an object for each kind) holds for this kind too.
    pub scaled: bool,
}

/// The rotation of models that have one.
const ONLY: RopeKind =
    RopeKind { layer_type: "", base: BASE, default_base: DEFAULT_BASE, n_rot: N_ROT, scaled: true };

/// Layers that see everything, of models that also have windowed ones.
pub(super) const FULL: RopeKind = RopeKind { layer_type: "full_attention", ..ONLY };

/// Windowed layers with a rotation of their own.
pub(super) const SLIDING: RopeKind = RopeKind {
    layer_type: "sliding_attention",
    base: HParamKey { gguf: "rope.freq_base_swa", hf: "rope_local_base_freq" },
    default_base: DEFAULT_BASE,
    n_rot: HParamKey { gguf: "rope.dimension_count_swa", hf: "" },
    scaled: false,
};

/// The rotary embedding of a model whose heads have `head_dim` elements. In a GGUF pairs stand side by side, as
/// llama's converter permutes them; families that it leaves as they are set the style themselves.
pub(super) fn rotary(hparams: &HParams<'_>, head_dim: usize) -> Result<Rotary> {
    of_kind(hparams, head_dim, &ONLY)
}

/// The rotation of layers of one kind.
pub(super) fn of_kind(hparams: &HParams<'_>, head_dim: usize, kind: &RopeKind) -> Result<Rotary> {
    let own = parameters(hparams).and_then(|p| p.get(kind.layer_type)).filter(|own| own.is_object());
    let parameters = own.or_else(|| parameters(hparams).filter(|_| kind.scaled));
    let n_rot = rotated(hparams, head_dim, parameters, kind)?;
    let base = base(hparams, parameters, kind)?;
    let mut inv_freq: Vec<f64> =
        (0..n_rot / 2).map(|pair| base.powf(-2.0 * pair as f64 / n_rot as f64)).collect();
    hparams.note(kind.n_rot.gguf, OwnedValue::U32(n_rot as u32));
    let scalings = match (hparams.stretch(), hparams.config()) {
        (Some(factor), _) if kind.scaled => vec![stretched(hparams, factor)?],
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

/// YaRN as the user asked for it, instead of the file's own scaling.
fn stretched(hparams: &HParams<'_>, factor: f64) -> Result<FrequencyScaling> {
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
            // of a proportional rotation the whole head turns, the rest of it by nothing
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
        return Err(hparams.wrong(&key, format!("{n_rot} rotated dimensions; they turn in pairs")));
    }
    Ok(n_rot)
}

/// Newer configs keep the base among the scaling's parameters.
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
