//! Whether the new file describes the model that the old one does, and what its tensors' rows need to be moved to
//! where it expects them.

use kernels::RopeStyle;
use weights::WeightFile;

use super::Source;
use super::quantize::RowOrder;
use crate::arch;
use crate::error::{EngineError, Result};
use crate::spec::{ModelSpec, Role, Rope, Rotary};

/// Frequencies worked out along two ways differ by rounding.
const FREQUENCY_TOLERANCE: f32 = 1e-5;

/// In which order a GGUF has a tensor's rows: where its layers turn neighbouring pairs and those of safetensors turn
/// halves, the rows of each query and key head are interleaved.
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

/// Reads the outline as any reader would and returns what it found. Error `convert.family`: it is not the same model.
pub(super) fn check(source: &Source<'_>, outline: &WeightFile) -> Result<ModelSpec> {
    let family = arch::find(outline)?;
    let found = arch::spec(outline, family)?;
    arch::tensors(outline, family, &found)?;
    if same(neutral(&source.spec), neutral(&found)) {
        return Ok(found);
    }
    Err(EngineError::new(
        "convert.family",
        format!(
            "a {} model with this config cannot be written as a GGUF: what would be read back is another model",
            source.family.gguf_name()
        ),
        "Use the model as it is, or get it as a GGUF file.",
    ))
}

/// Without what the containers rightly differ in.
fn neutral(spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    rotaries(&mut spec).for_each(|rotary| rotary.style = RopeStyle::Half);
    spec
}

fn rotaries(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Rotary> {
    let attentions = spec.layers.iter_mut().filter_map(|layer| layer.mixer.attention_mut());
    attentions.filter_map(|attention| match &mut attention.rope {
        Rope::Rotary(rotary) => Some(rotary),
        Rope::None => None,
    })
}

/// Equal, but for the rounding of frequencies.
fn same(mut a: ModelSpec, mut b: ModelSpec) -> bool {
    for (a, b) in rotaries(&mut a).zip(rotaries(&mut b)) {
        let near = |(x, y): (&f32, &f32)| (x - y).abs() <= FREQUENCY_TOLERANCE * x.abs().max(y.abs());
        if a.inv_freq.len() == b.inv_freq.len() && a.inv_freq.iter().zip(&*b.inv_freq).all(near) {
            b.inv_freq = a.inv_freq.clone();
        }
    }
    a == b
}
