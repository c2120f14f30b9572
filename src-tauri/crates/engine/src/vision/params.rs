//! Hyperparameters of a vision tower by key, from either container, each checked against bounds before use.

use kernels::Activation;
use serde_json::Value;
use weights::{Container, WeightFile};

use crate::arch::hparams::MAX_FACTOR;
use crate::arch::numbers::{JsonNumbers, bounded, in_range, wrong};
use crate::error::{EngineError, Result};

/// One hyperparameter's name in both containers; GGUF's without `clip.vision.`. Empty where a container has no such key.
#[derive(Debug, Clone, Copy)]
pub(super) struct TowerKey {
    pub gguf: &'static str,
    pub hf: &'static str,
}

/// Reads the hyperparameters of one file's tower.
pub struct TowerParams<'a> {
    file: &'a WeightFile,
    /// config.json, whole and its vision part. `None` for a GGUF.
    configs: Option<(&'a Value, &'a Value)>,
}

impl<'a> TowerParams<'a> {
    pub(super) fn new(file: &'a WeightFile) -> Self {
        let configs = match file.container() {
            Container::Gguf { .. } => None,
            Container::Safetensors => {
                let config = file.metadata().config();
                Some((config, config.get("vision_config").unwrap_or(&Value::Null)))
            }
        };
        Self { file, configs }
    }

    /// Returns whether the file is a GGUF.
    pub(super) fn is_gguf(&self) -> bool {
        self.configs.is_none()
    }

    /// Returns whether any tensor has this in its name.
    pub(super) fn has_tensor_with(&self, part: &str) -> bool {
        self.file.tensors().any(|tensor| tensor.name.contains(part))
    }

    /// Reads a required count from 1 to `max`.
    pub(super) fn count(&self, key: TowerKey, max: usize) -> Result<usize> {
        self.optional_count(key, max)?.ok_or_else(|| wrong(&self.name(key), "it is missing".into()))
    }

    /// Reads an optional count from 1 to `max`.
    pub(super) fn optional_count(&self, key: TowerKey, max: usize) -> Result<Option<usize>> {
        match self.configs {
            None if key.gguf.is_empty() => Ok(None),
            None => {
                let name = self.name(key);
                self.file.metadata().opt_u64(&name)?.map(|n| bounded(&name, n, max)).transpose()
            }
            Some((_, vision)) => JsonNumbers::new(vision, "vision_config.").optional_count(key.hf, max),
        }
    }

    /// Reads a count that published configs may omit because transformers knows it. A GGUF must have it.
    pub(super) fn count_or(&self, key: TowerKey, max: usize, default: usize) -> Result<usize> {
        match self.is_gguf() {
            true => self.count(key, max),
            false => Ok(self.optional_count(key, max)?.unwrap_or(default)),
        }
    }

