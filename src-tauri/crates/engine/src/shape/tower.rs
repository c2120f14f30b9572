//! Vision towers of published shapes with random weights, as `mmproj` files beside the models of `SHAPES`.

use std::io::Write;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weights::write::{GgufWriter, OwnedValue};
use weights::{Container, DType};

use super::{BlockPool, ShapeFact};
use crate::arch::{TensorForm, TensorName};
use crate::error::{EngineError, Result};
use crate::spec::{Role, TensorSpec};
use crate::vision::{self, StoredTower};

/// Hyperparameters of one published tower.
#[derive(Debug, Clone, Copy)]
pub struct TowerShape {
    /// Name of the language model's shape.
    pub name: &'static str,
    /// As in a GGUF's `clip.projector_type`.
    projector: &'static str,
    n_layers: u32,
    /// GGUF pairs, keys without `clip.vision.`.
    pairs: &'static [(&'static str, ShapeFact)],
}

/// Published towers that the engine runs.
static TOWER_SHAPES: &[TowerShape] = &[TowerShape {
    name: "qwen3.5-4b",
    projector: "qwen3vl_merger",
    n_layers: 24,
    pairs: &[
        ("projection_dim", ShapeFact::Count(2560)),
        ("image_size", ShapeFact::Count(768)),
        ("patch_size", ShapeFact::Count(16)),
        ("embedding_length", ShapeFact::Count(1024)),
        ("feed_forward_length", ShapeFact::Count(4096)),
        ("attention.head_count", ShapeFact::Count(16)),
        ("attention.layer_norm_epsilon", ShapeFact::Real(1e-6)),
        ("spatial_merge_size", ShapeFact::Count(2)),
        ("is_deepstack_layers", ShapeFact::FlagsByLayer(&[false])),
        ("image_mean", ShapeFact::Reals(&[0.5, 0.5, 0.5])),
        ("image_std", ShapeFact::Reals(&[0.5, 0.5, 0.5])),
    ],
}];

/// Finds the tower of a shape.
///
/// Errors: `bench.tower_unknown`, naming those that there are.
pub fn find_tower(name: &str) -> Result<&'static TowerShape> {
    TOWER_SHAPES.iter().find(|tower| tower.name == name).ok_or_else(|| {
        let known: Vec<&str> = TOWER_SHAPES.iter().map(|tower| tower.name).collect();
        EngineError::new(
            "bench.tower_unknown",
            format!("there is no vision tower for the shape \"{name}\""),
            format!("Choose one of: {}. Or name a model that sees with --model.", known.join(", ")),
        )
    })
}

/// Writes an `mmproj` GGUF of that shape: matrices in float16, everything else in float32.
///
/// Errors: `bench.write`.
pub fn write_tower(shape: &TowerShape, seed: u64, out: &mut dyn Write) -> Result<()> {
    let mut writer = metadata(shape);
    let mut rng = SmallRng::seed_from_u64(seed);
    let (half, single) = (BlockPool::random(DType::F16, &mut rng), BlockPool::random(DType::F32, &mut rng));
    let ones = BlockPool::constant(1.0);
    for (role, name, dims) in tensors(shape)? {
        let (dtype, pool) = match (role, dims.len()) {
            (_, 1) => (DType::F32, ones.clone()),
            (Role::PositionEmbedding, _) => (DType::F32, single.clone()),
            _ => (DType::F16, half.clone()),
        };
        let n_bytes = dtype.row_bytes(dims.iter().product());
        let seed = rng.random();
        writer.tensor_from(&name, dtype, &dims, Box::new(move |out| pool.write(n_bytes, seed, out)));
    }
    writer.write(out).map_err(|error| {
        EngineError::new(
            "bench.write",
            format!("the vision tower could not be written: {error}"),
            "Free some disk space.",
        )
    })
}

