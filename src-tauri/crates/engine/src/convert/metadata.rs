//! Metadata of the new file: copied from a GGUF, or written from a safetensors folder.

use weights::WeightFile;
use weights::write::OwnedValue;

use crate::arch::{Family, GgufNotes};
use crate::error::Result;
use crate::spec::ModelSpec;
use crate::{template, tokenizer};

type MetadataPairs = Vec<(String, OwnedValue)>;

/// Keys about a GGUF's own bytes: parts of a split model, alignment.
const OWN: [&str; 4] = ["split.no", "split.count", "split.tensors.count", "general.alignment"];

/// Returns all pairs of another GGUF, byte for byte.
pub(super) fn carried(file: &WeightFile) -> MetadataPairs {
    let pairs = file.metadata().raw_pairs().filter(|(key, _)| !OWN.contains(key));
    pairs.map(|(key, value)| (key.to_owned(), OwnedValue::Raw(value))).collect()
}

/// Returns the pairs of a folder under its family's keys.
///
/// Errors: `convert.tokenizer`.
pub(super) fn written(
    file: &WeightFile,
    family: Family,
    spec: &ModelSpec,
    notes: &GgufNotes,
) -> Result<MetadataPairs> {
    let arch = family.gguf_name();
    let text = |text: &str| OwnedValue::Str(text.to_owned());
    let mut pairs = vec![
        ("general.architecture".to_owned(), text(arch)),
        ("general.type".to_owned(), text("model")),
        ("general.name".to_owned(), text(&name(file))),
    ];
    pairs.extend(notes.pairs.iter().map(|(key, value)| (format!("{arch}.{key}"), value.clone())));
    pairs.extend(notes.global_pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let n_vocab = u32::try_from(spec.n_vocab).unwrap_or(u32::MAX);
    pairs.push((format!("{arch}.vocab_size"), OwnedValue::U32(n_vocab)));
    pairs.extend(tokenizer::gguf_pairs(file, spec.n_vocab)?);
    let template = template::source_of(file)?;
    pairs.extend(template.map(|source| ("tokenizer.chat_template".to_owned(), OwnedValue::Str(source))));
    Ok(pairs)
}

/// Returns the model's display name: from its config, else its folder.
pub(super) fn name(file: &WeightFile) -> String {
    let own = file.metadata().config()["_name_or_path"].as_str();
    let own = own.and_then(|path| path.rsplit('/').next()).filter(|name| !name.trim().is_empty());
    let folder = || file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    own.map_or_else(folder, str::to_owned)
}
