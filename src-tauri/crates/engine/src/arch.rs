//! Families of models: how each names its hyperparameters and tensors, in both containers.
//!
//! Architecture names are compared here and nowhere else. A family is a file beside this one and an entry in
//! `ARCHITECTURES`; it has no forward code.

use std::collections::HashMap;

use serde_json::Value;
use weights::{Codec, Container, TensorView, WeightFile};

use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::{EmbeddingPrefixes, ModelSpec, Role, TensorSpec};

mod chat;
mod embeds;
mod hparams;
mod keys;
mod names;
mod rope;
mod stored_tensors;
mod tensor_names;
#[cfg(test)]
mod tests;

pub use chat::built_in_template;
pub use hparams::{ContextFit, GgufNotes, HParams};
pub use stored_tensors::{StoredTensor, stored_tensors};
pub(crate) use tensor_names::rows_by_name;
pub use tensor_names::{TensorForm, TensorName, TensorPart};

/// A family. Implemented by the files beside this one.
pub trait Architecture: Sync {
    /// The name in a GGUF's `general.architecture`.
    fn gguf_name(&self) -> &'static str;

    /// The names in config.json's `model_type`.
    fn hf_names(&self) -> &'static [&'static str];

    /// Whether a config with one of those names is of this family; the first that says so counts.
    fn matches_hf_config(&self, _config: &Value) -> bool {
        true
    }

    /// The model's structure, every number checked.
    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec>;

    /// Where a role's tensor may lie; the first place that a file has counts.
    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        names::plain(container, role)
    }

    /// What Hugging Face's names have before a layer's number.
    fn hf_layers(&self) -> &'static str {
        "layers"
    }

    /// What published configs leave out because transformers knows it.
    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[]
    }

    /// What its models that embed were trained to have before texts.
    fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        EmbeddingPrefixes::default()
    }

    /// A quantisation method of config.json that the family's published files use and that `places` reads.
    fn hf_quantization(&self) -> Option<&'static str> {
        None
    }
}

macro_rules! families {
    ($($module:ident: $($family:ident),+;)*) => {
        $(mod $module;)*

        /// Every family that runs.
        pub static ARCHITECTURES: &[Family] = &[$($(&$module::$family),+),*];
    };
}

// A file and a line for each; of two with one name in GGUF files the first is meant there.
families! {
    llama: Llama;
    mistral: Mistral;
    ministral3: Ministral3;
    smollm3: SmolLm3;
    gemma_embedding: GemmaEmbedding;
    gemma: Gemma, Gemma2, Gemma3;
    gemma4: Gemma4;
    qwen: Qwen2, Qwen3, Qwen3Moe;
    qwen35: Qwen35, Qwen35Moe;
    phi3: Phi3;
    gpt2: Gpt2;
    bert: Bert, NomicBert;
    gpt_oss: GptOss;
    lfm2: Lfm2;
}

/// A family found for a file.
pub type Family = &'static dyn Architecture;

/// What of a file plays a role: one tensor, or of an expert matrix one for each expert.
pub struct LocatedTensor {
    pub role: Role,
    pub layer: Option<usize>,
    pub parts: Vec<TensorPart>,
}

/// The family a file belongs to. Error `model.architecture_unknown`, naming those that run.
pub fn find(file: &WeightFile) -> Result<Family> {
    let (name, family) = match file.container() {
        Container::Gguf { .. } => {
            let name = file.metadata().str("general.architecture")?;
            (name, ARCHITECTURES.iter().find(|a| a.gguf_name() == name))
        }
        Container::Safetensors => {
            let config = file.metadata().config();
            // of a model that also sees or hears, the language part
            let text = config.get("text_config").filter(|text| text.get("model_type").is_some());
            let config = text.unwrap_or(config);
            let Some(name) = config.get("model_type").and_then(Value::as_str) else {
                return Err(EngineError::new(
                    "model.config_missing",
                    "there is no config.json with a model_type beside the weights",
                    "Open the folder that holds model.safetensors, config.json and tokenizer.json.",
                ));
            };
            (name, ARCHITECTURES.iter().find(|a| a.hf_names().contains(&name) && a.matches_hf_config(config)))
        }
    };
    family.copied().ok_or_else(|| unknown(name))
}

