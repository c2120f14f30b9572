//! Mamba-2: state spaces and nothing else.

use weights::Container;
use weights::write::OwnedValue;

use super::hparams::{HParamKey, HParams, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::ssm::{self, SsmKeys};
use super::tensor_names::TensorName;
use super::{Architecture, keys};
use crate::error::Result;
use crate::spec::{Embedding, Ffn, Mixer, ModelSpec, Norm, Role};

pub(super) struct Mamba2;

const EPS: HParamKey = HParamKey { gguf: keys::RMS_EPS.gguf, hf: "layer_norm_epsilon" };

const KEYS: SsmKeys = SsmKeys {
    n_heads: "num_heads",
    head_dim: "head_dim",
    n_groups: "n_groups",
    d_state: "state_size",
    kernel: "conv_kernel",
    inner: "",
    expand: "expand",
    conv_bias: "use_conv_bias",
    in_bias: "use_bias",
    out_bias: "use_bias",
    activation: "hidden_act",
};

impl Architecture for Mamba2 {
    fn gguf_name(&self) -> &'static str {
        "mamba2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["mamba2"]
    }

    /// As transformers' configuration. A state space has no limit of positions; GGUFs state this one.
    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("max_position_embeddings", 1_048_576.0),
            ("layer_norm_epsilon", 1e-5),
            ("expand", 2.0),
            ("n_groups", 8.0),
            ("state_size", 128.0),
            ("conv_kernel", 4.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
        let norm = Norm::rms(hparams.real(EPS, 0.0, 1.0)? as f32);
        let ssm = ssm::read(hparams, &KEYS, d_model, (Some(norm), 0))?;
        // llama.cpp asks for both.
        for key in ["feed_forward_length", "attention.head_count"] {
            hparams.note(key, OwnedValue::U32(0));
        }
        Ok(ModelSpec {
            architecture: self.gguf_name(),
            n_vocab: hparams.n_vocab()?,
            d_model,
            context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
            embedding: Embedding::PLAIN,
            layers: vec![ssm::layer(norm, Mixer::Ssm(ssm), Ffn::None); n_layers],
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(false)?,
            output_softcap: None,
            embeds: None,
            output_scale: None,
            output_bias: false,
            draft: None,
            assistance: None,
            streams: None,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        mixer_names(container, role).map_or_else(|| ssm::tensor_names(container, role), |name| vec![name])
    }
}

/// Hugging Face's names of models whose layers have one part each, called mixer.
pub(super) fn mixer_names(container: Container, role: Role) -> Option<TensorName> {
    let Container::Safetensors = container else { return None };
    let name = match role {
        Role::TokenEmbedding => "embeddings.weight",
        Role::OutputNorm => "norm_f.weight",
        Role::MixerNorm | Role::FfnNorm => "norm.weight",
        Role::SsmGate | Role::SsmXbc | Role::SsmStep => "mixer.in_proj.weight",
        Role::SsmGateBias | Role::SsmXbcBias | Role::SsmStepBias => "mixer.in_proj.bias",
        Role::SsmConv => "mixer.conv1d.weight",
        Role::SsmConvBias => "mixer.conv1d.bias",
        Role::SsmDecay => "mixer.A_log",
        Role::SsmSkip => "mixer.D",
        Role::SsmTimeBias => "mixer.dt_bias",
        Role::SsmNorm => "mixer.norm.weight",
        Role::SsmOut => "mixer.out_proj.weight",
        Role::SsmOutBias => "mixer.out_proj.bias",
        _ => return None,
    };
    let form = ssm::tensor_names(container, role).into_iter().next()?.form;
    Some(TensorName { name, form })
}
