//! Ollama's view of the library: the models that are there, those in memory, and one of them in detail.

use app::App;
use contract::Result;
use contract::types::{ModelEntry, ModelState, Thinking};
use serde_json::{Value, json};

use super::{ModelExpiries, time};
use crate::model_time::modified_ms;

/// What stands for "until the program ends" where a time is expected.
const NO_EXPIRY: &str = "9999-12-31T23:59:59Z";

/// `/api/tags`.
pub fn tags(app: &App) -> Result<Value> {
    let models: Vec<Value> = own_models(app)?.iter().map(model_value).collect();
    Ok(json!({ "models": models }))
}

/// `/api/ps`: the models in memory.
pub fn ps(app: &App, expiries: &ModelExpiries) -> Result<Value> {
    let loaded = own_models(app)?.into_iter().filter(|entry| matches!(entry.state, ModelState::Ready));
    let models: Vec<Value> = loaded
        .map(|entry| {
            let mut value = model_value(&entry);
            value["expires_at"] = expiries.at_ms(&entry.id).map_or(NO_EXPIRY.to_owned(), time).into();
            value["size_vram"] = gpu_bytes(&entry).into();
            value["context_length"] = entry.context_length.into();
            value
        })
        .collect();
    Ok(json!({ "models": models }))
}

/// `/api/show`.
pub fn show(app: &App, name: &str) -> Result<Value> {
    let id = app.model_for_request(Some(name))?.id;
    let entry = app.model_get(&id)?;
    let template = match entry.embeds {
        true => String::new(),
        false => app.vocabulary_description(&id)?.template,
    };
    let mut capabilities = vec![if entry.embeds { "embedding" } else { "completion" }];
    if let Some(skills) = entry.skills {
        capabilities.extend(skills.tools.then_some("tools"));
        capabilities.extend((skills.thinking != Thinking::Never).then_some("thinking"));
        capabilities.extend(skills.images.then_some("vision"));
    }
    let key = |name: &str| format!("{}.{name}", entry.architecture);
    let mut info = serde_json::Map::new();
    info.insert("general.architecture".into(), json!(entry.architecture));
    info.insert("general.basename".into(), json!(entry.name));
    info.insert("general.parameter_count".into(), json!(entry.parameters));
    info.insert(key("context_length"), json!(entry.context_length));
    Ok(json!({
        "modelfile": format!("FROM {}\n", entry.path.as_deref().unwrap_or(&entry.id)),
        "parameters": "", "template": template, "license": "",
        "details": details(&entry), "model_info": info, "capabilities": capabilities,
        "modified_at": modified_at(&entry),
    }))
}

/// Bytes of a model that a GPU holds, by the estimate of its placement.
fn gpu_bytes(entry: &ModelEntry) -> u64 {
    let gpu = entry.fit.as_ref().and_then(|fit| fit.card.as_ref());
    gpu.filter(|gpu| gpu.layers_asked != Some(0)).and_then(|gpu| gpu.on_card_bytes).unwrap_or(0)
}

/// Time of the last change, as Ollama writes it.
fn modified_at(entry: &ModelEntry) -> String {
    time(modified_ms(entry.path.as_deref()))
}

/// Bytes of the model's files; those of the starter model are in the program.
fn size_of(entry: &ModelEntry) -> u64 {
    if entry.disk_bytes > 0 { entry.disk_bytes } else { entry.bytes }
}

/// Models of other servers are not passed on, and assistants only draft for a model.
fn own_models(app: &App) -> Result<Vec<ModelEntry>> {
    let is_served = |entry: &ModelEntry| entry.remote.is_none() && !entry.only_drafts;
    Ok(app.models_list()?.into_iter().filter(is_served).collect())
}

fn model_value(entry: &ModelEntry) -> Value {
    // Ollama's digest is that of its manifest; ours stands for the name, so that equal names compare as equal.
    let digest = documents::sha256(&entry.id);
    json!({
        "name": entry.id, "model": entry.id, "modified_at": modified_at(entry), "size": size_of(entry), "digest": digest,
        "details": details(entry),
    })
}

fn details(entry: &ModelEntry) -> Value {
    let format = match entry.path.as_deref() {
        Some(path) if !path.ends_with(".gguf") => "safetensors",
        Some(_) | None => "gguf",
    };
    json!({
        "parent_model": "", "format": format, "family": entry.architecture, "families": [entry.architecture],
        "parameter_size": size(entry.parameters), "quantization_level": entry.dtype,
    })
}

/// A number of parameters as Ollama writes it: `7.6B`, `135.0M`, `260.0K`.
fn size(parameters: u64) -> String {
    let n = parameters as f64;
    match parameters {
        1_000_000_000.. => format!("{:.1}B", n / 1e9),
        1_000_000.. => format!("{:.1}M", n / 1e6),
        _ => format!("{:.1}K", n / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (n, expected) in
            [(7_615_616_512, "7.6B"), (134_515_008, "134.5M"), (259_904, "259.9K"), (0, "0.0K")]
        {
            assert_eq!(size(n), expected);
        }
    }
}
