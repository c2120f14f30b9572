//! Checks that the new file describes the same model as the old one, and how rows must be reordered for it.

use kernels::{HeadOrder, RopeStyle};
use weights::WeightFile;

use super::ConversionSource;
use super::rearrange::{Permutation, Rearrangement, ValueChange};
use crate::arch;
use crate::error::{EngineError, Result};
use crate::spec::{
    Assistance, Attention, Decay, DeltaNet, LayerSpec, Mixer, ModelSpec, Norm, Role, Rope, Rotary,
};

/// Frequencies computed in different ways differ by rounding.
const FREQUENCY_TOLERANCE: f32 = 1e-5;
/// Slower pairs count as unrotated: a GGUF divides their frequency by 1e30.
const STANDSTILL: f32 = 1e-20;

/// Returns what happens to the values of a role on their way from `source` to the file that reads as `found`.
pub(super) fn rearrangement(
    source: &ModelSpec,
    found: &ModelSpec,
    role: Role,
    layer: Option<usize>,
) -> Rearrangement {
    let offset = |spec: &ModelSpec| match norm_of(spec, role, layer)? {
        Norm::Rms { offset, .. } => Some(offset),
        Norm::None | Norm::PlainRms { .. } | Norm::Layer { .. } => None,
    };
    // Some families' safetensors store norms around zero, GGUFs around one.
    let change = match offset(source).zip(offset(found)) {
        Some((old, new)) if old != new => ValueChange::Add(old - new),
        Some(_) | None => ValueChange::None,
    };
    let by_norm = Rearrangement { change, ..Rearrangement::default() };
    let mixer = |spec: &'_ ModelSpec| Some(layer_of(spec, layer?)?.mixer.clone());
    match (mixer(source), mixer(found)) {
        (Some(Mixer::DeltaNet(old)), Some(Mixer::DeltaNet(new))) => delta_net(&old, &new, role, by_norm),
        (Some(Mixer::Ssm(old)), Some(Mixer::Ssm(new))) if role == Role::SsmDecay => {
            Rearrangement { change: decay_change(old.decay, new.decay), ..by_norm }
        }
        (Some(old), Some(new)) => match (old.attention(), new.attention()) {
            (Some(old), Some(new)) => Rearrangement { rows: rotated_rows(old, new, role), ..by_norm },
            _ => by_norm,
        },
        _ => by_norm,
    }
}

/// If the GGUF rotates neighboring pairs and safetensors rotate halves, the rows of query and key heads are
/// interleaved.
fn rotated_rows(old: &Attention, new: &Attention, role: Role) -> Permutation {
    let (Role::Query | Role::QueryBias | Role::Key | Role::KeyBias) = role else {
        return Permutation::AsStored;
    };
    match (&old.rope, &new.rope) {
        (Rope::Rotary(before), Rope::Rotary(after)) => match (before.style, after.style) {
            (RopeStyle::Half, RopeStyle::Interleaved) => {
                Permutation::Interleaved { head_dim: old.head_dim, n_rot: before.n_rot }
            }
            (RopeStyle::Half, RopeStyle::Half) | (RopeStyle::Interleaved, _) => Permutation::AsStored,
        },
        (Rope::None | Rope::Rotary(_) | Rope::ByAxis { .. }, _) => Permutation::AsStored,
    }
}

/// Value heads that share a key head stand together in safetensors, and in some GGUFs come in turns.
fn delta_net(old: &DeltaNet, new: &DeltaNet, role: Role, by_norm: Rearrangement) -> Rearrangement {
    let (n_keys, n_shared) = (old.n_k_heads, old.n_v_heads / old.n_k_heads);
    let order = |first: usize, head_len: usize| match (old.order, new.order) {
        (HeadOrder::Grouped, HeadOrder::Tiled) if n_shared > 1 => {
            Permutation::Heads { first, n_outer: n_shared, n_inner: n_keys, head_len }
        }
        (HeadOrder::Tiled, HeadOrder::Grouped) if n_shared > 1 => {
            Permutation::Heads { first, n_outer: n_keys, n_inner: n_shared, head_len }
        }
        (HeadOrder::Grouped | HeadOrder::Tiled, _) => Permutation::AsStored,
    };
    let n_before = old.qkv_width() - old.value_width();
    match role {
        Role::DeltaQkv | Role::DeltaConv => Rearrangement { rows: order(n_before, old.v_dim), ..by_norm },
        Role::DeltaGate => Rearrangement { rows: order(0, old.v_dim), ..by_norm },
        Role::DeltaBeta | Role::DeltaAlpha | Role::DeltaTimeBias => {
            Rearrangement { rows: order(0, 1), ..by_norm }
        }
        Role::DeltaDecay => {
            let change = decay_change(old.decay, new.decay);
            Rearrangement { rows: order(0, 1), change, ..by_norm }
        }
        Role::DeltaOut => Rearrangement { columns: order(0, old.v_dim), ..by_norm },
        _ => by_norm,
    }
}

fn decay_change(old: Decay, new: Decay) -> ValueChange {
    match (old, new) {
        (Decay::Log, Decay::Factor) => ValueChange::NegatedExp,
        (Decay::Log, Decay::Log) | (Decay::Factor, Decay::Factor) => ValueChange::None,
        (Decay::Factor, Decay::Log) => unreachable!("every GGUF stores the factor"),
    }
}

