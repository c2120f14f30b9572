//! How pictures become patches for a tower: its repository's files, or the metadata of a GGUF.

use std::path::Path;

use ::vision::{GgufValue, ImageSettings};
use serde_json::Value as Json;
use weights::{Container, Value, WeightFile};

use crate::error::{EngineError, Result};

/// Bound on the JSON files beside a GGUF; published ones have less than 100 KB.
const MAX_JSON_BYTES: u64 = 4 << 20;

/// Reads the settings for pictures of a tower's file. Where the repository's JSON files lie beside a GGUF of the same
/// family, they are used: a GGUF has no limits of tokens or pixels.
///
/// Errors: `vision.settings`.
pub fn image_settings(file: &WeightFile) -> Result<ImageSettings> {
    match file.container() {
        Container::Gguf { .. } => {
            let settings = ImageSettings::from_gguf(&|key| gguf_value(file, key))?;
            let beside = file.path().parent().and_then(of_folder);
            Ok(beside.filter(|beside| is_same_tower(beside, &settings)).unwrap_or(settings))
        }
        Container::Safetensors => {
            let (preprocessor, processor) = (side_json(file, PREPROCESSOR)?, side_json(file, PROCESSOR)?);
            Ok(from_files(preprocessor.as_ref(), processor.as_ref(), file.metadata().config())?)
        }
    }
}

const PREPROCESSOR: &str = "preprocessor_config.json";
const PROCESSOR: &str = "processor_config.json";
const CONFIG: &str = "config.json";

/// Reads a JSON file that lies beside the weights. `None`: there is none.
fn side_json(file: &WeightFile, name: &str) -> Result<Option<Json>> {
    let read = file.side_file(name).map(serde_json::from_slice).transpose();
    read.map_err(|error| {
        EngineError::new(
            "vision.settings",
            format!("{name} beside {} is not JSON: {error}", file.path().display()),
            "Download the model again, or use another conversion of it.",
        )
    })
}

fn from_files(
    preprocessor: Option<&Json>,
    processor: Option<&Json>,
    config: &Json,
) -> Result<ImageSettings, ::vision::VisionError> {
    ImageSettings::from_json(preprocessor, processor, config)
}

/// Reads the settings of a repository. `None`: the folder holds none, or of no model that sees.
fn of_folder(folder: &Path) -> Option<ImageSettings> {
    let read = |name: &str| -> Option<Json> {
        let bytes = io::read_regular_file(&folder.join(name), MAX_JSON_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    from_files(read(PREPROCESSOR).as_ref(), read(PROCESSOR).as_ref(), &read(CONFIG)?).ok()
}

/// Returns whether both are of one family and one size of patches: a folder may hold several models.
fn is_same_tower(a: &ImageSettings, b: &ImageSettings) -> bool {
    std::mem::discriminant(&a.family) == std::mem::discriminant(&b.family)
        && a.patch_side() == b.patch_side()
        && a.patches_per_token() == b.patches_per_token()
}

fn gguf_value(file: &WeightFile, key: &str) -> Option<GgufValue> {
    let value = file.metadata().get(key)?;
    match &value {
        Value::Array(array) => array.f32s().ok().map(GgufValue::Floats),
        _ => match value.as_str() {
            Some(text) => Some(GgufValue::Text(text.to_owned())),
            None => value.as_u64().map(GgufValue::Integer),
        },
    }
}
