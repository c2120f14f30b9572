//! Vision towers: what turns the patches of an image into embeddings of a language model.
//!
//! A family is one file beside this one and an entry in `TOWERS`; it has no forward code. The tensors are in the
//! language model's own safetensors repository, or in a GGUF of their own (`mmproj-*.gguf`).

use serde_json::Value;
use weights::{Container, WeightFile};

use crate::arch::TensorName;
use crate::error::{EngineError, Result};
use crate::spec::{Role, TowerSpec};

mod gemma3;
mod gemma4;
mod gemma4_unified;
mod idefics3;
mod images;
mod lfm2;
mod memory;
mod names;
mod params;
mod pixtral;
mod positions;
mod qwen3vl;
mod reorder;
mod samples;
mod settings;
mod siglip;
mod stored_tower;
mod tensors;
mod tower;
mod tower_file;

pub(crate) use images::{CoordinateWalk, ImageEmbeddings, ImagePosition, ImageStore, is_image_token};
pub use images::{ImageKey, sha256};
pub use memory::TowerBytes;
use params::TowerParams;
pub use settings::image_settings;
pub(crate) use stored_tower::StoredTower;
pub use tower::{ImagePatches, VisionTower, tiles};
pub(crate) use tower_file::no_tower;
pub use tower_file::{has_tower_beside, named_tower, tower_beside, tower_file};

/// A family of vision towers, implemented by the files beside this one.
pub trait TowerFamily: Sync {
    /// Returns the name in a GGUF's `clip.projector_type`.
    fn projector_type(&self) -> &'static str;

    /// Returns the names in config.json's `model_type`.
    fn hf_names(&self) -> &'static [&'static str];

    /// Reads the tower's structure, with every number checked.
    fn spec(&self, params: &TowerParams<'_>) -> Result<TowerSpec>;

    /// Returns the tensors that may hold a role. A `#` stands for the layer. The first of the right shape wins.
    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName>;
}

/// Every supported family.
pub static TOWERS: &[&dyn TowerFamily] = &[
    &gemma3::Gemma3Tower,
    &gemma4::Gemma4Tower,
    &gemma4_unified::Gemma4UnifiedTower,
    &idefics3::Idefics3Tower,
    &lfm2::Lfm2Tower,
    &pixtral::PixtralTower,
    &qwen3vl::Qwen3VlTower,
];

/// Finds the family of a file's vision tower. `None`: the file has none.
///
/// Errors: `vision.tower_unknown`.
pub fn find(file: &WeightFile) -> Result<Option<&'static dyn TowerFamily>> {
    let (name, family) = match file.container() {
        Container::Gguf { .. } => {
            let metadata = file.metadata();
            let name = match metadata.opt_str("clip.projector_type")? {
                Some(name) => Some(name),
                None => metadata.opt_str("clip.vision.projector_type")?,
            };
            let Some(name) = name else { return Ok(None) };
            (name, TOWERS.iter().find(|family| family.projector_type() == name))
        }
        Container::Safetensors => {
            let config = file.metadata().config();
            let has_tower = config.get("vision_config").is_some_and(|vision| !vision.is_null());
            let Some(name) = config.get("model_type").and_then(Value::as_str).filter(|_| has_tower) else {
                return Ok(None);
            };
            (name, TOWERS.iter().find(|family| family.hf_names().contains(&name)))
        }
    };
    match family {
        Some(family) => Ok(Some(*family)),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> EngineError {
    let known: Vec<&str> = TOWERS.iter().map(|family| family.projector_type()).collect();
    EngineError::new(
        "vision.tower_unknown",
        format!("the vision tower \"{name}\" is not one that Inglenook runs"),
        format!(
            "The model answers without images. For images choose one with a tower of these: {}.",
            known.join(", ")
        ),
    )
}