fn unknown(architecture: &str) -> EngineError {
    let mut known: Vec<&str> = ARCHITECTURES.iter().map(|a| a.gguf_name()).collect();
    known.dedup(); // llama's name is Mistral's too
    EngineError::new(
        "model.architecture_unknown",
        format!("the architecture \"{architecture}\" is not one that Inglenook runs"),
        format!("These run: {}.", known.join(", ")),
    )
}

/// The name of a tensor in GGUF files of a family. Error `model.architecture_unknown`.
pub fn gguf_tensor_name(architecture: &str, role: Role, layer: Option<usize>) -> Result<String> {
    let family =
        ARCHITECTURES.iter().find(|a| a.gguf_name() == architecture).ok_or_else(|| unknown(architecture))?;
    Ok(tensor_names::expected_name(Container::Gguf { version: 3 }, *family, role, layer))
}

/// The structure of a file's model. Errors: `model.hyperparameter`, naming the key; `model.feature_unsupported`.
pub fn spec(file: &WeightFile, family: Family) -> Result<ModelSpec> {
    spec_for(file, family, ContextFit::default())
}

/// As `spec`, for a context and a stretch of it.
pub fn spec_for(file: &WeightFile, family: Family, fit: ContextFit) -> Result<ModelSpec> {
    let hparams = HParams::new(file, family, fit);
    if let Some(config) = hparams.config()
        && let Some(quantization) = config.get("quantization_config").filter(|q| !q.is_null())
        && (family.hf_quantization().is_none()
            || quantization.get("quant_method").and_then(Value::as_str) != family.hf_quantization())
    {
        return Err(hparams.unsupported("a quantisation of its own (quantization_config)"));
    }
    embeds::complete(&hparams, family)
}

/// As `spec`, with what a GGUF would say of the model where the file is no GGUF.
pub fn spec_and_notes(file: &WeightFile, family: Family) -> Result<(ModelSpec, GgufNotes)> {
    spec(file, family)?;
    let hparams = HParams::new(file, family, ContextFit::default());
    let spec = embeds::complete(&hparams, family)?;
    Ok((spec, hparams.into_notes()))
}

/// Every tensor of the spec, found in the file, with its shape and dtype checked; those that must be put together are,
/// on as many threads as the machine has cores.
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.dtype_unsupported`, naming the tensor.
pub fn tensors(file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<Vec<LocatedTensor>> {
    let wanted = spec.tensors();
    let rows: HashMap<(Role, Option<usize>), usize> = wanted
        .iter()
        .map(|(role, layer, shape)| ((*role, *layer), shape[usize::from(role.is_expert())]))
        .collect();
    let place = |(role, layer, shape): &TensorSpec| {
        let rows_of = |other: Role| rows.get(&(other, *layer)).copied();
        let parts = tensor_names::parts(file, family, (*role, *layer), shape, &rows_of)?;
        Ok(LocatedTensor { role: *role, layer: *layer, parts })
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
    let shares = wanted.chunks(wanted.len().div_ceil(n_threads.max(1)).max(1));
    std::thread::scope(|scope| {
        let place = &place;
        let running: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(place).collect::<Result<Vec<_>>>()))
            .collect();
        let mut all = Vec::with_capacity(wanted.len());
        for share in running {
            match share.join() {
                Ok(placed) => all.extend(placed?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}

fn tensor_missing(name: &str) -> EngineError {
    EngineError::new("model.tensor_missing", format!("the tensor {name} is missing"), DAMAGED)
}

/// Dimensions of 1 don't count: containers differ in them.
fn check_shape(view: &TensorView<'_>, expected: &[usize]) -> Result<()> {
    let long = |shape: &[usize]| shape.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    if view.shape == expected || long(view.shape) == long(expected) {
        return Ok(());
    }
    let message = format!("{} has shape {:?}, the model needs {expected:?}", view.name, view.shape);
    Err(EngineError::new("model.tensor_shape", message, DAMAGED))
}

fn codec(view: &TensorView<'_>) -> Result<&'static Codec> {
    view.dtype.codec().ok_or_else(|| {
        EngineError::new(
            "model.dtype_unsupported",
            format!("{} is stored as {}, which Inglenook cannot compute with", view.name, view.dtype.name()),
            "Get the same model in another format: Q4_K_M for little memory, Q8_0 for the least loss.",
        )
    })
}
