//! Seed-OSS: llama with biases of queries, keys and values, and a separate flag for that of the output projection.

use weights::Container;

use super::hparams::HParams;
use super::tensor_names::TensorName;
use super::{Architecture, llama, names};
use crate::error::Result;
use crate::spec::{ModelSpec, Role};

pub(super) struct SeedOss;

impl Architecture for SeedOss {
    fn gguf_name(&self) -> &'static str {
        "seed_oss"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["seed_oss"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-6), ("head_dim", 128.0), ("num_key_value_heads", 8.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let out_bias = hparams.has_bias("attention_out_bias", Role::AttentionOutBias)?;
        let qkv_bias = match hparams.is_gguf() {
            true => hparams.has_tensor(Role::QueryBias, Some(0)),
            false => hparams.flag("attention_bias", true)?,
        };
        for attention in spec.attentions_mut() {
            attention.qkv_bias = qkv_bias;
            attention.out_bias = out_bias;
            attention.set_rope_half();
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, Role::FfnNorm) => vec!["post_attention_norm.weight".into()],
            _ => names::plain(container, role),
        }
    }
}
