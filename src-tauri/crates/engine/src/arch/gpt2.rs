//! GPT-2: layer norms, learned positions, biases everywhere, an ungated feed-forward part.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParams, HParamKey, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::{TensorForm, TensorName};
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{Attention, Dense, Embedding, Ffn, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, Role, Rope};

pub(super) struct Gpt2;

const N_LAYERS: HParamKey = HParamKey { gguf: keys::N_LAYERS.gguf, hf: "n_layer" };
const D_MODEL: HParamKey = HParamKey { gguf: keys::D_MODEL.gguf, hf: "n_embd" };
const D_FF: HParamKey = HParamKey { gguf: keys::D_FF.gguf, hf: "n_inner" };
const N_HEADS: HParamKey = HParamKey { gguf: keys::N_HEADS.gguf, hf: "n_head" };
const CONTEXT: HParamKey = HParamKey { gguf: keys::CONTEXT.gguf, hf: "n_positions" };
const EPS: HParamKey = HParamKey { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_epsilon" };

impl Architecture for Gpt2 {
    fn gguf_name(&self) -> &'static str {
        "gpt2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["gpt2"]
    }

    fn hf_layers(&self) -> &'static str {
        "h"
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let n_layers = hparams.count(N_LAYERS, MAX_LAYERS)?;
        let d_model = hparams.count(D_MODEL, MAX_WIDTH)?;
        let n_heads = hparams.count(N_HEADS, MAX_HEADS)?;
        let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
        let heads = llama::AttentionHeads { n_heads, n_kv_heads: n_heads, head_dim };
        let eps = hparams.optional_real(EPS, 0.0, 1.0)?.unwrap_or(1e-5) as f32;
        let norm = Norm::Layer { eps, bias: true };
        let context_length = hparams.count(CONTEXT, MAX_POSITIONS)?;
        let is_scaled = hparams.flag("scale_attn_weights", true)?;
        let by_depth = hparams.flag("scale_attn_by_inverse_layer_idx", false)?;
        let attention =
            Attention { qkv_bias: true, out_bias: true, ..llama::plain_attention(heads, Rope::None) };
        let dense = Dense {
            d_ff: hparams.optional_count(D_FF, MAX_WIDTH)?.unwrap_or(4 * d_model),
            activation: hparams.activation("activation_function", Activation::GeluTanh)?,
            bias: true,
        };
        let scale = |depth: usize| {
            let scale = if is_scaled { attention.scale } else { 1.0 };
            if by_depth { scale / (depth + 1) as f32 } else { scale }
        };
        let layer = |depth: usize| LayerSpec {
            norms: NormPosition::Before,
            mixer_norm: norm,
            mixer: Mixer::Attention(Attention { scale: scale(depth), ..attention.clone() }),
            mixer_post_norm: None,
            ffn_norm: norm,
            ffn: Ffn::Plain(dense),
            ffn_post_norm: None,
            per_layer_input: None,
            output_scale: false,
            residual_scale: None,
            laurel: None,
        };
        Ok(ModelSpec {
            architecture: self.gguf_name(),
            n_vocab: hparams.n_vocab()?,
            d_model,
            context_length,
            embedding: Embedding { n_positions: Some(context_length), ..Embedding::PLAIN },
            layers: (0..n_layers).map(layer).collect(),
            output_norm: norm,
            tied_embeddings: hparams.tied_embeddings(true)?,
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
        match container {
            Container::Gguf { .. } => names::plain(container, role),
            Container::Safetensors => vec![hugging_face(role)],
        }
    }
}

/// Projections are stored as [in, out].
fn hugging_face(role: Role) -> TensorName {
    let transposed = |name, of| TensorName { name, form: TensorForm::Transposed(of) };
    match role {
        Role::TokenEmbedding => "wte.weight".into(),
        Role::PositionEmbedding => "wpe.weight".into(),
        Role::OutputNorm => "ln_f.weight".into(),
        Role::OutputNormBias => "ln_f.bias".into(),
        Role::MixerNorm => "ln_1.weight".into(),
        Role::MixerNormBias => "ln_1.bias".into(),
        Role::FfnNorm => "ln_2.weight".into(),
        Role::FfnNormBias => "ln_2.bias".into(),
        Role::Query | Role::Key | Role::Value => transposed("attn.c_attn.weight", names::QKV),
        Role::QueryBias | Role::KeyBias | Role::ValueBias => TensorName::rows("attn.c_attn.bias", names::QKV_BIAS),
        Role::AttentionOut => transposed("attn.c_proj.weight", &[Role::AttentionOut]),
        Role::AttentionOutBias => "attn.c_proj.bias".into(),
        Role::Up => transposed("mlp.c_fc.weight", &[Role::Up]),
        Role::UpBias => "mlp.c_fc.bias".into(),
        Role::Down => transposed("mlp.c_proj.weight", &[Role::Down]),
        Role::DownBias => "mlp.c_proj.bias".into(),
        other => names::hugging_face(other).into(),
    }
}
