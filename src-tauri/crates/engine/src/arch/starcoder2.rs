//! StarCoder2: layer norms, biases everywhere, an ungated feed-forward part of GELU.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{Dense, Ffn, ModelSpec, Norm, Role};

pub(super) struct Starcoder2;

const EPS: HParamKey = HParamKey { gguf: "attention.layer_norm_epsilon", hf: "norm_epsilon" };

impl Architecture for Starcoder2 {
    fn gguf_name(&self) -> &'static str {
        "starcoder2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["starcoder2"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("norm_epsilon", 1e-5), ("num_key_value_heads", 2.0), ("max_position_embeddings", 4096.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        for (key, only) in [("norm_type", "layer_norm"), ("mlp_type", "default")] {
            let found = hparams.value(key).and_then(|name| name.as_str());
            if let Some(other) = found.filter(|name| *name != only) {
                return Err(hparams.unsupported(&format!("{key} \"{other}\"")));
            }
        }
        let bias = |role| match hparams.is_gguf() {
            true => Ok(hparams.has_tensor(role, Some(0))),
            false => hparams.flag("use_bias", true),
        };
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::GeluTanh)?,
            bias: bias(Role::UpBias)?,
        };
        let norm = Norm::Layer { eps: hparams.real(EPS, 0.0, 1.0)? as f32, bias: true };
        let mut spec = llama::spec_normed(hparams, self.gguf_name(), true, Ffn::Plain(dense), norm)?;
        let (qkv_bias, out_bias) = (bias(Role::QueryBias)?, bias(Role::AttentionOutBias)?);
        let window = hparams.window()?;
        for attention in spec.attentions_mut() {
            attention.qkv_bias = qkv_bias;
            attention.out_bias = out_bias;
            attention.window = window;
            attention.set_rope_half();
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let name = match (container, role) {
            (Container::Safetensors, Role::Up) => "mlp.c_fc.weight",
            (Container::Safetensors, Role::UpBias) => "mlp.c_fc.bias",
            (Container::Safetensors, Role::Down) => "mlp.c_proj.weight",
            (Container::Safetensors, Role::DownBias) => "mlp.c_proj.bias",
            _ => return names::plain(container, role),
        };
        vec![name.into()]
    }
}
