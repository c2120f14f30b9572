//! Falcon H1: attention and a state space side by side in every layer, and factors on nearly everything. GGUFs have the
//! factors in their weights.

use kernels::{Activation, RopeStyle};
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_FACTOR, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::ssm::{self, PREFIXED, SsmKeys};
use super::tensor_names::TensorName;
use super::{Architecture, bamba, keys, llama, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, Ffn, GateOrder, Mixer, ModelSpec, Norm, Role, Rope, Rotary, Ssm, SsmFactors,
};

pub(super) struct FalconH1;

const KEYS: SsmKeys = SsmKeys { out_bias: "projectors_bias", ..PREFIXED };

impl Architecture for FalconH1 {
    fn gguf_name(&self) -> &'static str {
        "falcon-h1"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["falcon_h1"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 8192.0), ("mamba_expand", 2.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
        let norm = Norm::rms(hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32);
        if !hparams.flag("mamba_use_mlp", true)? {
            return Err(hparams.unsupported("layers without a feed-forward part (mamba_use_mlp)"));
        }
        let attention = attention(hparams, d_model)?;
        let ssm = (state_space(hparams, d_model, norm)?, factor(hparams, "ssm_out_multiplier")?);
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            bias: hparams.has_bias("mlp_bias", Role::GateBias)?,
        };
        let [gate_factor, out_factor] = factors(hparams, "mlp_multipliers")?;
        let ffn = match [gate_factor, out_factor] {
            [1.0, 1.0] => Ffn::Gated(dense),
            _ => Ffn::Scaled { dense, gate_factor, out_factor },
        };
        let scale = factor(hparams, "lm_head_multiplier")?;
        let embedding = Embedding { scale: factor(hparams, "embedding_multiplier")?, ..Embedding::PLAIN };
        Ok(ModelSpec {
            architecture: self.gguf_name(),
            n_vocab: hparams.n_vocab()?,
            d_model,
            context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
            embedding,
            layers: vec![ssm::layer(norm, Mixer::AttentionAndSsm { attention, ssm }, ffn); n_layers],
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(false)?,
            output_softcap: None,
            embeds: None,
            output_scale: Some(scale).filter(|scale| *scale != 1.0),
            output_bias: false,
            draft: None,
            assistance: None,
            streams: None,
        })
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, Role::FfnNorm) => vec!["ffn_norm.weight".into(), "ffn_norm".into()],
            _ => bamba::tensor_names(container, role),
        }
    }
}

/// Reads a factor of config.json. A GGUF has none.
fn factor(hparams: &HParams<'_>, hf: &'static str) -> Result<f32> {
    let found = hparams.optional_real(HParamKey { gguf: "", hf }, -MAX_FACTOR, MAX_FACTOR)?;
    Ok(found.unwrap_or(1.0) as f32)
}

/// Reads a list of factors of config.json. A GGUF has none.
fn factors<const N: usize>(hparams: &HParams<'_>, hf: &str) -> Result<[f32; N]> {
    let Some(list) = hparams.value(hf) else { return Ok([1.0; N]) };
    let numbers: Option<Vec<f32>> = list.as_array().and_then(|list| {
        list.iter().map(|x| x.as_f64().filter(|x| x.abs() <= MAX_FACTOR).map(|x| x as f32)).collect()
    });
    let numbers = numbers.and_then(|numbers| <[f32; N]>::try_from(numbers).ok());
    numbers.ok_or_else(|| hparams.wrong(hf, format!("{list} is not a list of {N} factors")))
}

/// Reads the attention and the factor on its output. A factor on its input is one on queries, keys and values.
fn attention(hparams: &HParams<'_>, d_model: usize) -> Result<(Attention, f32)> {
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let n_kv_heads = hparams.optional_count(keys::N_KV_HEADS, MAX_HEADS)?.unwrap_or(n_heads);
    let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
    let heads = llama::AttentionHeads { n_heads, n_kv_heads, head_dim }.checked(hparams)?;
    let rotary = rope::rotary(hparams, head_dim)?;
    let rope = Rope::Rotary(Rotary { style: RopeStyle::Half, ..rotary });
    let mut attention = llama::plain_attention(heads, rope);
    attention.qkv_bias = hparams.has_bias("attention_bias", Role::QueryBias)?;
    attention.out_bias = hparams.has_bias("attention_bias", Role::AttentionOutBias)?;
    let input = factor(hparams, "attention_in_multiplier")?;
    if input != 1.0 && (attention.qkv_bias || attention.out_bias) {
        return Err(hparams.unsupported("a factor before biases (attention_in_multiplier, attention_bias)"));
    }
    let of_keys = factor(hparams, "key_multiplier")?;
    attention.scale *= input * input * of_keys;
    let output = factor(hparams, "attention_out_multiplier")?;
    Ok((attention, input * output))
}

fn state_space(hparams: &HParams<'_>, d_model: usize, norm: Norm) -> Result<Ssm> {
    let has_norm = match hparams.is_gguf() {
        true => hparams.has_tensor(Role::SsmNorm, Some(0)),
        false => hparams.flag("mamba_rms_norm", false)?,
    };
    let mut ssm = ssm::read(hparams, &KEYS, d_model, (has_norm.then_some(norm), 0))?;
    if hparams.flag("mamba_norm_before_gate", false)? {
        ssm.order = GateOrder::NormFirst;
    }
    let [z, x, b, c, dt] = factors(hparams, "ssm_multipliers")?;
    ssm.factors = SsmFactors { input: factor(hparams, "ssm_in_multiplier")?, z, x, b, c, dt };
    Ok(ssm)
}
