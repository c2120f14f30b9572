//! Checks that the new file describes the same model as the old one, and how rows must be reordered for it.

use kernels::RopeStyle;
use weights::WeightFile;

use super::ConversionSource;
use super::quantize::RowOrder;
use crate::arch;
use crate::error::{EngineError, Result};
use crate::spec::{ModelSpec, Norm, Role, Rope, Rotary};

/// Frequencies computed in different ways differ by rounding.
const FREQUENCY_TOLERANCE: f32 = 1e-5;
/// Slower pairs count as unrotated: a GGUF divides their frequency by 1e30.
const STANDSTILL: f32 = 1e-20;

/// Returns the row order in the GGUF. If it rotates neighboring pairs and safetensors rotate halves, the rows of
/// query and key heads are interleaved.
pub(super) fn row_order(
    source: &ModelSpec,
    found: &ModelSpec,
    role: Option<Role>,
    layer: Option<usize>,
) -> RowOrder {
    let (Some(Role::Query | Role::QueryBias | Role::Key | Role::KeyBias), Some(layer)) = (role, layer) else {
        return RowOrder::AsStored;
    };
    let attention = |spec: &'_ ModelSpec| spec.layers[layer].mixer.attention().cloned();
    let (Some(old), Some(new)) = (attention(source), attention(found)) else { return RowOrder::AsStored };
    match (&old.rope, &new.rope) {
        (Rope::Rotary(before), Rope::Rotary(after)) => match (before.style, after.style) {
            (RopeStyle::Half, RopeStyle::Interleaved) => {
                RowOrder::Interleaved { head_dim: old.head_dim, n_rot: before.n_rot }
            }
            (RopeStyle::Half, RopeStyle::Half) | (RopeStyle::Interleaved, _) => RowOrder::AsStored,
        },
        (Rope::None | Rope::Rotary(_), _) => RowOrder::AsStored,
    }
}

/// Returns what to add to a norm's weights: some families' safetensors store them around zero, GGUFs around one.
pub(super) fn offset(source: &ModelSpec, found: &ModelSpec, role: Option<Role>, layer: Option<usize>) -> f32 {
    let offset = |spec: &ModelSpec| match norm_of(spec, role?, layer)? {
        Norm::Rms { offset, .. } => Some(offset),
        Norm::None | Norm::PlainRms { .. } | Norm::Layer { .. } => None,
    };
    offset(source).zip(offset(found)).map_or(0.0, |(old, new)| old - new)
}

/// Returns the norm of a role, where families differ in its weights.
fn norm_of(spec: &ModelSpec, role: Role, layer: Option<usize>) -> Option<Norm> {
    let layer = layer.map(|layer| &spec.layers[layer]);
    match role {
        Role::OutputNorm => Some(spec.output_norm),
        Role::MixerNorm => Some(layer?.mixer_norm),
        Role::MixerPostNorm => layer?.mixer_post_norm,
        Role::FfnNorm => Some(layer?.ffn_norm),
        Role::FfnPostNorm => layer?.ffn_post_norm,
        Role::QueryNorm | Role::KeyNorm => layer?.mixer.attention()?.qk_norm,
        _ => None,
    }
}

/// Returns the same norms, mutable.
fn norms(spec: &mut ModelSpec) -> Vec<&mut Norm> {
    let mut all = vec![&mut spec.output_norm];
    for layer in &mut spec.layers {
        all.extend([&mut layer.mixer_norm, &mut layer.ffn_norm]);
        all.extend(layer.mixer_post_norm.as_mut());
        all.extend(layer.ffn_post_norm.as_mut());
        all.extend(layer.mixer.attention_mut().and_then(|attention| attention.qk_norm.as_mut()));
    }
    all
}

/// Reads the outline as any reader would, and returns the spec found.
///
/// Errors: `convert.family` if it is another model.
pub(super) fn check(source: &ConversionSource<'_>, outline: Result<WeightFile>) -> Result<ModelSpec> {
    let name = source.family.gguf_name();
    let refused = |why: String| {
        EngineError::new(
            "convert.family",
            format!("a {name} model with this configuration cannot be written as a GGUF file: {why}"),
            "Use the model as it is, or get it as a GGUF file.",
        )
    };
    let found = outline.and_then(|outline| read(&outline)).map_err(|error| refused(error.to_string()))?;
    match same(neutral(&source.spec), neutral(&found)) {
        true => Ok(found),
        false => Err(refused("the file would be read back as another model".into())),
    }
}

/// Reads the structure and checks that every role has a tensor. The outline has no data.
fn read(outline: &WeightFile) -> Result<ModelSpec> {
    let family = arch::find(outline)?;
    let found = arch::spec(outline, family)?;
    for (role, layer, _) in found.tensors() {
        let name = arch::gguf_tensor_name(family.gguf_name(), role, layer)?;
        if outline.tensor(&name).is_none() {
            let message = format!("the tensor {name} would be missing");
            return Err(EngineError::new("convert.tensor", message, ""));
        }
    }
    Ok(found)
}

/// Removes rightful differences between the containers.
fn neutral(spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    rotaries(&mut spec).for_each(|rotary| rotary.style = RopeStyle::Half);
    for norm in norms(&mut spec) {
        if let Norm::Rms { offset, .. } = norm {
            *offset = 0.0;
        }
    }
    spec
}

fn rotaries(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Rotary> {
    let attentions = spec.attentions_mut();
    attentions.filter_map(|attention| match &mut attention.rope {
        Rope::Rotary(rotary) => Some(rotary),
        Rope::None => None,
    })
}

/// Compares specs, with a tolerance for frequencies.
fn same(mut a: ModelSpec, mut b: ModelSpec) -> bool {
    for (a, b) in rotaries(&mut a).zip(rotaries(&mut b)) {
        let near = |(x, y): (&f32, &f32)| {
            let larger = x.abs().max(y.abs());
            (x - y).abs() <= FREQUENCY_TOLERANCE * larger || larger < STANDSTILL
        };
        if a.inv_freq.len() == b.inv_freq.len() && a.inv_freq.iter().zip(&*b.inv_freq).all(near) {
            b.inv_freq = a.inv_freq.clone();
        }
    }
    a == b
}
