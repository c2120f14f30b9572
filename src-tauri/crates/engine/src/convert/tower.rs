//! Writes the vision tower of a safetensors repository as a separate GGUF (`mmproj`), under the names and keys of
//! llama.cpp.
//!
//! Guarantees: an outline is read back before a byte is written, and a different tower is refused.

use std::sync::{Arc, Mutex};

use ::vision::{FamilySettings, ImageSettings};
use kernels::{RopeStyle, Tensor};
use weights::write::{GgufWriter, OwnedValue};
use weights::{Container, DType, TensorView, WeightFile};

use super::quantize::EncodeJob;
use super::rearrange::{Permutation, Rearrangement, ValueChange};
use super::tower_metadata;
use super::{Conversion, ConversionTarget, Formats, fill, n_cores};
use crate::arch::{self, TensorForm, TensorName};
use crate::error::{EngineError, Result};
use crate::spec::{ImageAttention, Norm, Role, Rope, SampleOrder, TowerSpec};
use crate::tokenizer::Tokenizer;
use crate::vision::{self, StoredTower};

/// Prepares the conversion of a repository's tower. `None`: it has none, or is a GGUF.
///
/// Errors: `convert.tower`, naming the family, if it cannot be written; those of opening a tower.
pub fn plan_tower(
    file: &WeightFile,
    formats: &Formats,
    threads: Option<usize>,
) -> Result<Option<Conversion>> {
    if !matches!(file.container(), Container::Safetensors) {
        return Ok(None);
    }
    let Some(tower) = StoredTower::open(file)? else { return Ok(None) };
    let settings = vision::image_settings(file)?;
    let targets = tower_targets(file, &tower, formats, &settings)?;
    let mut targets: Vec<Arc<ConversionTarget>> = targets.into_iter().map(Arc::new).collect();
    let pairs = tower_metadata::pairs(file, &tower.spec, &settings, formats.tower_file_type())?;
    let outline = writer(&pairs, &targets, 1, &Arc::default()).outline("the converted tower");
    let found = check(file, &tower, outline.map_err(EngineError::from))?;
    for target in &mut targets {
        let target = Arc::get_mut(target).expect("the outline's writer was dropped");
        target.job.rearrangement = rearrangement(&tower.spec, &found, target);
    }
    let reports = Arc::new(Mutex::new(Vec::with_capacity(targets.len())));
    let writer = writer(&pairs, &targets, threads.unwrap_or_else(n_cores).max(1), &reports);
    Ok(Some(Conversion { writer, reports, n_kept_coarser: 0, n_tensors: targets.len() }))
}

fn writer(
    pairs: &[(String, OwnedValue)],
    targets: &[Arc<ConversionTarget>],
    threads: usize,
    reports: &super::SharedReports,
) -> GgufWriter {
    let mut writer = GgufWriter::new();
    for (key, value) in pairs {
        writer.set(key, value.clone());
    }
    for target in targets {
        let fill = fill(Arc::clone(target), threads, Arc::clone(reports));
        writer.tensor_from(&target.name, target.dtype, &target.shape, fill);
    }
    writer
}

/// Whether llama.cpp's converter keeps the projection of patches in float32.
fn is_float_convolution(family: &FamilySettings) -> bool {
    matches!(family, FamilySettings::Gemma3(_) | FamilySettings::Idefics3(_))
}

/// Lists every tensor of the new file. Matrices get the format for towers, everything else float32.
fn tower_targets(
    file: &WeightFile,
    tower: &StoredTower<'_>,
    formats: &Formats,
    settings: &ImageSettings,
) -> Result<Vec<ConversionTarget>> {
    let spec = &tower.spec;
    let convolution = match is_float_convolution(&settings.family) {
        true => DType::F32,
        false => formats.tower_convolution_dtype(),
    };
    if spec.layers.is_empty() {
        return Err(refused(spec, "it has no layers".into()));
    }
    let mut targets: Vec<ConversionTarget> = Vec::new();
    for (role, layer, _) in spec.tensors() {
        let (source, form) = tower.find(role, layer).ok_or_else(|| unnamed(spec, role))?;
        let name = gguf_name(tower, role, form, layer).ok_or_else(|| unnamed(spec, role))?;
        if targets.iter().any(|target| target.name == name) {
            // Another role of the same stored tensor, which is written whole.
            continue;
        }
        let mut target = target(tower, role, layer, name, &source, form)?;
        let is_matrix = target.shape.len() > 1
            && !matches!(role, Role::PositionEmbedding | Role::StandardBias | Role::StandardScale);
        target.dtype = match role {
            Role::PatchEmbedding | Role::PatchEmbeddingNext if is_matrix => convolution,
            _ if is_matrix => formats.tower_dtype(),
            _ => DType::F32,
        };
        targets.push(target);
    }
    targets.extend(tower.bounds()?.into_iter().map(|(name, value)| values_target(name, &[value])));
    if let FamilySettings::Pixtral(pixtral) = &settings.family {
        targets.push(break_row(file, tower, &pixtral.break_token)?);
    }
    Ok(targets)
}

