//! Command R7B and Command A: attention and feed-forward part side by side on one layer norm; pairs side by side;
//! full-attention layers do not rotate; logits have a factor.

use kernels::{Activation, RopeStyle};

use super::hparams::{HParamKey, HParams, MAX_FACTOR, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::{Architecture, keys, llama, olmo, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, Ffn, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, Role, Rope, Rotary,
};

pub(super) struct Cohere2;

const EPS: HParamKey = HParamKey { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_eps" };
const LOGIT_SCALE: HParamKey = HParamKey { gguf: "logit_scale", hf: "logit_scale" };
const PATTERN: HParamKey = HParamKey { gguf: "", hf: "sliding_window_pattern" };
/// By default every fourth layer has full attention.
const FULL_INTERVAL: usize = 4;

impl Architecture for Cohere2 {
    fn gguf_name(&self) -> &'static str {
        "cohere2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["cohere2"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("layer_norm_eps", 1e-5),
            ("logit_scale", 0.0625),
            ("max_position_embeddings", 8192.0),
            ("sliding_window", 4096.0),
        ]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        refuse_variants(hparams)?;
        let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
        let norm = Norm::Layer { eps: hparams.real(EPS, 0.0, 1.0)? as f32, bias: false };
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            bias: false,
        };
        let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
        let n_kv_heads = hparams.optional_count(keys::N_KV_HEADS, MAX_HEADS)?.unwrap_or(n_heads);
        let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
        let heads = llama::AttentionHeads { n_heads, n_kv_heads, head_dim }.checked(hparams)?;
        let rotary = Rotary { style: RopeStyle::Interleaved, ..rope::rotary(hparams, head_dim)? };
        let qkv_bias = hparams.has_bias("attention_bias", Role::QueryBias)?;
        let out_bias = hparams.has_bias("attention_bias", Role::AttentionOutBias)?;
        let window = hparams.window()?;
        let interval = hparams.optional_count(PATTERN, MAX_LAYERS)?.unwrap_or(FULL_INTERVAL);
        let layer = |slides: bool| {
            let rope = if slides { Rope::Rotary(rotary.clone()) } else { Rope::None };
            let attention = Attention {
                window: window.filter(|_| slides),
                qkv_bias,
                out_bias,
                ..llama::plain_attention(heads, rope)
            };
            LayerSpec {
                norms: NormPosition::Parallel,
                mixer_norm: norm,
                mixer: Mixer::Attention(attention),
                mixer_post_norm: None,
                ffn_norm: Norm::None,
                ffn: Ffn::Gated(dense),
                ffn_post_norm: None,
                per_layer_input: None,
                output_scale: false,
                residual_scale: None,
                laurel: None,
            }
        };
        Ok(ModelSpec {
            architecture: self.gguf_name(),
            n_vocab: hparams.n_vocab()?,
            d_model,
            context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
            embedding: Embedding::PLAIN,
            layers: olmo::slides(hparams, n_layers, interval)?.into_iter().map(layer).collect(),
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(true)?,
            output_softcap: None,
            embeds: None,
            output_scale: hparams.optional_real(LOGIT_SCALE, -MAX_FACTOR, MAX_FACTOR)?.map(|x| x as f32),
            output_bias: false,
            draft: None,
            assistance: None,
            streams: None,
        })
    }
}

/// Refuses what these keys would ask for and no published model does.
fn refuse_variants(hparams: &HParams<'_>) -> Result<()> {
    for key in ["use_parallel_block", "use_gated_activation"] {
        if !hparams.flag(key, true)? {
            return Err(hparams.unsupported(&format!("{key} = false")));
        }
    }
    if hparams.flag("use_qk_norm", false)? {
        return Err(hparams.unsupported("normed heads (use_qk_norm)"));
    }
    let order = hparams.value("order_of_interleaved_layers").and_then(|order| order.as_str());
    if let Some(order) = order.filter(|order| *order != "local_attn_first") {
        return Err(hparams.unsupported(&format!("layers in the order \"{order}\"")));
    }
    Ok(())
}
