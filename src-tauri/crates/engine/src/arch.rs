//! Model families: how each names its hyperparameters and tensors, in GGUF and in safetensors.
//!
//! Architecture names are compared here and nowhere else. A family is one file beside this one and an entry in
//! `ARCHITECTURES`; it has no forward code.

use std::collections::HashMap;

use serde_json::Value;
use weights::{Codec, Container, TensorView, WeightFile};

use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::{DraftBlock, EmbeddingPrefixes, KvSource, ModelSpec, Role, TensorSpec};

mod assistant;
mod biased_router;
mod chat;
mod embeds;
mod fp8;
pub(crate) mod hparams;
mod keys;
mod latent;
mod names;
pub(crate) mod numbers;
mod rope;
mod rope_sections;
mod ssm;
mod stored_tensors;
mod tensor_names;
#[cfg(test)]
mod tests;

pub(crate) use assistant::{assistant_tensors, cluster_tokens};
pub use assistant::{drafts_for, is_assistant, only_drafts};
pub use chat::built_in_template;
pub use hparams::{ContextFit, GgufNotes, HParams};
pub use rope_sections::RopeSections;
pub use stored_tensors::{StoredTensor, stored_tensors};
pub use tensor_names::{TensorForm, TensorName, TensorPart};
pub(crate) use tensor_names::{extract, fits, rows_by_name};

/// A model family, implemented by the files beside this one.
pub trait Architecture: Sync {
    /// Returns the name in a GGUF's `general.architecture`.
    fn gguf_name(&self) -> &'static str;

    /// Returns the names in config.json's `model_type`.
    fn hf_names(&self) -> &'static [&'static str];

    /// Returns whether a config with one of those names belongs to this family. The first match wins.
    fn matches_hf_config(&self, _config: &Value) -> bool {
        true
    }

    /// Reads the model's structure, with every number checked.
    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec>;

    /// Reads the structure of the file's draft block. `None`: it has none that the family knows.
    fn draft_block(&self, _hparams: &HParams<'_>, _spec: &ModelSpec) -> Result<Option<DraftBlock>> {
        Ok(None)
    }

    /// Returns the tensors that may hold a role. The first that a file has wins.
    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        names::plain(container, role)
    }

    /// Returns what Hugging Face's names have before a layer's number.
    fn hf_layers(&self) -> &'static str {
        "layers"
    }

    /// Returns values that published configs omit because transformers knows them.
    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[]
    }

    /// Returns the prefixes that the family's embedding models were trained with.
    fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        EmbeddingPrefixes::default()
    }

    /// Returns a quantization method of config.json that the family's published files use and that `tensor_names` can
    /// read.
    fn hf_quantization(&self) -> Option<&'static str> {
        None
    }

    /// Returns the GGUF name of the family that the family's models draft for, where they do nothing else.
    fn drafts_for(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether the family's models only draft for others.
    fn only_drafts(&self) -> bool {
        self.drafts_for().is_some()
    }

    /// Returns whether the family can be fine-tuned.
    fn is_trainable(&self) -> bool {
        false
    }
}

macro_rules! families {
    ($($module:ident: $($family:ident),+;)*) => {
        $(mod $module;)*

        /// Every supported family.
        pub static ARCHITECTURES: &[Family] = &[$($(&$module::$family),+),*];
    };
}

// One line per file. Of two families with the same GGUF name the first is used for GGUF.
families! {
    llama: Llama;
    mistral: Mistral;
    ministral3: Ministral3;
    smollm3: SmolLm3;
    gemma_embedding: GemmaEmbedding;
    gemma: Gemma, Gemma2, Gemma3;
    gemma3n: Gemma3n;
    gemma4: Gemma4;
    gemma4_assistant: Gemma4Assistant;
    qwen: Qwen2, Qwen3, Qwen3Vl, Qwen3VlMoe, Qwen3Moe;
    qwen35: Qwen35, Qwen35Moe;
    phi3: Phi3;
    gpt2: Gpt2;
    bert: Bert, NomicBert, XlmRoberta;
    gpt_oss: GptOss;
    lfm2: Lfm2, Lfm2Moe;
    granite: Granite, GraniteMoe;
    olmo: Olmo2, Olmo3;
    exaone4: Exaone4;
    seed_oss: SeedOss;
    ernie: Ernie, ErnieMoe;
    hunyuan: HunyuanDense, HunyuanMoe;
    cohere2: Cohere2;
    glm4_moe: Glm4Moe;
    dots1: Dots1;
    arcee: Arcee;
    apertus: Apertus;
    starcoder2: Starcoder2;
    stablelm: StableLm;
    phimoe: PhiMoe;
    qwen3_next: Qwen3Next;
    mamba2: Mamba2;
    nemotron_h: NemotronH, NemotronHMoe;
    granite_hybrid: GraniteHybrid;
    bamba: Bamba;
    falcon_h1: FalconH1;
    deepseek: DeepSeek;
    minicpm3: MiniCpm3;
}

