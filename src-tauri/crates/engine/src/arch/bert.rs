//! BERT and what is built like it (MiniLM, BGE, E5), and Nomic's, with rotation and a gate: tokens see all of the text,
//! norms stand after the sums.

use kernels::{Activation, Mask};
use weights::Container;

use super::hyper::{Hyper, Key, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::place::Place;
use super::{Architecture, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Before, Dense, Embedding, Embeds, Ffn, LayerSpec, Mixer, ModelSpec, Norm, NormPlace, Pooling, Role, Rope,
};

pub(super) struct Bert;
pub(super) struct NomicBert;

const EPS: Key = Key { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_eps" };
/// A mixture of experts in every so many layers.
const EXPERT_LAYERS: Key = Key { gguf: "moe_every_n_layers", hf: "" };

impl Architecture for Bert {
    fn gguf_name(&self) -> &'static str {
        "bert"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &[]
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hyper.count(keys::D_FF, MAX_WIDTH)?,
            activation: Activation::Gelu,
            bias: hyper.has_tensor(Role::UpBias, Some(0)),
        };
        let mut spec = plain(hyper, self.gguf_name(), Ffn::Plain(dense))?;
        spec.embedding.n_positions = Some(spec.context_length);
        Ok(spec)
    }

    fn places(&self, container: Container, role: Role) -> Vec<Place> {
        places(container, role)
    }
}

impl Architecture for NomicBert {
    fn gguf_name(&self) -> &'static str {
        "nomic-bert"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &[]
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        if hyper.optional_unbounded(EXPERT_LAYERS)?.is_some_and(|n| n > 0) {
            return Err(hyper.unsupported("a mixture of experts"));
        }
        let dense = Dense {
            d_ff: hyper.count(keys::D_FF, MAX_WIDTH)?,
            activation: Activation::Silu,
            bias: hyper.has_tensor(Role::UpBias, Some(0)),
        };
        let mut spec = plain(hyper, self.gguf_name(), Ffn::Gated(dense))?;
        for attention in spec.attentions_mut() {
            attention.rope = Rope::Rotary(rope::rotary(hyper, attention.head_dim)?);
            attention.turn_halves();
        }
        Ok(spec)
    }

    fn before_texts(&self) -> Before {
        Before { question: "search_query: ", passage: "search_document: " }
    }

    fn places(&self, container: Container, role: Role) -> Vec<Place> {
        places(container, role)
    }
}

/// What both share.
fn plain(hyper: &Hyper<'_>, architecture: &'static str, ffn: Ffn) -> Result<ModelSpec> {
    let d_model = hyper.count(keys::D_MODEL, MAX_WIDTH)?;
    let n_heads = hyper.count(keys::N_HEADS, MAX_HEADS)?;
    let head_dim = llama::head_dim(hyper, d_model, n_heads)?;
    let heads = llama::Heads { n_heads, n_kv_heads: n_heads, head_dim };
    let norm = Norm::Layer { eps: hyper.real(EPS, 0.0, 1.0)? as f32, bias: true };
    let attention = Attention {
        mask: Mask::Bidirectional,
        qkv_bias: hyper.has_tensor(Role::QueryBias, Some(0)),
        out_bias: hyper.has_tensor(Role::AttentionOutBias, Some(0)),
        ..llama::plain_attention(heads, Rope::None)
    };
    let layer = LayerSpec {
        norms: NormPlace::After,
        mixer_norm: norm,
        mixer: Mixer::Attention(attention),
        mixer_post_norm: None,
        ffn_norm: norm,
        ffn,
        ffn_post_norm: None,
        per_layer_input: None,
        output_scale: false,
    };
    let n_kinds = hyper.n_rows(Role::TextKinds);
    Ok(ModelSpec {
        architecture,
        n_vocab: hyper.n_vocab()?,
        d_model,
        context_length: hyper.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding { n_kinds, norm: Some(norm), ..Embedding::PLAIN },
        layers: vec![layer; hyper.count(keys::N_LAYERS, MAX_LAYERS)?],
        output_norm: Norm::None,
        tied_embeddings: false,
        output_softcap: None,
        embeds: Some(Embeds { pooling: Pooling::Mean, dense: Vec::new(), before: Before::default() }),
    })
}

/// The norms after the sums.
fn places(container: Container, role: Role) -> Vec<Place> {
    match role {
        Role::MixerNorm => vec!["attn_output_norm.weight".into()],
        Role::MixerNormBias => vec!["attn_output_norm.bias".into()],
        Role::FfnNorm => vec!["layer_output_norm.weight".into()],
        Role::FfnNormBias => vec!["layer_output_norm.bias".into()],
        _ => names::plain(container, role),
    }
}
