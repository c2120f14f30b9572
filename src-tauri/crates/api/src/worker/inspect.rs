//! Opens a model file, checks it wholly, and says what it is, without loading it.

use std::collections::BTreeMap;
use std::path::Path;

use engine::arch;
use engine::tokenizer::Tokenizer;
use weights::{Container, WeightFile};

use super::protocol::{Facts, Location};
use crate::error::Result;
use crate::starter;

pub fn open(location: &Location) -> Result<WeightFile> {
    Ok(match location {
        Location::BuiltIn => WeightFile::from_static(starter::ID, starter::bytes())?,
        Location::Path(path) => WeightFile::open(Path::new(path))?,
    })
}

/// Errors are those that loading would give, memory aside.
pub fn inspect(location: &Location) -> Result<Facts> {
    let file = open(location)?;
    let family = arch::find(&file)?;
    let spec = arch::spec(&file, family)?;
    let tensors = arch::tensors(&file, family, &spec)?;
    Tokenizer::from_weights(&file)?;
    let mut bytes_of = BTreeMap::new();
    let (mut parameters, mut bytes) = (0_u64, 0_u64);
    for part in tensors.iter().flat_map(|tensor| &tensor.parts) {
        let n_bytes = part.data.len() as u64;
        parameters += part.shape.iter().map(|&n| n as u64).product::<u64>();
        bytes += n_bytes;
        *bytes_of.entry(part.dtype.name()).or_insert(0) += n_bytes;
    }
    let dtype = bytes_of.iter().max_by_key(|(_, n_bytes)| **n_bytes).map_or("", |(name, _)| name);
    Ok(Facts {
        name: name(&file, location),
        bytes,
        architecture: spec.architecture.into(),
        parameters,
        dtype: dtype.into(),
        context_length: u32::try_from(spec.context_length).unwrap_or(u32::MAX),
    })
}

fn name(file: &WeightFile, location: &Location) -> String {
    let path = match location {
        Location::BuiltIn => return starter::NAME.into(),
        Location::Path(path) => Path::new(path),
    };
    let own = match file.container() {
        Container::Gguf { .. } => file.metadata().str("general.name").ok().map(str::to_owned),
        Container::Safetensors => None,
    };
    let own = own.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    own.unwrap_or_else(|| path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned())
}
