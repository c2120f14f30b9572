//! The vision tower of a model: in its own repository, or in an `mmproj` file beside a GGUF; and how it takes images.

use std::path::Path;
use std::sync::Arc;

pub use engine::vision::has_tower_beside;

use engine::memory_estimate::MemoryEstimate;
use engine::vision;
use weights::WeightFile;

use ::vision::ImageSettings;
use contract::Result;
use contract::protocol::Location;

/// A vision tower's file, and how pictures become its patches.
pub struct VisionSource {
    pub file: Arc<WeightFile>,
    pub settings: ImageSettings,
}

impl VisionSource {
    /// The tower of a model: `mmproj` where one is named, else the one that belongs to it. None: it can't see.
    ///
    /// Errors: those of opening files; `vision.*` where there is a tower that can't be used.
    pub fn open(location: &Location, mmproj: Option<&str>) -> Result<Option<Self>> {
        let file = match (mmproj, location) {
            (Some(path), _) => Some(vision::named_tower(Path::new(path))?),
            (None, Location::Path(path)) => {
                vision::tower_file(&Arc::new(WeightFile::open(Path::new(path))?), None)?
            }
            (None, Location::BuiltIn | Location::Remote { .. }) => None,
        };
        let Some(file) = file else { return Ok(None) };
        Ok(Some(Self { settings: vision::image_settings(&file)?, file }))
    }
}

/// Adds a model's vision tower to its estimate, its own or that of a file beside it. The flag says whether it has one
/// that can be used.
pub fn with_tower(
    estimate: MemoryEstimate,
    location: &Location,
    file: &WeightFile,
) -> (MemoryEstimate, bool) {
    let has_tower = |file: &WeightFile| vision::find(file).is_ok_and(|family| family.is_some());
    if !matches!(location, Location::Path(_)) {
        return (estimate, false);
    }
    if has_tower(file) {
        return (estimate.with_tower(file), true);
    }
    let beside = vision::tower_beside(file).and_then(|path| WeightFile::open(&path).ok()).filter(has_tower);
    match beside {
        Some(tower) => (estimate.with_tower(&tower), true),
        None => (estimate, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn reference(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference").join(name)
    }

    fn open(name: &str, mmproj: Option<&str>) -> Result<Option<VisionSource>> {
        let mmproj = mmproj.map(|name| reference(name).display().to_string());
        VisionSource::open(&Location::Path(reference(name).display().to_string()), mmproj.as_deref())
    }

    #[test]
    fn towers_are_found_in_repositories_and_files() {
        for family in ["gemma3", "qwen3_5"] {
            let folder = format!("vision/{family}");
            let file = WeightFile::open(&reference(&folder)).unwrap();
            let location = Location::Path(reference(&folder).display().to_string());
            let (estimate, has_tower) = with_tower(MemoryEstimate::default(), &location, &file);
            assert!(
                has_tower && estimate.vision_weights > 0 && estimate.vision_activations > 0,
                "{estimate:?}"
            );
            assert!(estimate.vision_weights < file.len_bytes());
            let own = open(&folder, None).unwrap().unwrap();
            let named = open(&folder, Some(&format!("{folder}/mmproj-{family}.f16.gguf"))).unwrap().unwrap();
            assert_eq!(own.settings.image_token(), named.settings.image_token());
        }
        assert!(open("families/gemma3", None).unwrap().is_none());
        let error = open("vision/gemma3", Some("families/gemma3")).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "vision.no_tower");
        assert!(VisionSource::open(&Location::BuiltIn, None).unwrap().is_none());
    }
}
