//! Rotary frequencies as the two containers describe them: base, scaling, and which dimensions turn.

use serde_json::Value;
use weights::write::OwnedValue;

use super::hyper::{Hyper, Key, MAX_FACTOR, MAX_POSITIONS, Numbers};
use crate::error::Result;
use crate::spec::Rotary;

mod scaling;

use scaling::{Scaling, Yarn, yarn_mscale};

/// The base where none is given; every published config without one means this.
const DEFAULT_BASE: f64 = 10_000.0;

const BASE: Key = Key { gguf: "rope.freq_base", hf: "rope_theta" };
const N_ROT: Key = Key { gguf: "rope.dimension_count", hf: "" };

/// One of the rotations of a model whose layers differ in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The name of such layers in a config: `rope_parameters` may have an object for each.
    pub layer_type: &'static str,
    pub base: Key,
    pub default_base: f64,
    pub n_rot: Key,
    /// The file's one scaling (not an object for each kind) holds for this kind too.
    pub scaled: bool,
}

/// The rotation of models that have one.
const ONLY: Kind =
    Kind { layer_type: "", base: BASE, default_base: DEFAULT_BASE, n_rot: N_ROT, scaled: true };

/// Layers that see everything, of models that also have windowed ones.
pub(super) const FULL: Kind = Kind { layer_type: "full_attention", ..ONLY };

/// Windowed layers with a rotation of their own.
pub(super) const SLIDING: Kind = Kind {
    layer_type: "sliding_attention",
    base: Key { gguf: "rope.freq_base_swa", hf: "rope_local_base_freq" },
    default_base: DEFAULT_BASE,
    n_rot: Key { gguf: "rope.dimension_count_swa", hf: "" },
    scaled: false,
};

/// The rotary embedding of a model whose heads have `head_dim` elements. In a GGUF pairs stand side by side, as
/// llama's converter permutes them; families that it leaves as they are set the style themselves.
pub(super) fn rotary(hyper: &Hyper<'_>, head_dim: usize) -> Result<Rotary> {
    of_kind(hyper, head_dim, &ONLY)
}

/// The rotation of layers of one kind.
pub(super) fn of_kind(hyper: &Hyper<'_>, head_dim: usize, kind: &Kind) -> Result<Rotary> {
    let own = parameters(hyper).and_then(|p| p.get(kind.layer_type)).filter(|own| own.is_object());
    let parameters = own.or_else(|| parameters(hyper).filter(|_| kind.scaled));
    let n_rot = rotated(hyper, head_dim, parameters, kind)?;
    let base = base(hyper, parameters, kind)?;
    let mut inv_freq: Vec<f64> =
        (0..n_rot / 2).map(|pair| base.powf(-2.0 * pair as f64 / n_rot as f64)).collect();
    hyper.note(kind.n_rot.gguf, OwnedValue::U32(n_rot as u32));
    let scalings = match (hyper.stretch(), hyper.config()) {
        (Some(factor), _) if kind.scaled => vec![stretched(hyper, factor)?],
        (_, Some(_)) => {
            vec![parameters.map_or(Ok(Scaling::None), |p| scaling::hugging_face(hyper, p, n_rot / 2))?]
        }
        (_, None) if kind.scaled => scaling::gguf(hyper, n_rot / 2, true)?,
        (_, None) => Vec::new(),
    };
    let mut mscale = 1.0;
    for scaling in scalings {
        let before = inv_freq.clone();
        mscale *= scaling.apply(&mut inv_freq, base);
        scaling.note(hyper, &before, &inv_freq);
    }
    let inv_freq = inv_freq.iter().map(|&f| f as f32).collect();
    Ok(Rotary { n_rot, inv_freq, mscale: mscale as f32, style: hyper.rope_style() })
}

/// YaRN as the user asked for it, instead of the file's own scaling.
fn stretched(hyper: &Hyper<'_>, factor: f64) -> Result<Scaling> {
    Ok(Scaling::Yarn(Yarn {
        factor,
        original_context: hyper.count(super::keys::CONTEXT, MAX_POSITIONS)? as f64,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: true,
        mscale: yarn_mscale(factor, 1.0),
    }))
}

fn rotated(hyper: &Hyper<'_>, head_dim: usize, parameters: Option<&Value>, kind: &Kind) -> Result<usize> {
    let n_rot = match hyper.config() {
        None => hyper.optional_count(kind.n_rot, head_dim)?.unwrap_or(head_dim),
        Some(config) => {
            let share = |object| Numbers::new(object, "").optional_real("partial_rotary_factor", 0.0, 1.0);
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
        let key = if hyper.config().is_some() { "head_dim".into() } else { hyper.name(kind.n_rot) };
        return Err(hyper.wrong(&key, format!("{n_rot} rotated dimensions; they turn in pairs")));
    }
    Ok(n_rot)
}

/// Newer configs keep the base among the scaling's parameters.
fn base(hyper: &Hyper<'_>, parameters: Option<&Value>, kind: &Kind) -> Result<f64> {
    if let Some(parameters) = parameters
        && let Some(base) =
            Numbers::new(parameters, "rope_parameters.").optional_real("rope_theta", 1.0, MAX_FACTOR)?
    {
        hyper.note(kind.base.gguf, OwnedValue::F32(base as f32));
        return Ok(base);
    }
    Ok(hyper.optional_real(kind.base, 1.0, MAX_FACTOR)?.unwrap_or(kind.default_base))
}

fn parameters<'a>(hyper: &'a Hyper<'_>) -> Option<&'a Value> {
    ["rope_parameters", "rope_scaling"].iter().find_map(|key| hyper.value(key).filter(|v| v.is_object()))
}
