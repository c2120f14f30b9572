//! Safetensors folders as published: config.json, tokenizer files, and one or several weight files with an index.
//!
//! Guarantees that index and files agree, and that the index names no file outside the folder.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::config_json;
use crate::error::{FaultKind, FaultLocation, WeightsError, shown};
use crate::metadata::Metadata;
use crate::mmap::SharedBytes;
use crate::safetensors;
use crate::source_file::{file_name, map};
use crate::tensor::{Container, FilePart, TensorInfo};
use crate::weight_file::WeightFile;

/// Files next to the weights that other crates read.
const SIDE_FILES: [&str; 8] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "tokenizer.model",
    "preprocessor_config.json",
    "processor_config.json",
];
const MODEL_FILE: &str = "model.safetensors";
const INDEX_FILE: &str = "model.safetensors.index.json";
const CONFIG_FILE: &str = "config.json";
const EXTENSION: &str = "safetensors";
/// Published files have less than 100 KB; parsing takes several times the length in memory.
const MAX_CONFIG_BYTES: usize = 4 << 20;
/// The largest published index has 10 MB.
const MAX_INDEX_BYTES: usize = 32 << 20;
/// The largest published models have fewer than 200 shards.
const MAX_SHARDS: usize = 4096;
const MAX_TENSORS: usize = 1 << 18;

/// Whether the folder holds weights under one of the usual names.
pub fn is_model_folder(folder: &Path) -> bool {
    folder.join(MODEL_FILE).is_file()
        || folder.join(INDEX_FILE).is_file()
        || only_safetensors_file(folder).is_some()
}

/// Opens a folder. Errors if it has no weights or they are invalid.
pub fn open(folder: &Path) -> Result<WeightFile, WeightsError> {
    let name = file_name(folder);
    let single = Some(folder.join(MODEL_FILE)).filter(|path| path.is_file());
    let (parts, tensors) = match single {
        Some(path) => one(&path, &format!("{name}/{MODEL_FILE}"))?,
        None if folder.join(INDEX_FILE).is_file() => sharded(folder)?,
        None => match only_safetensors_file(folder) {
            Some(path) => one(&path, &format!("{name}/{}", file_name(&path)))?,
            None => {
                let cause = format!("a folder without {MODEL_FILE} or {INDEX_FILE}");
                return Err(WeightsError::new(name, FaultKind::NotAModel, cause));
            }
        },
    };
    assemble(folder, Some(folder), parts, tensors)
}

/// Opens a bare `.safetensors` file; with its folder's files if it has the usual name.
pub fn open_file(path: &Path, name: &str, bytes: SharedBytes) -> Result<WeightFile, WeightsError> {
    let folder = path.parent().filter(|f| name == MODEL_FILE && f.join(CONFIG_FILE).is_file());
    let (parts, tensors) = parsed(name, bytes)?;
    assemble(path, folder, parts, tensors)
}

fn assemble(
    path: &Path,
    folder: Option<&Path>,
    parts: Vec<FilePart>,
    tensors: Vec<TensorInfo>,
) -> Result<WeightFile, WeightsError> {
    let config = folder.map_or(Ok(serde_json::Value::Null), read_config)?;
    let metadata = Metadata::safetensors(&parts[0].name, config);
    let file = WeightFile::assemble(path.to_owned(), Container::Safetensors, metadata, parts, tensors)?;
    let mut side_files = Vec::new();
    for side in SIDE_FILES {
        let Some(path) = folder.map(|f| f.join(side)).filter(|p| p.is_file()) else { continue };
        side_files.push((side, map(&path, side)?));
    }
    Ok(file.with_side_files(side_files))
}

