//! Finds the file of a model's vision tower: the model's own, one that is named, or a GGUF beside it.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weights::{Container, WeightFile};

use crate::error::{EngineError, Result};

/// What names of such files contain.
const MARK: &str = "mmproj";
/// Precisions of towers, the preferred first; all are read, but the smaller ones lose detail.
const PRECISIONS: [&str; 4] = ["f16", "bf16", "q8", "f32"];
/// Bound on the files of a folder that are opened.
const MAX_CANDIDATES: usize = 64;

/// Opens the file of a model's tower. `named` is the file that a person chose; without it, a safetensors repository is
/// its own, and a GGUF has one in its folder. `None`: the model has no tower.
///
/// Errors: those of `WeightFile::open`; `vision.no_tower`, `vision.tower_unknown`.
pub fn tower_file(model: &Arc<WeightFile>, named: Option<&Path>) -> Result<Option<Arc<WeightFile>>> {
    if let Some(path) = named {
        return named_tower(path).map(Some);
    }
    if super::find(model)?.is_some() {
        return Ok(Some(model.clone()));
    }
    let beside = tower_beside(model).map(|path| named_tower(&path));
    beside.transpose()
}

/// Opens the file of a tower by its path.
///
/// Errors: as `tower_file`.
pub fn named_tower(path: &Path) -> Result<Arc<WeightFile>> {
    let file = WeightFile::open(path)?;
    match super::find(&file)? {
        Some(_) => Ok(Arc::new(file)),
        None => Err(no_tower(&file)),
    }
}

/// Finds the tower in the folder of a GGUF: one whose rows are as wide as the model's. Of several, the one that shares
/// most of its name, then the preferred precision.
pub fn tower_beside(model: &WeightFile) -> Option<PathBuf> {
    if !matches!(model.container(), Container::Gguf { .. }) {
        return None;
    }
    let number = |file: &WeightFile, key: &str| file.metadata().opt_u64(key).ok().flatten();
    let architecture = model.metadata().opt_str("general.architecture").ok().flatten()?;
    let width = number(model, &format!("{architecture}.embedding_length"))?;
    ranked(model.path(), towers_beside(model.path())).into_iter().take(MAX_CANDIDATES).find(|path| {
        WeightFile::open(path).is_ok_and(|file| number(&file, "clip.vision.projection_dim") == Some(width))
    })
}

/// Returns whether a model's folder has a file that is called like one of a tower.
pub fn has_tower_beside(model: &Path) -> bool {
    !towers_beside(model).is_empty()
}

/// Error for a file that was to hold a tower.
pub(crate) fn no_tower(file: &WeightFile) -> EngineError {
    EngineError::new(
        "vision.no_tower",
        format!("{} holds no vision tower", file.path().display()),
        "Choose the mmproj file that belongs to the model.",
    )
}

/// The files of a model's folder that are called like one of a tower.
fn towers_beside(model: &Path) -> Vec<PathBuf> {
    let entries = model.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path != model && is_tower_name(path)).collect()
}

/// The most likely tower first.
fn ranked(model: &Path, mut towers: Vec<PathBuf>) -> Vec<PathBuf> {
    let model = words(model);
    towers.sort_by_cached_key(|path| {
        let words = words(path);
        let precision = PRECISIONS.iter().position(|precision| words.iter().any(|word| word == precision));
        (Reverse(n_shared(&words, &model)), precision.unwrap_or(PRECISIONS.len()), file_name(path))
    });
    towers
}

fn is_tower_name(path: &Path) -> bool {
    let is_gguf = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    is_gguf && file_name(path).contains(MARK)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// The words of a file's name, without the mark.
fn words(path: &Path) -> Vec<String> {
    let name = file_name(path);
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && *word != MARK);
    words.map(str::to_owned).collect()
}

/// Words at the beginning that both have.
fn n_shared(a: &[String], b: &[String]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_tower_is_the_one_of_the_models_name_and_the_preferred_precision() {
        let first = |towers: &[&str], model: &str| {
            let towers = towers.iter().map(PathBuf::from).collect();
            ranked(Path::new(model), towers).first().map(|path| file_name(path))
        };
        let model = "gemma-3-4b-it.Q4_K_M.gguf";
        assert_eq!(first(&[], model), None);
        let named = "mmproj-gemma-3-4b-it-f16.gguf";
        assert_eq!(first(&["mmproj-model-f16.gguf", named], model).as_deref(), Some(named));
        let precisions = ["mmproj-F32.gguf", "mmproj-Q8_0.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf"];
        assert_eq!(first(&precisions, model).as_deref(), Some("mmproj-f16.gguf"));
        assert_eq!(first(&precisions[..3], model).as_deref(), Some("mmproj-bf16.gguf"));
    }

    #[test]
    fn names_tell_towers_from_models() {
        assert!(is_tower_name(Path::new("/a/MMPROJ-F16.GGUF")));
        assert!(!is_tower_name(Path::new("/a/mmproj.json")) && !is_tower_name(Path::new("/a/model.gguf")));
    }
}
