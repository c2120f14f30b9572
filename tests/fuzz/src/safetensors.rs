//! Safetensors: a bare file, or the files of a folder as sections. A section `header` is the JSON of `model.safetensors`,
//! whose data are then zeros.

use serde_json::Value;
use test_support::TempDir;
use weights::WeightFile;

use crate::sections::Sections;
use crate::{FuzzTarget, model_file};

/// Reads safetensors files, folders and what models they hold.
pub static SAFETENSORS: FuzzTarget = FuzzTarget { name: "safetensors", read, max_bytes: 128 << 20 };

const WEIGHTS: &str = "model.safetensors";

/// Files of a folder that are read.
const FILES: &[&str] = &[
    WEIGHTS,
    "model.safetensors.index.json",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "preprocessor_config.json",
    "processor_config.json",
];

/// Data that a header may announce and get.
const MAX_DATA_BYTES: u64 = 1 << 20;

fn read(input: &[u8]) {
    let folder = TempDir::new();
    let write = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).expect("the temporary folder can be written");
    };
    let sections = Sections::of(input);
    if sections.named().next().is_none() {
        write(WEIGHTS, input);
        if let Ok(file) = WeightFile::open(&folder.path().join(WEIGHTS)) {
            model_file::read(&file);
        }
        return;
    }
    for (name, content) in sections.named().filter(|(name, _)| FILES.contains(name)) {
        write(name, content);
    }
    if let Some(header) = sections.get("header") {
        write(WEIGHTS, &with_data(header));
    }
    if let Ok(file) = WeightFile::open(folder.path()) {
        model_file::read(&file);
    }
}

/// A file of this header, with as many bytes as its tensors claim.
fn with_data(header: &[u8]) -> Vec<u8> {
    let parsed: Value = serde_json::from_slice(header).unwrap_or_default();
    let tensors = parsed.as_object().into_iter().flat_map(|tensors| tensors.values());
    let end = tensors.filter_map(|tensor| tensor["data_offsets"][1].as_u64()).max().unwrap_or(0);
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header);
    file.resize(file.len() + end.min(MAX_DATA_BYTES) as usize, 0);
    file
}