/// The only `.safetensors` file of a folder with a config.json.
fn only_safetensors_file(folder: &Path) -> Option<std::path::PathBuf> {
    if !folder.join(CONFIG_FILE).is_file() {
        return None;
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found = paths.filter(|path| path.extension().is_some_and(|e| e == EXTENSION) && path.is_file());
    found.next().filter(|_| found.next().is_none())
}

fn one(path: &Path, name: &str) -> Result<(Vec<FilePart>, Vec<TensorInfo>), WeightsError> {
    parsed(name, map(path, name)?)
}

fn parsed(name: &str, bytes: SharedBytes) -> Result<(Vec<FilePart>, Vec<TensorInfo>), WeightsError> {
    let safetensors::ParsedSafetensors { tensors, data_start } = safetensors::parse(name, &bytes)?;
    Ok((vec![FilePart { name: name.to_owned(), bytes, data_start }], tensors))
}

/// Opens all files of the index. They must contain exactly the tensors that it lists, in the files that it names.
fn sharded(folder: &Path) -> Result<(Vec<FilePart>, Vec<TensorInfo>), WeightsError> {
    let ShardIndex { mut shard_of, shards } = read_index(folder)?;
    let (mut parts, mut tensors) = (Vec::with_capacity(shards.len()), Vec::with_capacity(shard_of.len()));
    for (number, name) in shards.iter().enumerate() {
        let path = folder.join(name);
        if !path.is_file() {
            let cause = format!("is missing: one of the {} files that {INDEX_FILE} names", shards.len());
            let advice = format!("Download {name} into the folder of the others.");
            return Err(WeightsError::new(name.clone(), FaultKind::Part, cause).advise(advice));
        }
        let (part, found) = one(&path, name)?;
        for tensor in found {
            let misplaced = match shard_of.get(&tensor.name) {
                Some(&shard) if shard == number => None,
                Some(&shard) => Some(format!("belongs into {} according to {INDEX_FILE}", shards[shard])),
                None => Some(format!("is not in {INDEX_FILE}, or occurs in several files")),
            };
            if let Some(cause) = misplaced {
                let error = WeightsError::new(name.clone(), FaultKind::Part, cause);
                return Err(error.at(FaultLocation::Tensor(tensor.name)));
            }
            shard_of.remove(&tensor.name);
            tensors.push(TensorInfo { part: number, ..tensor });
        }
        parts.extend(part);
    }
    if let Some((tensor, &shard)) = shard_of.iter().min() {
        let cause = format!("is not in {}, where it must be", shards[shard]);
        let error = WeightsError::new(INDEX_FILE, FaultKind::Part, cause);
        return Err(error.at(FaultLocation::Tensor(tensor.clone())));
    }
    Ok((parts, tensors))
}

/// Contents of model.safetensors.index.json. Its `metadata` is ignored: published files count bytes differently, and each
/// shard's header determines its length.
#[derive(Default)]
struct ShardIndex {
    /// Index of `shards` by tensor.
    shard_of: HashMap<String, usize>,
    /// File names in alphabetical order, which is their numbering.
    shards: Vec<String>,
}

fn read_index(folder: &Path) -> Result<ShardIndex, WeightsError> {
    let bytes = map(&folder.join(INDEX_FILE), INDEX_FILE)?;
    let error = |kind, cause: String| WeightsError::new(INDEX_FILE, kind, cause);
    if bytes.len() > MAX_INDEX_BYTES {
        let cause = format!("has {} bytes; the limit is {MAX_INDEX_BYTES}", bytes.len());
        return Err(error(FaultKind::Limit, cause));
    }
    let mut index = None;
    let mut json = serde_json::Deserializer::from_slice(&bytes);
    IndexSeed { index: &mut index }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|e| error(FaultKind::Malformed, format!("is wrong: {e}")))?;
    let mut index = index.ok_or_else(|| error(FaultKind::Malformed, "weight_map is missing".into()))?;
    if index.shard_of.is_empty() {
        return Err(error(FaultKind::Malformed, "weight_map names no tensor".into()));
    }
    sort(&mut index);
    Ok(index)
}

