//! MiniCPM 3: latent attention, with factors on the embedding, what layers add, and the logits.

use kernels::{Activation, RopeStyle};
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_FACTOR, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, latent};
use crate::error::Result;
use crate::spec::{Dense, Ffn, ModelSpec, Role};

pub(super) struct MiniCpm3;

/// Factors that GGUFs do not state: those of the published model.
const EMBEDDING_FACTOR: (&str, f64) = ("scale_emb", 12.0);
const DEPTH_FACTOR: (&str, f64) = ("scale_depth", 1.4);
const BASE_WIDTH: (&str, f64) = ("dim_model_base", 256.0);

impl Architecture for MiniCpm3 {
    fn gguf_name(&self) -> &'static str {
        "minicpm3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["minicpm3"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            bias: false,
        };
        if hparams.flag("mlp_bias", false)? {
            return Err(hparams.unsupported("biases of the feed-forward part (mlp_bias)"));
        }
        let mut spec = latent::spec(hparams, self.gguf_name(), (true, Ffn::Gated(dense)), RopeStyle::Half)?;
        let factor = |(hf, published): (&'static str, f64)| -> Result<f64> {
            let key = HParamKey { gguf: "", hf };
            let found = hparams.optional_real(key, f64::MIN_POSITIVE, MAX_FACTOR)?;
            // A config without it has none.
            Ok(found.unwrap_or(if hparams.is_gguf() { published } else { 1.0 }))
        };
        spec.embedding.scale = factor(EMBEDDING_FACTOR)? as f32;
        let of_layers = factor(DEPTH_FACTOR)? / (spec.layers.len() as f64).sqrt();
        spec.layers.iter_mut().for_each(|layer| layer.residual_scale = Some(of_layers as f32));
        spec.output_scale = Some((factor(BASE_WIDTH)? / spec.d_model as f64) as f32);
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        latent::tensor_names(container, role)
    }
}
