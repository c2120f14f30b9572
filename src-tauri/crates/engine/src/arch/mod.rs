//! Families of models: how each names its hyperparameters and tensors, in both containers.
//!
//! Architecture names are compared here and nowhere else. A family is a file beside this one and an entry in
//! `ARCHITECTURES`; it has no forward code.

use serde_json::Value;
use weights::{Codec, Container, TensorView, WeightFile};

use crate::error::{DAMAGED, EngineError, Result};
use crate::spec::{ModelSpec, Role};

mod hyper;
mod llama;
mod names;
mod rope;
mod smollm3;
#[cfg(test)]
mod tests;

pub use hyper::{Hyper, Notes};

/// A family. Implemented by the files beside this one.
pub trait Architecture: Sync {
    /// The name in a GGUF's `general.architecture`.
    fn gguf_name(&self) -> &'static str;

    /// The names in config.json's `model_type`.
    fn hf_names(&self) -> &'static [&'static str];

    /// The model's structure, every number checked.
    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec>;

    /// The tensor of a role; `layer` is None for the model's own.
    fn tensor_name(&self, container: Container, role: Role, layer: Option<usize>) -> String;
}

/// Every family that runs.
pub static ARCHITECTURES: &[Family] = &[&llama::Llama, &smollm3::SmolLm3];

/// A family found for a file.
pub type Family = &'static dyn Architecture;

/// A tensor of the file with the part it plays.
pub struct Placed<'a> {
    pub role: Role,
    pub layer: Option<usize>,
    pub view: TensorView<'a>,
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
            let Some(name) = config.get("model_type").and_then(Value::as_str) else {
                return Err(EngineError::new(
                    "model.config_missing",
                    "there is no config.json with a model_type beside the weights",
                    "Open the folder that holds model.safetensors, config.json and tokenizer.json.",
                ));
            };
            (name, ARCHITECTURES.iter().find(|a| a.hf_names().contains(&name)))
        }
    };
    family.copied().ok_or_else(|| unknown(name))
}

fn unknown(architecture: &str) -> EngineError {
    let known: Vec<&str> = ARCHITECTURES.iter().map(|a| a.gguf_name()).collect();
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
    Ok(family.tensor_name(Container::Gguf { version: 3 }, role, layer))
}

/// The structure of a file's model. Errors: an unknown family; `model.hyperparameter`, naming the key.
pub fn spec(file: &WeightFile, family: Family) -> Result<ModelSpec> {
    if let Container::Safetensors = file.container()
        && file.metadata().config().get("quantization_config").is_some_and(|q| !q.is_null())
    {
        return Err(Hyper::new(file, family).unsupported("a quantisation of its own (quantization_config)"));
    }
    family.spec(&Hyper::new(file, family))
}

/// As `spec`, with what a GGUF would say of the model where the file is no GGUF.
pub fn spec_and_notes(file: &WeightFile, family: Family) -> Result<(ModelSpec, Notes)> {
    spec(file, family)?;
    let hyper = Hyper::new(file, family);
    let spec = family.spec(&hyper)?;
    Ok((spec, hyper.into_notes()))
}

/// Every tensor of the spec, found in the file, with its shape and dtype checked.
/// Errors: `model.tensor_missing`, `model.tensor_shape`, `model.dtype_unsupported`, naming the tensor.
pub fn tensors<'a>(file: &'a WeightFile, family: Family, spec: &ModelSpec) -> Result<Vec<Placed<'a>>> {
    let place = |(role, layer, shape): (Role, Option<usize>, Vec<usize>)| {
        let name = family.tensor_name(file.container(), role, layer);
        let view = file.tensor(&name).ok_or_else(|| tensor_missing(&name))?;
        check_shape(&view, &shape)?;
        codec(&view)?;
        Ok(Placed { role, layer, view })
    };
    spec.tensors().into_iter().map(place).collect()
}

fn tensor_missing(name: &str) -> EngineError {
    EngineError::new("model.tensor_missing", format!("the tensor {name} is missing"), DAMAGED)
}

fn check_shape(view: &TensorView<'_>, expected: &[usize]) -> Result<()> {
    if view.shape == expected {
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
            "Get the model in another precision, such as Q8_0 or Q4_K_M.",
        )
    })
}
