//! Opens a model file, checks it completely, and describes it without loading it.

use std::collections::BTreeMap;
use std::path::Path;

use engine::arch;
use engine::capabilities::ModelCapabilities;
use engine::memory_estimate::MemoryEstimate;
use engine::tokenizer::Tokenizer;
use weights::{Container, WeightFile};

use contract::protocol::{Facts, Location};

use crate::model_name::model_name;
use crate::{engine_types, starter, vision_file};
use contract::{Error, ErrorKind, Result};

pub fn open(location: &Location) -> Result<WeightFile> {
    Ok(match location {
        Location::BuiltIn => WeightFile::from_static(starter::ID, starter::bytes())?,
        Location::Path(path) => WeightFile::open(Path::new(path))?,
        Location::Remote { name, .. } => return Err(not_here(name)),
    })
}

/// The weights of another server's model are not here to be looked at.
pub fn not_here(name: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "remote.not_here",
        format!("The model is on another server ({name}), so its weights and vocabulary are not available."),
        "Choose a model on this computer.",
    )
}

/// Errors are those that loading would give, memory aside.
pub fn inspect(location: &Location) -> Result<Facts> {
    let file = open(location)?;
    let family = arch::find(&file)?;
    arch::tensors(&file, family, &arch::spec(&file, family)?)?;
    Tokenizer::from_weights(&file)?;
    facts(&file, location)
}

/// As `inspect`, without a look at values and vocabulary: enough for a list.
pub fn glance(location: &Location) -> Result<Facts> {
    facts(&open(location)?, location)
}

fn facts(file: &WeightFile, location: &Location) -> Result<Facts> {
    let family = arch::find(file)?;
    let spec = arch::spec(file, family)?;
    let stored_tensors = arch::stored_tensors(file, family, &spec)?;
    let mut bytes_of = BTreeMap::new();
    for part in &stored_tensors {
        *bytes_of.entry(part.dtype.name()).or_insert(0) += part.n_bytes;
    }
    let dtype = bytes_of.iter().max_by_key(|(_, n_bytes)| **n_bytes).map_or("", |(name, _)| name);
    let (estimate, tower) =
        vision_file::with_tower(MemoryEstimate::new(&spec, &stored_tensors), location, file);
    let bytes = estimate.weights;
    Ok(Facts {
        name: name(file, location),
        bytes,
        architecture: spec.architecture.into(),
        parameters: stored_tensors.iter().map(|part| part.n_values).sum(),
        dtype: dtype.into(),
        context_length: u32::try_from(spec.context_length).unwrap_or(u32::MAX),
        files: u32::try_from(file.parts().len()).unwrap_or(u32::MAX),
        disk_bytes: file.len_bytes(),
        fingerprint: file.fingerprint(),
        sizes: engine_types::model_sizes(estimate),
        // An unreadable template is reported when the model is loaded; it doesn't exclude the file
        // from the list.
        skills: engine_types::template_capabilities(ModelCapabilities::of(file).unwrap_or_default()),
        images: tower.is_some(),
        image_detail: tower.is_some_and(|tower| tower.has_detail),
    })
}

fn name(file: &WeightFile, location: &Location) -> String {
    let path = match location {
        Location::BuiltIn => return starter::NAME.into(),
        Location::Path(path) => Path::new(path),
        Location::Remote { model, .. } => return model.clone(),
    };
    match file.container() {
        Container::Gguf { .. } => {
            let metadata = file.metadata();
            model_name(metadata.str("general.name").ok(), Some(metadata), path)
        }
        Container::Safetensors => model_name(None, None, path),
    }
}