/// The family of a file.
pub type Family = &'static dyn Architecture;

/// A role's tensors in a file: one, or for an expert matrix one per expert.
pub struct LocatedTensor {
    /// What the tensors are for.
    pub role: Role,
    /// Layer index; `None` outside the layers.
    pub layer: Option<usize>,
    /// One tensor, or one per expert.
    pub parts: Vec<TensorPart>,
}

/// Finds the family of a file.
///
/// Errors: `model.architecture_unknown`, naming those that run; `model.config_missing`.
pub fn find(file: &WeightFile) -> Result<Family> {
    let (name, family) = match file.container() {
        Container::Gguf { .. } => {
            let name = file.metadata().str("general.architecture")?;
            (name, ARCHITECTURES.iter().find(|a| a.gguf_name() == name))
        }
        Container::Safetensors => {
            let config = file.metadata().config();
            let whole = config.get("model_type").and_then(Value::as_str);
            // Its language part is named like a model that answers.
            if let Some(drafts) = ARCHITECTURES
                .iter()
                .find(|a| a.only_drafts() && whole.is_some_and(|name| a.hf_names().contains(&name)))
            {
                return Ok(*drafts);
            }
            // The language part of a multimodal model.
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
    let mut known: Vec<&str> =
        ARCHITECTURES.iter().filter(|a| !a.only_drafts()).map(|a| a.gguf_name()).collect();
    known.dedup(); // Llama's name is Mistral's too, OLMo 2's is OLMo 3's
    EngineError::new(
        "model.architecture_unknown",
        format!("the architecture \"{architecture}\" is not one that Inglenook runs"),
        format!("Choose one of these families: {}.", known.join(", ")),
    )
}

/// Returns the name of a tensor in a family's GGUF files.
///
/// Errors: `model.architecture_unknown`.
pub fn gguf_tensor_name(architecture: &str, role: Role, layer: Option<usize>) -> Result<String> {
    let family =
        ARCHITECTURES.iter().find(|a| a.gguf_name() == architecture).ok_or_else(|| unknown(architecture))?;
    Ok(tensor_names::expected_name(Container::Gguf { version: 3 }, *family, role, layer))
}

/// Reads the structure of a file's model.
///
/// Errors: `model.hyperparameter`, naming the key; `model.feature_unsupported`.
pub fn spec(file: &WeightFile, family: Family) -> Result<ModelSpec> {
    spec_for(file, family, ContextFit::default())
}

/// Reads the structure as `spec` does, for a context and its extension.
pub fn spec_for(file: &WeightFile, family: Family, fit: ContextFit) -> Result<ModelSpec> {
    let hparams = HParams::new(file, family, fit);
    if let Some(config) = hparams.config()
        && let Some(quantization) = config.get("quantization_config").filter(|q| !q.is_null())
        && !fp8::is_read(quantization)
        && (family.hf_quantization().is_none()
            || quantization.get("quant_method").and_then(Value::as_str) != family.hf_quantization())
    {
        return Err(hparams.unsupported("a custom quantization (quantization_config)"));
    }
    embeds::complete(&hparams, family)
}

/// Reads the structure of a file's draft block, for a model whose structure has been read. `None`: it has none.
///
/// Errors: `model.hyperparameter`.
pub fn draft_block(file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<Option<DraftBlock>> {
    family.draft_block(&HParams::new(file, family, ContextFit::default()), spec)
}

/// Reads the structure as `draft_block` does.
///
/// Errors: `model.hyperparameter`; `model.no_draft_block` if the file has none.
pub fn required_draft_block(file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<DraftBlock> {
    draft_block(file, family, spec)?.ok_or_else(|| {
        EngineError::new(
            "model.no_draft_block",
            format!("this {} model has no draft block", spec.architecture),
            "Choose a file that holds one (tensors named mtp.* or nextn.*), such as Qwen 3.5 converted with it.",
        )
    })
}

/// Reads the structure as `spec` does, with the draft block and with what a GGUF would say about a safetensors model.
pub fn spec_and_notes(file: &WeightFile, family: Family) -> Result<(ModelSpec, GgufNotes)> {
    spec(file, family)?;
    let hparams = HParams::new(file, family, ContextFit::default());
    let mut spec = embeds::complete(&hparams, family)?;
    spec.draft = family.draft_block(&hparams, &spec)?;
    if let Some(sections) = RopeSections::read(file, family)? {
        hparams.note("rope.dimension_sections", sections.gguf_value());
    }
    Ok((spec, hparams.into_notes()))
}

/// Finds every tensor of the spec in the file and checks shape and dtype. Tensors that must be assembled are, on all
/// cores.
///
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.dtype_unsupported`, naming the tensor.
pub fn tensors(file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<Vec<LocatedTensor>> {
    located(file, family, &spec.tensors())
}

/// Finds the keys and values that a folder stores for layers that take those of others. Nothing reads them, but
/// llama.cpp demands them of some families.
///
/// Errors: as of `tensors`.
pub(crate) fn unread_keys(file: &WeightFile, family: Family, spec: &ModelSpec) -> Result<Vec<LocatedTensor>> {
    let mut whole = spec.clone();
    for attention in whole.attentions_mut().filter(|it| matches!(it.keys, KvSource::OfLayer(_))) {
        attention.keys = KvSource::Projected;
    }
    let read = spec.tensors();
    let mut unread = whole.tensors();
    unread.retain(|tensor| {
        let (role, layer, _) = tensor;
        !read.contains(tensor) && tensor_names::find(file, family, *role, *layer).is_some()
    });
    located(file, family, &unread)
}

fn located(file: &WeightFile, family: Family, specs: &[TensorSpec]) -> Result<Vec<LocatedTensor>> {
    let rows: HashMap<(Role, Option<usize>), usize> = specs
        .iter()
        .map(|(role, layer, shape)| ((*role, *layer), shape[usize::from(role.is_expert())]))
        .collect();
    let locate_one = |(role, layer, shape): &TensorSpec| {
        let rows_of = |other: Role| rows.get(&(other, *layer)).copied();
        let parts = tensor_names::parts(file, family, (*role, *layer), shape, &rows_of)?;
        Ok(LocatedTensor { role: *role, layer: *layer, parts })
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(specs.len());
    let shares = specs.chunks(specs.len().div_ceil(n_threads.max(1)).max(1));
    std::thread::scope(|scope| {
        let locate_one = &locate_one;
        let running: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(locate_one).collect::<Result<Vec<_>>>()))
            .collect();
        let mut all = Vec::with_capacity(specs.len());
        for share in running {
            match share.join() {
                Ok(placed) => all.extend(placed?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}

pub(crate) fn tensor_missing(name: &str) -> EngineError {
    EngineError::new("model.tensor_missing", format!("the tensor {name} is missing"), DAMAGED)
}

/// Checks a shape. Dimensions of 1 are ignored, since containers differ in them.
fn check_shape(view: &TensorView<'_>, expected: &[usize]) -> Result<()> {
    let long = |shape: &[usize]| shape.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    if view.shape == expected || long(view.shape) == long(expected) {
        return Ok(());
    }
    Err(wrong_shape(view, expected))
}

fn wrong_shape(view: &TensorView<'_>, expected: &[usize]) -> EngineError {
    let message = format!("{} has shape {:?}, the model needs {expected:?}", view.name, view.shape);
    EngineError::new("model.tensor_shape", message, DAMAGED)
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
