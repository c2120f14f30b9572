//! BERT and its relatives (MiniLM, BGE, E5), and Nomic's with rotation and a gate: bidirectional attention, norms
//! after the sums.

use kernels::{Activation, Mask};
use weights::Container;

use super::hparams::{HParams, HParamKey, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{
    Attention, EmbeddingPrefixes, Dense, Embedding, EmbeddingHead, Ffn, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, Pooling, Role, Rope,
};

pub(super) struct Bert;
pub(super) struct NomicBert;

const EPS: HParamKey = HParamKey { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_eps" };
/// Every how many layers there is a mixture of experts.
const EXPERT_LAYERS: HParamKey = HParamKey { gguf: "moe_every_n_layers", hf: "" };

impl Architecture for Bert {
    fn gguf_name(&self) -> &'static str {
        "bert"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &[]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: Activation::Gelu,
            bias: hparams.has_tensor(Role::UpBias, Some(0)),
        };
        let mut spec = plain(hparams, self.gguf_name(), Ffn::Plain(dense))?;
        spec.embedding.n_positions = Some(spec.context_length);
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

impl Architecture for NomicBert {
    fn gguf_name(&self) -> &'static str {
        "nomic-bert"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &[]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        if hparams.optional_unbounded(EXPERT_LAYERS)?.is_some_and(|n| n > 0) {
            return Err(hparams.unsupported("a mixture of experts"));
        }
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: Activation::Silu,
            bias: hparams.has_tensor(Role::UpBias, Some(0)),
        };
        let mut spec = plain(hparams, self.gguf_name(), Ffn::Gated(dense))?;
        for attention in spec.attentions_mut() {
            attention.rope = Rope::Rotary(rope::rotary(hparams, attention.head_dim)?);
            attention.set_rope_half();
        }
        Ok(spec)
    }

    fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        EmbeddingPrefixes { question: "search_query: ", passage: "search_document: " }
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

/// Reads what both families share.
fn plain(hparams: &HParams<'_>, architecture: &'static str, ffn: Ffn) -> Result<ModelSpec> {
    let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
    let heads = llama::AttentionHeads { n_heads, n_kv_heads: n_heads, head_dim };
    let norm = Norm::Layer { eps: hparams.real(EPS, 0.0, 1.0)? as f32, bias: true };
    let attention = Attention {
        mask: Mask::Bidirectional,
        qkv_bias: hparams.has_tensor(Role::QueryBias, Some(0)),
        out_bias: hparams.has_tensor(Role::AttentionOutBias, Some(0)),
        ..llama::plain_attention(heads, Rope::None)
    };
    let layer = LayerSpec {
        norms: NormPosition::After,
        mixer_norm: norm,
        mixer: Mixer::Attention(attention),
        mixer_post_norm: None,
        ffn_norm: norm,
        ffn,
        ffn_post_norm: None,
        per_layer_input: None,
        output_scale: false,
    };
    let n_kinds = hparams.n_rows(Role::TokenTypes);
    Ok(ModelSpec {
        architecture,
        n_vocab: hparams.n_vocab()?,
        d_model,
        context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding { n_kinds, norm: Some(norm), ..Embedding::PLAIN },
        layers: vec![layer; hparams.count(keys::N_LAYERS, MAX_LAYERS)?],
        output_norm: Norm::None,
        tied_embeddings: false,
        output_softcap: None,
        embeds: Some(EmbeddingHead { pooling: Pooling::Mean, dense: Vec::new(), before: EmbeddingPrefixes::default() }),
    })
}

/// Names of the norms after the sums.
fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    match role {
        Role::MixerNorm => vec!["attn_output_norm.weight".into()],
        Role::MixerNormBias => vec!["attn_output_norm.bias".into()],
        Role::FfnNorm => vec!["layer_output_norm.weight".into()],
        Role::FfnNormBias => vec!["layer_output_norm.bias".into()],
        _ => names::plain(container, role),
    }
}