/// The stored tensor of a role under its new name.
fn target(
    tower: &StoredTower<'_>,
    role: Role,
    layer: Option<usize>,
    name: String,
    source: &TensorView<'_>,
    form: TensorForm,
) -> Result<ConversionTarget> {
    let of = |shape: Vec<usize>, dtype, job| ConversionTarget {
        role: Some(role),
        layer,
        name: name.clone(),
        shape,
        dtype,
        job,
    };
    let patches = &tower.spec.patches;
    let is_reordered = role == Role::PatchEmbedding && patches.samples.stored == SampleOrder::ChannelsLast;
    Ok(match form {
        TensorForm::Frame { .. } => {
            let part = tower.part(role, layer).ok_or_else(|| unnamed(&tower.spec, role))?;
            of(part.shape.clone(), part.dtype, EncodeJob::of(&part.view()))
        }
        _ if is_reordered => {
            let values = Tensor::host(source)?.decode();
            let (d, size) = (tower.spec.d_model, patches.size);
            let shape = vec![d, tower.spec.patch_len() / (size * size), size, size];
            of(shape, DType::F32, EncodeJob::values(&channels_first(&values, size * size)))
        }
        _ => of(source.shape.to_vec(), source.dtype, EncodeJob::of(source)),
    })
}

/// Reorders rows of (place, channel) to (channel, place). RGB.
fn channels_first(values: &[f32], n_places: usize) -> Vec<f32> {
    const N_CHANNELS: usize = 3;
    let mut reordered = Vec::with_capacity(values.len());
    for row in values.chunks_exact(n_places * N_CHANNELS) {
        for channel in 0..N_CHANNELS {
            reordered.extend(row.iter().skip(channel).step_by(N_CHANNELS));
        }
    }
    reordered
}

fn values_target(name: String, values: &[f32]) -> ConversionTarget {
    let (shape, job) = (vec![values.len()], EncodeJob::values(values));
    ConversionTarget { role: None, layer: None, name, shape, dtype: DType::F32, job }
}

/// The name of a role in a GGUF. A tensor that several roles share is shared there, too.
fn gguf_name(tower: &StoredTower<'_>, role: Role, form: TensorForm, layer: Option<usize>) -> Option<String> {
    let is_shared = |form: TensorForm| matches!(form, TensorForm::Rows(_));
    let names: Vec<TensorName> = tower.family.tensor_names(Container::Gguf { version: 3 }, role);
    let name = names.iter().find(|name| is_shared(name.form) == is_shared(form))?.name;
    // Deepstack is named by the layer that it comes from.
    let number = match layer {
        Some(index) if role.is_deep() => Some(tower.spec.deepstack.taps.get(index)?.layer),
        layer => layer,
    };
    Some(name.replace('#', &number.map(|number| number.to_string()).unwrap_or_default()))
}

/// The row of the language model that llama.cpp puts at the end of each row of a picture.
fn break_row(file: &WeightFile, tower: &StoredTower<'_>, token: &str) -> Result<ConversionTarget> {
    const NAME: &str = "v.token_embd.img_break";
    let missing = || refused(&tower.spec, format!("the model has no token {token}"));
    let id = Tokenizer::from_weights(file)?.markup_token(token).ok_or_else(missing)? as usize;
    let text = arch::find(file)?;
    let placed = arch::tensors(file, text, &arch::spec(file, text)?)?;
    let table = placed.into_iter().find(|placed| placed.role == Role::TokenEmbedding).ok_or_else(missing)?;
    let table = table.parts.into_iter().next().ok_or_else(missing)?;
    let [n_rows, width] = table.shape[..] else { return Err(missing()) };
    if id >= n_rows {
        return Err(missing());
    }
    let row = EncodeJob::of(&table.view()).decode(id..id + 1, width);
    Ok(values_target(NAME.into(), &row))
}

