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

/// A vision tower that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TowerFacts {
    /// Larger images take more tokens, which a limit can keep down.
    pub has_detail: bool,
}

impl TowerFacts {
    fn of(file: &WeightFile) -> Option<Self> {
        vision::find(file).ok().flatten()?;
        // Settings that can't be read are an error once the model is loaded, not in a list.
        let has_detail = vision::image_settings(file).is_ok_and(|settings| settings.has_detail());
        Some(Self { has_detail })
    }
}

/// Adds a model's vision tower to its estimate, its own or that of a file beside it. Also returns what is known of it.
pub fn with_tower(
    estimate: MemoryEstimate,
    location: &Location,
    file: &WeightFile,
) -> (MemoryEstimate, Option<TowerFacts>) {
    if !matches!(location, Location::Path(_)) {
        return (estimate, None);
    }
    if let Some(facts) = TowerFacts::of(file) {
        return (estimate.with_tower(file), Some(facts));
    }
    let beside = vision::tower_beside(file).and_then(|path| WeightFile::open(&path).ok());
    match beside.as_ref().and_then(|tower| Some((tower, TowerFacts::of(tower)?))) {
        Some((tower, facts)) => (estimate.with_tower(tower), Some(facts)),
        None => (estimate, None),
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
        for (family, has_detail) in [("gemma3", false), ("qwen3_5", true)] {
            let folder = format!("vision/{family}");
            let file = WeightFile::open(&reference(&folder)).unwrap();
            let location = Location::Path(reference(&folder).display().to_string());
            let (estimate, facts) = with_tower(MemoryEstimate::default(), &location, &file);
            assert_eq!(facts, Some(TowerFacts { has_detail }), "{family}");
            assert!(estimate.vision_weights > 0 && estimate.vision_activations > 0, "{estimate:?}");
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
