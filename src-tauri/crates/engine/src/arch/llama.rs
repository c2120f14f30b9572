//! Llama and everything built like it: RMS norms, rotary grouped-query attention, gated SiLU.

use weights::Container;

use super::hyper::{Hyper, Key, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::{Architecture, names, rope};
use crate::error::Result;
use crate::spec::{Attention, Ffn, LayerSpec, ModelSpec, Norm, Role, Rope};

pub(super) struct Llama;

impl Architecture for Llama {
    fn gguf_name(&self) -> &'static str {
        "llama"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["llama"]
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        spec(hyper, self.gguf_name(), false)
    }

    fn tensor_name(&self, container: Container, role: Role, layer: Option<usize>) -> String {
        names::decoder(container, role, layer)
    }
}

const N_LAYERS: Key = Key { gguf: "block_count", hf: "num_hidden_layers" };
const D_MODEL: Key = Key { gguf: "embedding_length", hf: "hidden_size" };
const D_FF: Key = Key { gguf: "feed_forward_length", hf: "intermediate_size" };
const N_HEADS: Key = Key { gguf: "attention.head_count", hf: "num_attention_heads" };
const N_KV_HEADS: Key = Key { gguf: "attention.head_count_kv", hf: "num_key_value_heads" };
const HEAD_DIM: Key = Key { gguf: "attention.key_length", hf: "head_dim" };
const VALUE_DIM: Key = Key { gguf: "attention.value_length", hf: "" };
const EPS: Key = Key { gguf: "attention.layer_norm_rms_epsilon", hf: "rms_norm_eps" };
const CONTEXT: Key = Key { gguf: "context_length", hf: "max_position_embeddings" };
const N_EXPERTS: Key = Key { gguf: "expert_count", hf: "" };

/// The structure that llama's hyperparameters describe: the same in every layer. `tied` is the family's habit
/// where a config doesn't say whether the output matrix is the embedding table.
pub(super) fn spec(hyper: &Hyper<'_>, architecture: &'static str, tied: bool) -> Result<ModelSpec> {
    if hyper.optional_unbounded(N_EXPERTS)?.is_some_and(|n| n > 0) {
        return Err(hyper.unsupported("a mixture of experts"));
    }
    let n_layers = hyper.count(N_LAYERS, MAX_LAYERS)?;
    let d_model = hyper.count(D_MODEL, MAX_WIDTH)?;
    let norm = Norm::Rms { eps: hyper.real(EPS, 0.0, 1.0)? as f32 };
    let layer = LayerSpec {
        attention_norm: norm,
        attention: attention(hyper, d_model)?,
        ffn_norm: norm,
        ffn: Ffn::Gated {
            d_ff: hyper.count(D_FF, MAX_WIDTH)?,
            activation: hyper.activation("hidden_act")?,
            bias: hyper.has_bias("mlp_bias", Role::GateBias)?,
        },
    };
    Ok(ModelSpec {
        architecture,
        n_vocab: hyper.n_vocab()?,
        d_model,
        context_length: hyper.count(CONTEXT, MAX_POSITIONS)?,
        layers: vec![layer; n_layers],
        output_norm: norm,
        tied_embeddings: hyper.tied_embeddings(tied)?,
    })
}

fn attention(hyper: &Hyper<'_>, d_model: usize) -> Result<Attention> {
    let n_heads = hyper.count(N_HEADS, MAX_HEADS)?;
    let n_kv_heads = hyper.optional_count(N_KV_HEADS, n_heads)?.unwrap_or(n_heads);
    if n_heads % n_kv_heads != 0 {
        let message = format!("{n_kv_heads} does not divide the {n_heads} attention heads");
        return Err(hyper.wrong(&hyper.name(N_KV_HEADS), message));
    }
    let head_dim = match hyper.optional_count(HEAD_DIM, MAX_HEAD_DIM)? {
        Some(head_dim) => head_dim,
        None if d_model.is_multiple_of(n_heads) && d_model / n_heads <= MAX_HEAD_DIM => d_model / n_heads,
        None => {
            let message = format!("{n_heads} heads do not share a width of {d_model}");
            return Err(hyper.wrong(&hyper.name(N_HEADS), message));
        }
    };
    if hyper.optional_count(VALUE_DIM, MAX_HEAD_DIM)?.is_some_and(|n| n != head_dim) {
        return Err(hyper.unsupported("values of another width than keys"));
    }
    Ok(Attention {
        n_heads,
        n_kv_heads,
        head_dim,
        scale: (head_dim as f32).sqrt().recip(),
        rope: Rope::Rotary(rope::rotary(hyper, head_dim)?),
        window: None,
        qkv_bias: hyper.has_bias("attention_bias", Role::QueryBias)?,
        out_bias: hyper.has_bias("attention_bias", Role::AttentionOutBias)?,
    })
}