fn sort(index: &mut ShardIndex) {
    let mut order: Vec<usize> = (0..index.shards.len()).collect();
    order.sort_by(|&a, &b| index.shards[a].cmp(&index.shards[b]));
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    index.shard_of.values_mut().for_each(|shard| *shard = place[*shard]);
    index.shards.sort();
}

/// Why a file name from the index is refused. Only plain file names inside the folder are allowed.
fn refusal_of_name(name: &str) -> Option<&'static str> {
    /// Limit of common file systems.
    const MAX_NAME_BYTES: usize = 255;
    let is_plain = !name.contains(['/', '\\', ':', '\0']) && !name.starts_with('.');
    match name {
        _ if !is_plain => Some("is no plain file name of this folder"),
        _ if name.len() > MAX_NAME_BYTES => Some("is too long for a file name"),
        _ if !name.ends_with(".safetensors") => Some("is no .safetensors file"),
        _ => None,
    }
}

/// The index file: `weight_map` exactly once; other fields are ignored.
struct IndexSeed<'i> {
    index: &'i mut Option<ShardIndex>,
}

impl<'de> DeserializeSeed<'de> for IndexSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for IndexSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map with weight_map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<String>()? {
            if field != "weight_map" {
                map.next_value::<IgnoredAny>()?;
            } else if self.index.replace(map.next_value_seed(WeightMapSeed)?).is_some() {
                return Err(A::Error::custom("weight_map stands twice"));
            }
        }
        Ok(())
    }
}

/// Map of tensor names to file names, each tensor once.
struct WeightMapSeed;

impl<'de> DeserializeSeed<'de> for WeightMapSeed {
    type Value = ShardIndex;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ShardIndex, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for WeightMapSeed {
    type Value = ShardIndex;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of tensor names to file names as weight_map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ShardIndex, A::Error> {
        let mut index = ShardIndex::default();
        let mut known: HashMap<String, usize> = HashMap::new();
        while let Some((tensor, file)) = map.next_entry::<String, String>()? {
            let shard = match known.get(&file) {
                Some(&shard) => shard,
                None => {
                    if let Some(why) = refusal_of_name(&file) {
                        return Err(A::Error::custom(format!("\"{}\" {why}", shown(&file))));
                    }
                    if known.len() == MAX_SHARDS {
                        return Err(A::Error::custom(format!("more than {MAX_SHARDS} files")));
                    }
                    index.shards.push(file.clone());
                    known.insert(file, known.len());
                    known.len() - 1
                }
            };
            if index.shard_of.len() == MAX_TENSORS {
                return Err(A::Error::custom(format!("more than {MAX_TENSORS} tensors")));
            }
            if let Some(_before) = index.shard_of.insert(tensor.clone(), shard) {
                return Err(A::Error::custom(format!("tensor \"{}\" stands twice", shown(&tensor))));
            }
        }
        Ok(index)
    }
}

/// Reads config.json, which must be a JSON object.
fn read_config(folder: &Path) -> Result<serde_json::Value, WeightsError> {
    let path = folder.join(CONFIG_FILE);
    let error = |kind, cause: String| WeightsError::new(CONFIG_FILE, kind, cause);
    if !path.is_file() {
        return Err(error(FaultKind::NotAModel, "is missing next to the weights".into()));
    }
    let bytes = map(&path, CONFIG_FILE)?;
    if bytes.len() > MAX_CONFIG_BYTES {
        let cause = format!("has {} bytes; the limit is {MAX_CONFIG_BYTES}", bytes.len());
        return Err(error(FaultKind::Limit, cause));
    }
    let config = config_json::parse(&bytes)
        .map_err(|e| error(FaultKind::Malformed, format!("is not valid JSON: {e}")))?;
    if !config.is_object() {
        return Err(error(FaultKind::Malformed, "is not a JSON object".into()));
    }
    Ok(config)
}
