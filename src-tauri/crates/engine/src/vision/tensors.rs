//! Finds the tensors of a tower in a file, checks their shapes, and brings them into the order that the graph takes.

use std::collections::HashMap;

use weights::{Container, TensorView, WeightFile};

use super::{TowerFamily, reorder};
use crate::arch::{LocatedTensor, TensorForm, TensorName, extract, fits, tensor_missing};
use crate::decoder::ProductBounds;
use crate::error::Result;
use crate::spec::{PairOrder, Role, TensorSpec, TowerSpec};

/// Prefixes of Hugging Face names: of towers, and of projectors.
const ROOTS: [&str; 8] = [
    "vision_tower.vision_model.",
    "vision_tower.",
    "model.vision_tower.vision_model.",
    "model.vision_tower.",
    "model.visual.",
    "model.vision_model.",
    "model.",
    "",
];

/// Finds every tensor of the spec, in the order that the graph takes.
///
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.dtype_unsupported`, naming the tensor.
pub(super) fn locate(
    file: &WeightFile,
    family: &dyn TowerFamily,
    spec: &TowerSpec,
) -> Result<Vec<LocatedTensor>> {
    let mut located = locate_as_stored(file, family, spec)?;
    for LocatedTensor { role, parts, .. } in &mut located {
        for part in parts {
            match (spec.pairs, *role) {
                (
                    PairOrder::WithinHalves { head_dim },
                    Role::Query | Role::Key | Role::QueryNorm | Role::KeyNorm,
                ) => reorder::exchange_middle_quarters(part, head_dim),
                (_, Role::ProjectorMerge) => reorder::join_channels(part, spec.patches_per_embedding())?,
                _ => {}
            }
        }
    }
    Ok(located)
}

/// Finds every tensor of the spec, in the order in which it is stored.
///
/// Errors: as `locate`.
pub(super) fn locate_as_stored(
    file: &WeightFile,
    family: &dyn TowerFamily,
    spec: &TowerSpec,
) -> Result<Vec<LocatedTensor>> {
    let specs = spec.tensors();
    let rows: HashMap<(Role, Option<usize>), usize> =
        specs.iter().map(|(role, layer, shape)| ((*role, *layer), shape[0])).collect();
    let locate_one = |(role, layer, shape): &TensorSpec| {
        let rows_of = |other: Role| rows.get(&(other, *layer)).copied();
        let candidates = candidates(file, family, *role, number_of(spec, *role, *layer));
        let fitting = candidates
            .iter()
            .find(|(name, candidate)| fits(file, (name, candidate.form), *role, shape, &rows_of));
        let existing = || candidates.iter().find(|(name, _)| file.tensor(name).is_some());
        let Some((name, candidate)) = fitting.or_else(existing) else {
            let expected = candidates.first().map_or_else(|| format!("{role:?}"), |(name, _)| name.clone());
            return Err(tensor_missing(&expected));
        };
        let parts = extract(file, (name, candidate.form), *role, shape, &rows_of)?;
        Ok(LocatedTensor { role: *role, layer: *layer, parts })
    };
    specs.iter().map(locate_one).collect()
}

/// Finds the stored tensor of a role, and what of it the role occupies.
pub(super) fn find<'a>(
    file: &'a WeightFile,
    family: &dyn TowerFamily,
    spec: &TowerSpec,
    role: Role,
    layer: Option<usize>,
) -> Option<(TensorView<'a>, TensorForm)> {
    let names = candidates(file, family, role, number_of(spec, role, layer));
    names.iter().find_map(|(name, candidate)| Some((file.tensor(name)?, candidate.form)))
}

/// Iterates over the stored tensors of the spec, as far as the file has them.
pub(super) fn stored<'a>(
    file: &'a WeightFile,
    family: &'a dyn TowerFamily,
    spec: &'a TowerSpec,
) -> impl Iterator<Item = TensorView<'a>> {
    spec.tensors().into_iter().filter_map(move |(role, layer, _)| {
        let names = candidates(file, family, role, number_of(spec, role, layer));
        names.iter().find_map(|(name, _)| file.tensor(name))
    })
}

/// Returns the number in the names of a role's tensor.
fn number_of(spec: &TowerSpec, role: Role, layer: Option<usize>) -> Option<usize> {
    match layer {
        Some(index) if role.is_deep() => spec.deepstack.taps.get(index).map(|tap| tap.number),
        layer => layer,
    }
}

/// Products whose bounds a file may have.
pub(super) const BOUNDED: [Role; 7] =
    [Role::Query, Role::Key, Role::Value, Role::AttentionOut, Role::Gate, Role::Up, Role::Down];

/// Reads the bounds of every product of the layers. A bound that a file lacks, or that is infinite, bounds nothing.
pub(super) fn bounds(
    file: &WeightFile,
    family: &dyn TowerFamily,
    spec: &TowerSpec,
) -> Result<HashMap<(Role, usize), ProductBounds>> {
    let mut all = HashMap::new();
    if !spec.has_bounds {
        return Ok(all);
    }
    for (layer, role) in (0..spec.layers.len()).flat_map(|layer| BOUNDED.map(|role| (layer, role))) {
        let names = candidates(file, family, role, Some(layer));
        let read = |what: &str, unbounded: f32| -> Result<f32> {
            let of = |name: &str| {
                let stem = name.strip_suffix(".weight").unwrap_or(name);
                file.tensor(&format!("{}.{what}", stem.strip_suffix(".linear").unwrap_or(stem)))
            };
            match names.iter().find_map(|(name, _)| of(name)) {
                Some(view) => Ok(reorder::number(&view)?.clamp(f32::MIN, f32::MAX)),
                None => Ok(unbounded),
            }
        };
        let bounds = ProductBounds {
            input: (read("input_min", f32::MIN)?, read("input_max", f32::MAX)?),
            output: (read("output_min", f32::MIN)?, read("output_max", f32::MAX)?),
        };
        all.insert((role, layer), bounds);
    }
    Ok(all)
}

/// Returns the full names that a role's tensor may have, the most common first.
fn candidates(
    file: &WeightFile,
    family: &dyn TowerFamily,
    role: Role,
    layer: Option<usize>,
) -> Vec<(String, TensorName)> {
    let layer = layer.map(|layer| layer.to_string()).unwrap_or_default();
    let named = |candidate: TensorName| {
        let name = candidate.name.replace('#', &layer);
        let names: Vec<String> = match file.container() {
            Container::Gguf { .. } => vec![name],
            Container::Safetensors => ROOTS.iter().map(|root| format!("{root}{name}")).collect(),
        };
        names.into_iter().map(move |name| (name, candidate.clone()))
    };
    family.tensor_names(file.container(), role).into_iter().flat_map(named).collect()
}