/// What happens to the values of a tensor on their way from `source` to the file that reads as `found`.
fn rearrangement(source: &TowerSpec, found: &TowerSpec, target: &ConversionTarget) -> Rearrangement {
    let none = Rearrangement::default();
    let offset = |norm: Norm| match norm {
        Norm::Rms { offset, .. } => offset,
        Norm::None | Norm::PlainRms { .. } | Norm::Layer { .. } => 0.0,
    };
    match target.role {
        Some(Role::ProjectorNorm) => match offset(source.projector.norm) - offset(found.projector.norm) {
            0.0 => none,
            offset => Rearrangement { change: ValueChange::Add(offset), ..none },
        },
        Some(Role::Query | Role::Key) => {
            let style = |spec: &TowerSpec| {
                let attention = spec.layers.first()?.mixer.attention()?;
                match &attention.rope {
                    Rope::ByAxis { rotary, .. } => Some((rotary.style, attention.head_dim)),
                    Rope::None | Rope::Rotary(_) => None,
                }
            };
            match (style(source), style(found)) {
                (Some((RopeStyle::Half, head_dim)), Some((RopeStyle::Interleaved, _))) => {
                    Rearrangement { rows: Permutation::Interleaved { head_dim, n_rot: head_dim }, ..none }
                }
                _ => none,
            }
        }
        _ => none,
    }
}

/// Reads the outline as any reader would, and returns the spec found.
///
/// Errors: `convert.tower` if it is another tower.
fn check(file: &WeightFile, tower: &StoredTower<'_>, outline: Result<WeightFile>) -> Result<TowerSpec> {
    let read = outline.and_then(|outline| {
        let found = StoredTower::read_spec(&outline)?;
        found.ok_or_else(|| vision::no_tower(&outline))
    });
    let found = read.map_err(|error| refused(&tower.spec, error.to_string()))?;
    let per_layer = &file.metadata().config()["text_config"]["hidden_size_per_layer_input"];
    let is_causal_anyway = per_layer.as_u64().is_some_and(|width| width > 0);
    let (own, read) = (neutral(&tower.spec, is_causal_anyway), neutral(&found, is_causal_anyway));
    if own == read {
        return Ok(found);
    }
    let (own, read) = (format!("{own:#?}"), format!("{read:#?}"));
    let line = own.lines().zip(read.lines()).find(|(own, read)| own != read);
    let (own, read) = line.map_or(("", ""), |(own, read)| (own.trim(), read.trim()));
    Err(refused(
        &tower.spec,
        format!("it would be read back as another tower, with \"{read}\" for \"{own}\""),
    ))
}

/// Removes rightful differences between the containers.
fn neutral(spec: &TowerSpec, is_causal_anyway: bool) -> TowerSpec {
    let mut spec = spec.clone();
    spec.patches.samples.stored = SampleOrder::ChannelsFirst;
    if let Norm::Rms { offset, .. } = &mut spec.projector.norm {
        *offset = 0.0;
    }
    spec.deepstack.taps.iter_mut().for_each(|tap| tap.number = tap.layer);
    for layer in &mut spec.layers {
        let attention = layer.mixer.attention_mut();
        if let Some(Rope::ByAxis { rotary, .. }) = attention.map(|attention| &mut attention.rope) {
            rotary.style = RopeStyle::Half;
        }
    }
    if is_causal_anyway && spec.seen == ImageAttention::WholeInWindows {
        spec.seen = ImageAttention::Causal;
    }
    spec
}

fn unnamed(spec: &TowerSpec, role: Role) -> EngineError {
    refused(spec, format!("its tensor {role:?} has no name there"))
}

fn refused(spec: &TowerSpec, why: String) -> EngineError {
    EngineError::new(
        "convert.tower",
        format!("a vision tower of the family {} cannot be written as an mmproj file: {why}", spec.family),
        "Use the repository as it is, or convert without the tower (--no-mmproj).",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_come_one_after_another() {
        let places = [1.0, 10.0, 100.0, 2.0, 20.0, 200.0];
        let rows = [places, places.map(|x| -x)].concat();
        let expected = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0];
        assert_eq!(channels_first(&rows, 2), [expected, expected.map(|x| -x)].concat());
    }
}