    /// Returns the shape of a tensor in the file.
    pub(super) fn shape_of(&self, name: &str) -> Option<&'a [usize]> {
        self.file.tensors().find(|tensor| tensor.name == name).map(|tensor| tensor.shape)
    }

    /// Returns a value of config.json's vision part. `None` for a GGUF, and for null.
    pub(super) fn vision_value(&self, hf: &str) -> Option<&'a Value> {
        self.configs.and_then(|(_, vision)| vision.get(hf)).filter(|value| !value.is_null())
    }

    /// Returns a value of the whole model's config.json. `None` for a GGUF, and for null.
    pub(super) fn model_value(&self, hf: &str) -> Option<&'a Value> {
        self.configs.and_then(|(config, _)| config.get(hf)).filter(|value| !value.is_null())
    }

    /// Reads a flag of the whole model's config.json.
    pub(super) fn model_flag(&self, hf: &str, default: bool) -> bool {
        self.model_value(hf).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Reads a flag of a GGUF. `None` for config.json.
    pub(super) fn gguf_flag(&self, name: &str) -> Result<Option<bool>> {
        match self.is_gguf() {
            true => Ok(self.file.metadata().opt_bool(name)?),
            false => Ok(None),
        }
    }

    /// Reads a list of flags of a GGUF. `None` for config.json.
    pub(super) fn gguf_flags(&self, name: &str) -> Result<Option<Vec<bool>>> {
        match self.is_gguf() {
            true => Ok(self.file.metadata().opt_array(name)?.map(|array| array.bools()).transpose()?),
            false => Ok(None),
        }
    }

    /// Reads a number of the language model's part of config.json.
    pub(super) fn text_real(&self, hf: &'static str, min: f64, max: f64) -> Result<Option<f64>> {
        let text = self.model_value("text_config").unwrap_or(&Value::Null);
        JsonNumbers::new(text, "text_config.").optional_real(hf, min, max)
    }

    /// Reads the base of the tower's rotation, `default` where the file does not say.
    pub(super) fn rope_theta(&self, default: f64) -> Result<f64> {
        let nested = self.vision_value("rope_parameters").or_else(|| self.vision_value("rope_scaling"));
        let nested = nested.unwrap_or(&Value::Null);
        let kind = nested.get("rope_type").and_then(Value::as_str).unwrap_or("default");
        if kind != "default" {
            return Err(self.unsupported(&format!("the rotation \"{kind}\"")));
        }
        let of =
            |object| JsonNumbers::new(object, "vision_config.").optional_real("rope_theta", 1.0, MAX_FACTOR);
        match of(nested)? {
            Some(theta) => Ok(theta),
            None => Ok(of(self.configs.map_or(&Value::Null, |(_, vision)| vision))?.unwrap_or(default)),
        }
    }

    /// Reads a count of the whole model's config.json. `None` for a GGUF.
    pub(super) fn model_count(&self, hf: &'static str, max: usize) -> Result<Option<usize>> {
        match self.configs {
            None => Ok(None),
            Some((config, _)) => JsonNumbers::new(config, "").optional_count(hf, max),
        }
    }

    /// Reads a required count of the language model's part of config.json.
    pub(super) fn text_count(&self, hf: &'static str, max: usize) -> Result<usize> {
        let text = self.configs.and_then(|(config, _)| config.get("text_config")).unwrap_or(&Value::Null);
        let found = JsonNumbers::new(text, "text_config.").optional_count(hf, max)?;
        found.ok_or_else(|| wrong(&format!("text_config.{hf}"), "it is missing".into()))
    }

    /// Reads an optional finite number from `min` to `max`.
    pub(super) fn optional_real(&self, key: TowerKey, min: f64, max: f64) -> Result<Option<f64>> {
        match self.configs {
            None => {
                let name = self.name(key);
                let found = self.file.metadata().opt_f32(&name)?;
                found.map(|x| in_range(&name, f64::from(x), min, max)).transpose()
            }
            Some((_, vision)) => JsonNumbers::new(vision, "vision_config.").optional_real(key.hf, min, max),
        }
    }

    /// Reads the activation of the layers; `default` where the file does not say.
    ///
    /// Errors: `model.feature_unsupported`.
    pub(super) fn activation(&self, default: Activation) -> Result<Activation> {
        let named = self.vision_value("hidden_act").or_else(|| self.vision_value("hidden_activation"));
        self.activation_named(named.and_then(Value::as_str), default)
    }

    /// Reads the activation of the projector; `default` where the file does not say.
    ///
    /// Errors: `model.feature_unsupported`.
    pub(super) fn projector_activation(&self, default: Activation) -> Result<Activation> {
        self.activation_named(self.model_value("projector_hidden_act").and_then(Value::as_str), default)
    }

    fn activation_named(&self, named: Option<&str>, default: Activation) -> Result<Activation> {
        match named {
            None => Ok(default),
            Some("gelu_pytorch_tanh" | "gelu_new") => Ok(Activation::GeluTanh),
            Some("gelu") => Ok(Activation::Gelu),
            Some("silu") => Ok(Activation::Silu),
            Some(other) => Err(self.unsupported(&format!("the activation \"{other}\""))),
        }
    }

    /// Error for a feature of the tower that is not implemented.
    pub(super) fn unsupported(&self, what: &str) -> EngineError {
        EngineError::new(
            "model.feature_unsupported",
            format!(
                "the vision tower of {} uses {what}, which Inglenook cannot run yet",
                self.file.path().display()
            ),
            "The model answers without images. For images choose another model.",
        )
    }

    /// Returns the key as it is written in this file.
    fn name(&self, key: TowerKey) -> String {
        match self.is_gguf() {
            true => format!("clip.vision.{}", key.gguf),
            false => format!("vision_config.{}", key.hf),
        }
    }
}
