//! BERT and its relatives (MiniLM, BGE, E5), XLM-RoBERTa, and Nomic's with rotation and a gate: bidirectional
//! attention, norms after the sums. With a classifier they rank pairs of texts.

use kernels::{Activation, Mask};
use serde_json::Value;
use weights::Container;

use super::hparams::{HParams, HParamKey, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::{TensorForm, TensorName};
use super::{Architecture, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, EmbeddingHead, EmbeddingPrefixes, Ffn, LayerSpec, Mixer, ModelSpec, Norm, NormPosition,
    PairForm, Pooling, RankHead, Role, Rope,
};

pub(super) struct Bert;
pub(super) struct XlmRoberta;
pub(super) struct NomicBert;

/// RoBERTa's positions begin after that of the padding token. GGUF files leave those rows out.
const N_UNUSED_POSITIONS: usize = 2;

const EPS: HParamKey = HParamKey { gguf: "attention.layer_norm_epsilon", hf: "layer_norm_eps" };
/// Every how many layers there is a mixture of experts.
const EXPERT_LAYERS: HParamKey = HParamKey { gguf: "moe_every_n_layers", hf: "" };

impl Architecture for Bert {
    fn gguf_name(&self) -> &'static str {
        "bert"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["bert"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = original(hparams, self.gguf_name())?;
        spec.embedding.n_positions = Some(spec.context_length);
        Ok(spec)
    }

    fn hf_layers(&self) -> &'static str {
        "encoder.layer"
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, _) => tensor_names(container, role),
            (Container::Safetensors, Role::RankDense) => vec!["pooler.dense.weight".into()],
            (Container::Safetensors, Role::RankDenseBias) => vec!["pooler.dense.bias".into()],
            (Container::Safetensors, Role::RankOut) => vec!["classifier.weight".into()],
            (Container::Safetensors, Role::RankOutBias) => vec!["classifier.bias".into()],
            (Container::Safetensors, _) => hugging_face(role),
        }
    }
}

impl Architecture for XlmRoberta {
    /// GGUF files do not tell the two apart.
    fn gguf_name(&self) -> &'static str {
        Bert.gguf_name()
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["xlm-roberta", "roberta"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = original(hparams, self.gguf_name())?;
        let n_positions = spec.context_length.saturating_sub(N_UNUSED_POSITIONS);
        spec.context_length = hparams.bounded("positions after the padding's", n_positions, MAX_POSITIONS)?;
        spec.embedding.n_positions = Some(spec.context_length);
        Ok(spec)
    }

    fn hf_layers(&self) -> &'static str {
        Bert.hf_layers()
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Gguf { .. }, _) => tensor_names(container, role),
            (Container::Safetensors, Role::PositionEmbedding) => vec![TensorName {
                name: "embeddings.position_embeddings.weight",
                form: TensorForm::After(N_UNUSED_POSITIONS),
            }],
            (Container::Safetensors, _) => hugging_face(role),
        }
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

/// Reads what BERT and XLM-RoBERTa share.
fn original(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    let dense = Dense {
        d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
        activation: hparams.activation("hidden_act", Activation::Gelu)?,
        bias: hparams.has_tensor(Role::UpBias, Some(0)),
    };
    let positions = hparams.value("position_embedding_type").and_then(Value::as_str);
    if let Some(kind) = positions.filter(|kind| *kind != "absolute") {
        return Err(hparams.unsupported(&format!("positions of the kind \"{kind}\"")));
    }
    let mut spec = plain(hparams, architecture, Ffn::Plain(dense))?;
    match (hparams.n_rows(Role::RankOut, None), hparams.is_gguf()) {
        (None, true) => {}
        (None, false) => {
            return Err(hparams.unsupported("an embedding model (only its GGUF file says how rows become a vector)"));
        }
        (Some(1), _) => spec.embeds = Some(ranks(hparams)?),
        (Some(n), _) => return Err(hparams.unsupported(&format!("a classifier with {n} labels"))),
    }
    Ok(spec)
}

/// Reads the head of a cross-encoder. Two token types tell BERT's pairs from RoBERTa's.
fn ranks(hparams: &HParams<'_>) -> Result<EmbeddingHead> {
    if !hparams.has_tensor(Role::RankDense, None) {
        return Err(hparams.unsupported("a head that ranks pairs of texts without its pooler"));
    }
    let pair = match hparams.n_rows(Role::TokenTypes, None) {
        Some(n) if n > 1 => PairForm::OneSeparator,
        Some(_) | None => PairForm::TwoSeparators,
    };
    let before = EmbeddingPrefixes::default();
    Ok(EmbeddingHead { pooling: Pooling::First, dense: Vec::new(), before, rank: Some(RankHead { pair }) })
}

/// Reads what all families here share.
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
        residual_scale: None,
        laurel: None,
    };
    let n_kinds = hparams.n_rows(Role::TokenTypes, None);
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
        embeds: Some(EmbeddingHead { pooling: Pooling::Mean, dense: Vec::new(), before: EmbeddingPrefixes::default(), rank: None }),
        output_scale: None,
        output_bias: false,
        draft: None,
        assistance: None,
        streams: None,
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

/// Names in BERT's safetensors; RoBERTa's are the same but for the classifier, whose names are the common ones.
fn hugging_face(role: Role) -> Vec<TensorName> {
    let name = match role {
        Role::TokenEmbedding => "embeddings.word_embeddings.weight",
        Role::PositionEmbedding => "embeddings.position_embeddings.weight",
        Role::TokenTypes => "embeddings.token_type_embeddings.weight",
        Role::EmbeddingNorm => "embeddings.LayerNorm.weight",
        Role::EmbeddingNormBias => "embeddings.LayerNorm.bias",
        Role::Query => "attention.self.query.weight",
        Role::QueryBias => "attention.self.query.bias",
        Role::Key => "attention.self.key.weight",
        Role::KeyBias => "attention.self.key.bias",
        Role::Value => "attention.self.value.weight",
        Role::ValueBias => "attention.self.value.bias",
        Role::AttentionOut => "attention.output.dense.weight",
        Role::AttentionOutBias => "attention.output.dense.bias",
        Role::MixerNorm => "attention.output.LayerNorm.weight",
        Role::MixerNormBias => "attention.output.LayerNorm.bias",
        Role::Up => "intermediate.dense.weight",
        Role::UpBias => "intermediate.dense.bias",
        Role::Down => "output.dense.weight",
        Role::DownBias => "output.dense.bias",
        Role::FfnNorm => "output.LayerNorm.weight",
        Role::FfnNormBias => "output.LayerNorm.bias",
        _ => return names::plain(Container::Safetensors, role),
    };
    vec![name.into()]
}
