//! Multi-head latent attention by its hyperparameters.

use kernels::RopeStyle;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::{TensorForm, TensorName};
use super::{keys, llama, names, rope, ssm};
use crate::error::Result;
use crate::spec::{Embedding, Ffn, LatentAttention, Mixer, ModelSpec, Norm, QueryRank, Role, Rope, Rotary};

const QUERY_RANK: HParamKey = HParamKey { gguf: "attention.q_lora_rank", hf: "q_lora_rank" };
const RANK: HParamKey = HParamKey { gguf: "attention.kv_lora_rank", hf: "kv_lora_rank" };
const ROPE_DIM: HParamKey = HParamKey { gguf: "rope.dimension_count", hf: "qk_rope_head_dim" };
const NOPE_DIM: HParamKey = HParamKey { gguf: "", hf: "qk_nope_head_dim" };
const VALUE_DIM: HParamKey = HParamKey { gguf: "attention.value_length_mla", hf: "v_head_dim" };
/// Size of a head: both of its parts.
const KEY_DIM: HParamKey = HParamKey { gguf: "attention.key_length_mla", hf: "" };
/// The same in files without keys for the compressed cache.
const OLD_KEY_DIM: HParamKey = HParamKey { gguf: "attention.key_length", hf: "" };
const OLD_VALUE_DIM: HParamKey = HParamKey { gguf: "attention.value_length", hf: "" };

/// The kernels' own bound on a head, which the latent and the rotated part are for the cache.
const MAX_CACHED_DIM: usize = 576;

/// Epsilon of the norms between projections, whatever that of the others is.
const EPS: f32 = 1e-6;

/// Reads a model whose layers have this attention and `ffn`.
pub(super) fn spec(
    hparams: &HParams<'_>,
    architecture: &'static str,
    (tied, ffn): (bool, Ffn),
    style: RopeStyle,
) -> Result<ModelSpec> {
    let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
    let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
    let norm = Norm::rms(hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32);
    let attention = attention(hparams, d_model, style)?;
    Ok(ModelSpec {
        architecture,
        n_vocab: hparams.n_vocab()?,
        d_model,
        context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding::PLAIN,
        layers: vec![ssm::layer(norm, Mixer::Latent(attention), ffn); n_layers],
        output_norm: norm,
        tied_embeddings: hparams.tied_embeddings(tied)?,
        output_softcap: None,
        embeds: None,
        output_scale: None,
        output_bias: false,
        draft: None,
        assistance: None,
        streams: None,
    })
}

fn attention(hparams: &HParams<'_>, d_model: usize, style: RopeStyle) -> Result<LatentAttention> {
    if hparams.flag("attention_bias", false)? {
        return Err(hparams.unsupported("biases of a latent attention (attention_bias)"));
    }
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let rank = hparams.count(RANK, MAX_CACHED_DIM)?;
    let rope_dim = hparams.count(ROPE_DIM, MAX_HEAD_DIM)?;
    let (nope_dim, value_dim) = dims(hparams, d_model, n_heads, rope_dim)?;
    if rank + rope_dim > MAX_CACHED_DIM {
        let what = format!("a latent of {rank} with {rope_dim} rotated elements, beyond {MAX_CACHED_DIM}");
        return Err(hparams.unsupported(&what));
    }
    hparams.note_count(OLD_KEY_DIM, rank + rope_dim);
    hparams.note_count(OLD_VALUE_DIM, rank);
    hparams.note_count(keys::N_KV_HEADS, 1);
    hparams.note_count(KEY_DIM, nope_dim + rope_dim);
    let query_rank = match hparams.optional_unbounded(QUERY_RANK)?.filter(|n| *n > 0) {
        Some(_) => Some(QueryRank { rank: hparams.count(QUERY_RANK, MAX_WIDTH)?, norm: Norm::rms(EPS) }),
        None => None,
    };
    let rotary = Rotary { style, ..rope::rotary(hparams, rope_dim)? };
    let (rotary, sharpening) = rope::latent_sharpening(hparams, rotary)?;
    let heads = llama::AttentionHeads { n_heads, n_kv_heads: 1, head_dim: rank + rope_dim };
    let mut attention = llama::plain_attention(heads, Rope::Rotary(rotary));
    attention.scale = sharpening / ((nope_dim + rope_dim) as f32).sqrt();
    Ok(LatentAttention { attention, query_rank, rank, nope_dim, rope_dim, value_dim, norm: Norm::rms(EPS) })
}

/// Reads the sizes of the unrotated part of a head and of a value.
fn dims(hparams: &HParams<'_>, d_model: usize, n_heads: usize, rope_dim: usize) -> Result<(usize, usize)> {
    if !hparams.is_gguf() {
        let nope_dim = hparams.count(NOPE_DIM, MAX_HEAD_DIM)?;
        return Ok((nope_dim, hparams.count(VALUE_DIM, MAX_HEAD_DIM)?));
    }
    let key_dim = match hparams.optional_count(KEY_DIM, 2 * MAX_HEAD_DIM)? {
        Some(dim) => dim,
        None => hparams.count(OLD_KEY_DIM, 2 * MAX_HEAD_DIM)?,
    };
    if key_dim <= rope_dim {
        let message = format!("{key_dim} leaves nothing beside {rope_dim} rotated elements");
        return Err(hparams.wrong(&hparams.name(KEY_DIM), message));
    }
    let value_dim = match hparams.optional_count(VALUE_DIM, MAX_HEAD_DIM)? {
        Some(dim) => dim,
        None => match hparams.optional_count(OLD_VALUE_DIM, MAX_HEAD_DIM)? {
            Some(dim) => dim,
            None => hparams.bounded(&hparams.name(keys::N_HEADS), d_model / n_heads, MAX_HEAD_DIM)?,
        },
    };
    Ok((key_dim - rope_dim, value_dim))
}

/// Names of the projections. GGUFs have the second one of keys and values in two tensors, or in one as Hugging Face.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    const DOWN: &[Role] = &[Role::LatentDown, Role::LatentRope];
    let plain = names::plain(container, role);
    let formed = |form| plain.iter().map(|name| TensorName { form, ..name.clone() }).collect();
    match (container, role) {
        (_, Role::LatentDown | Role::LatentRope) => formed(TensorForm::Rows(DOWN)),
        (Container::Safetensors, Role::LatentKeys) => formed(TensorForm::HeadKeys),
        (Container::Safetensors, Role::LatentValues) => formed(TensorForm::HeadValues),
        (Container::Gguf { .. }, Role::LatentKeys) => {
            [plain, vec![TensorName { name: "attn_kv_b.weight", form: TensorForm::HeadKeys }]].concat()
        }
        (Container::Gguf { .. }, Role::LatentValues) => {
            [plain, vec![TensorName { name: "attn_kv_b.weight", form: TensorForm::HeadValues }]].concat()
        }
        // Without a rank there is one matrix, under its plain name.
        (Container::Safetensors, Role::LatentQuery) => {
            [plain, vec!["self_attn.q_proj.weight".into()]].concat()
        }
        (Container::Gguf { .. }, Role::LatentQuery) => [plain, vec!["attn_q.weight".into()]].concat(),
        _ => plain,
    }
}