fn metadata(shape: &TowerShape) -> GgufWriter {
    let mut writer = GgufWriter::new();
    let text = |text: &str| OwnedValue::Str(text.to_owned());
    writer.set("general.architecture", text("clip"));
    writer.set("general.type", text("mmproj"));
    writer.set("general.name", text(&format!("tower of {} with random weights", shape.name)));
    writer.set("clip.has_vision_encoder", OwnedValue::Bool(true));
    writer.set("clip.projector_type", text(shape.projector));
    writer.set("clip.use_gelu", OwnedValue::Bool(true));
    writer.set("clip.vision.block_count", OwnedValue::U32(shape.n_layers));
    for (key, fact) in shape.pairs {
        writer.set(&format!("clip.vision.{key}"), fact.value(shape.n_layers as usize));
    }
    writer
}

/// Returns every tensor by role and name, with its dimensions outermost first. Fused ones have their first role.
fn tensors(shape: &TowerShape) -> Result<Vec<(Role, String, Vec<usize>)>> {
    let outline = metadata(shape).outline(shape.name)?;
    let missing = || vision::no_tower(&outline);
    let family = vision::find(&outline)?.ok_or_else(missing)?;
    let spec = StoredTower::read_spec(&outline)?.ok_or_else(missing)?;
    let all = spec.tensors();
    let rows = |role: Role, layer: Option<usize>| {
        let found = all.iter().find(|(other, of, _)| (*other, *of) == (role, layer));
        found.map_or(0, |(_, _, dims)| dims[0])
    };
    let size = spec.patches.size;
    let of = |(role, layer, dims): &TensorSpec| {
        let names = family.tensor_names(Container::Gguf { version: 3 }, *role);
        let fused = |name: &&TensorName| matches!(name.form, TensorForm::Rows(_));
        let name = names.iter().find(fused).or(names.first())?;
        let mut dims = dims.clone();
        match name.form {
            TensorForm::Rows(roles) if roles.first() != Some(role) => return None,
            TensorForm::Rows(roles) => dims[0] = roles.iter().map(|role| rows(*role, *layer)).sum(),
            _ if matches!(role, Role::PatchEmbedding | Role::PatchEmbeddingNext) => {
                dims = vec![dims[0], dims[1..].iter().product::<usize>() / (size * size), size, size];
            }
            _ => {}
        }
        let number = layer.map(|layer| layer.to_string()).unwrap_or_default();
        Some((*role, name.name.replace('#', &number), dims))
    };
    Ok(all.iter().filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kernels::BackendKind;
    use kernels::backends::BackendOptions;
    use weights::{SharedBytes, WeightFile};

    use super::*;
    use crate::vision::{ImagePatches, VisionTower};

    #[test]
    fn written_towers_run() {
        for shape in TOWER_SHAPES {
            let small = TowerShape { n_layers: 1, ..*shape };
            let mut bytes = Vec::new();
            write_tower(&small, 1, &mut bytes).unwrap();
            let file = Arc::new(WeightFile::from_bytes("a tower", SharedBytes::from_vec(bytes)).unwrap());
            let tower = VisionTower::load(&file, BackendKind::Cpu, BackendOptions::default());
            let mut tower = tower.unwrap().unwrap();
            let values = vec![0.1; 4 * 2 * tower.spec().patch_len()];
            let rows = tower.embed(&ImagePatches { rows: 4, cols: 2, values: &values }).unwrap();
            assert_eq!(rows.len(), 2 * tower.spec().row_width(), "{}", shape.name);
            assert!(rows.iter().all(|x| x.is_finite()), "{}", shape.name);
        }
        assert_eq!(find_tower("llama-3.2-1b").unwrap_err().code(), "bench.tower_unknown");
    }

    /// 302 million in the layers, and about 31 in the projector and the tables.
    #[test]
    fn published_towers_have_their_parameters() {
        let n = |name: &str| -> usize {
            let all = tensors(find_tower(name).unwrap()).unwrap();
            all.iter().map(|(_, _, dims)| dims.iter().product::<usize>()).sum()
        };
        assert_eq!(n("qwen3.5-4b") / 1_000_000, 333);
    }
}
