//! The reference data: paths, arrays and hashes.

use std::path::{Path, PathBuf};

use half::f16;
use serde_json::Value;
use sha2::{Digest, Sha256};
use vision::{ImageSettings, Picture, PictureSize};

/// Every family directory of the reference.
pub const FAMILIES: [&str; 9] =
    ["gemma3", "qwen3_5", "qwen3_vl", "gemma4", "gemma4_e", "mistral3", "lfm2_vl", "smolvlm", "idefics3"];

/// The project's own small set.
pub fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/vision")
}

/// The full set, if `INGLENOOK_REFERENCE` names one.
pub fn full() -> Option<PathBuf> {
    let dir = PathBuf::from(std::env::var_os("INGLENOOK_REFERENCE")?).join("vision");
    dir.is_dir().then_some(dir)
}

/// A JSON file of the small set.
pub fn json(path: impl AsRef<Path>) -> Value {
    optional_json(&path).unwrap_or_else(|| panic!("no {}", path.as_ref().display()))
}

/// A JSON file of the small set, if it is there.
pub fn optional_json(path: impl AsRef<Path>) -> Option<Value> {
    let bytes = std::fs::read(small().join(path)).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

/// The expected hash of an array.
pub fn expected_hash(name: &str) -> String {
    json("hashes.json")[name].as_str().unwrap_or_else(|| panic!("no hash of {name}")).to_owned()
}

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The values as float16, as the reference stores pixels.
pub fn as_f16_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()
}

/// Shape and bytes of a NumPy file of format version 1.
pub fn npy(path: &Path) -> (Vec<usize>, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let head = String::from_utf8_lossy(&bytes[10..start]).into_owned();
    assert!(head.contains("'fortran_order': False"), "{head}");
    let shape = head.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    (shape, bytes[start..].to_vec())
}

/// A picture stored as uint8 `(height, width, 3)`.
pub fn npy_picture(path: &Path) -> Picture {
    let (shape, bytes) = npy(path);
    Picture::new(PictureSize::new(shape[1], shape[0]), bytes).unwrap()
}

/// Width and height of a JSON pair.
pub fn size(pair: &Value) -> PictureSize {
    PictureSize::new(pair[0].as_u64().unwrap() as usize, pair[1].as_u64().unwrap() as usize)
}

/// The JSON files of a family's repository.
pub struct Repository {
    /// `preprocessor_config.json`.
    pub preprocessor: Option<Value>,
    /// `processor_config.json`.
    pub processor: Option<Value>,
    /// `config.json`.
    pub config: Value,
}

impl Repository {
    /// The files of a family of the reference.
    pub fn open(family: &str) -> Self {
        Self {
            preprocessor: optional_json(format!("{family}/preprocessor_config.json")),
            processor: optional_json(format!("{family}/processor_config.json")),
            config: json(format!("{family}/config.json")),
        }
    }

    /// The settings of these files.
    pub fn settings(&self) -> ImageSettings {
        ImageSettings::from_json(self.preprocessor.as_ref(), self.processor.as_ref(), &self.config).unwrap()
    }
}