/// Returns a layer; numbers behind the model's own are of its draft block.
fn layer_of(spec: &ModelSpec, layer: usize) -> Option<&LayerSpec> {
    spec.layers.get(layer).or_else(|| spec.draft.as_ref().map(|draft| &draft.layer))
}

/// Returns the norm of a role, where families differ in its weights.
fn norm_of(spec: &ModelSpec, role: Role, layer: Option<usize>) -> Option<Norm> {
    let layer = layer.and_then(|layer| layer_of(spec, layer));
    match role {
        Role::OutputNorm => Some(spec.output_norm),
        Role::DraftEmbeddingNorm | Role::DraftHiddenNorm | Role::DraftOutputNorm => {
            spec.draft.as_ref().map(|draft| draft.norm)
        }
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
    let draft = spec.draft.as_mut().map(|draft| (&mut draft.norm, &mut draft.layer));
    let (of_draft, draft_layer) = draft.unzip();
    all.extend(of_draft);
    for layer in spec.layers.iter_mut().chain(draft_layer) {
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
    match difference(neutral(&source.spec), neutral(&found)) {
        None => Ok(found),
        Some((own, read)) => {
            Err(refused(format!("it would be read back as another model, with \"{read}\" for \"{own}\"")))
        }
    }
}

/// Reads the structure and checks that every role has a tensor. The outline has no data.
fn read(outline: &WeightFile) -> Result<ModelSpec> {
    let family = arch::find(outline)?;
    let mut found = arch::spec(outline, family)?;
    found.draft = arch::draft_block(outline, family, &found)?;
    for (role, layer, _) in found.tensors() {
        let role = naming_role(&found, role, layer);
        let name = arch::gguf_tensor_name(family.gguf_name(), role, layer)?;
        if outline.tensor(&name).is_none() {
            let message = format!("the tensor {name} would be missing");
            return Err(EngineError::new("convert.tensor", message, ""));
        }
    }
    Ok(found)
}

/// Returns the role whose name a tensor has in a GGUF: queries of latent attention that are projected at once are
/// called as those of other attention.
pub(super) fn naming_role(spec: &ModelSpec, role: Role, layer: Option<usize>) -> Role {
    match layer.and_then(|layer| layer_of(spec, layer)).map(|layer| &layer.mixer) {
        Some(Mixer::Latent(latent)) if role == Role::LatentQuery && latent.query_rank.is_none() => {
            Role::Query
        }
        _ => role,
    }
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
    for layer in &mut spec.layers {
        match &mut layer.mixer {
            Mixer::DeltaNet(delta) => {
                delta.order = HeadOrder::Grouped;
                delta.decay = Decay::Factor;
            }
            Mixer::Ssm(ssm) => ssm.decay = Decay::Factor,
            Mixer::AttentionAndSsm { ssm, .. } => ssm.0.decay = Decay::Factor,
            Mixer::Attention(_) | Mixer::ShortConv(_) | Mixer::Latent(_) | Mixer::None => {}
        }
    }
    if let Some(per_layer) = &mut spec.embedding.per_layer {
        // A shorter table is made as long as the vocabulary.
        per_layer.n_rows = per_layer.n_rows.filter(|n| *n > spec.n_vocab);
    }
    // Factors of 1 are written where a model has none.
    if let Some(altup) = &mut spec.streams {
        altup.gate_scale = true;
    }
    if let Some(draft) = &mut spec.draft {
        draft.layer_number = 0;
    }
    // A GGUF has none, as llama.cpp's: an assistant then considers all tokens.
    if let Some(Assistance::Drafts(head)) = &mut spec.assistance {
        head.clusters = None;
    }
    spec
}

fn rotaries(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Rotary> {
    let draft = spec.draft.as_mut().map(|draft| &mut draft.layer);
    let layers = spec.layers.iter_mut().chain(draft);
    layers.filter_map(|layer| layer.mixer.attention_mut()).filter_map(|attention| match &mut attention.rope {
        Rope::Rotary(rotary) | Rope::ByAxis { rotary, .. } => Some(rotary),
        Rope::None => None,
    })
}

/// Compares specs, with a tolerance for frequencies. Returns the first line in which their texts differ.
fn difference(mut a: ModelSpec, mut b: ModelSpec) -> Option<(String, String)> {
    for (a, b) in rotaries(&mut a).zip(rotaries(&mut b)) {
        let near = |(x, y): (&f32, &f32)| {
            let larger = x.abs().max(y.abs());
            (x - y).abs() <= FREQUENCY_TOLERANCE * larger || larger < STANDSTILL
        };
        if a.inv_freq.len() == b.inv_freq.len() && a.inv_freq.iter().zip(&*b.inv_freq).all(near) {
            b.inv_freq = a.inv_freq.clone();
        }
    }
    if a == b {
        return None;
    }
    let (a, b) = (format!("{a:#?}"), format!("{b:#?}"));
    let line = |text: &str| text.trim().trim_end_matches(',').to_owned();
    let found = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    Some(found.map_or_else(|| (line(&a), line(&b)), |(a, b)| (line(a), line(b))))
}
