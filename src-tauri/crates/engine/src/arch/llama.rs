//! Llama and its many relatives: RMS norms, rotary grouped-query attention, gated SiLU.

use kernels::{Activation, Mask};

use super::hparams::{HParams, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::{Architecture, keys, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, Ffn, KvSource, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, QkNormForm, Role, Rope,
};

pub(super) struct Llama;

impl Architecture for Llama {
    fn gguf_name(&self) -> &'static str {
        "llama"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["llama"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        if hparams.optional_unbounded(keys::N_EXPERTS)?.is_some_and(|n| n > 0) {
            return Err(hparams.unsupported("a mixture of experts"));
        }
        spec(hparams, self.gguf_name(), false)
    }
}

/// Reads the structure that llama's hyperparameters describe. Layers may differ in heads and widths. `tied` is the family's default
/// for tied embeddings.
pub(super) fn spec(hparams: &HParams<'_>, architecture: &'static str, tied: bool) -> Result<ModelSpec> {
    let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
    let widths = hparams.positive_counts_by_layer(keys::D_FF, n_layers, MAX_WIDTH)?;
    let widths = widths.ok_or_else(|| hparams.missing(&hparams.name(keys::D_FF)))?;
    let dense = Dense {
        d_ff: widths[0],
        activation: hparams.activation("hidden_act", Activation::Silu)?,
        bias: hparams.has_bias("mlp_bias", Role::GateBias)?,
    };
    let mut spec = spec_with(hparams, architecture, tied, Ffn::Gated(dense))?;
    for (layer, d_ff) in spec.layers.iter_mut().zip(widths) {
        layer.ffn = Ffn::Gated(Dense { d_ff, ..dense });
    }
    Ok(spec)
}

/// Reads the structure as `spec` does, with another feed-forward part.
pub(super) fn spec_with(
    hparams: &HParams<'_>,
    architecture: &'static str,
    tied: bool,
    ffn: Ffn,
) -> Result<ModelSpec> {
    let norm = Norm::rms(hparams.real(keys::RMS_EPS, 0.0, 1.0)? as f32);
    spec_normed(hparams, architecture, tied, ffn, norm)
}

/// Reads the structure as `spec_with` does, with another norm.
pub(super) fn spec_normed(
    hparams: &HParams<'_>,
    architecture: &'static str,
    tied: bool,
    ffn: Ffn,
    norm: Norm,
) -> Result<ModelSpec> {
    let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
    let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
    let layer = |attention| LayerSpec {
        norms: NormPosition::Before,
        mixer_norm: norm,
        mixer: Mixer::Attention(attention),
        mixer_post_norm: None,
        ffn_norm: norm,
        ffn: ffn.clone(),
        ffn_post_norm: None,
        per_layer_input: None,
        output_scale: false,
        residual_scale: None,
        laurel: None,
    };
    let attentions = attentions(hparams, d_model, n_layers)?;
    Ok(ModelSpec {
        architecture,
        n_vocab: hparams.n_vocab()?,
        d_model,
        context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding::PLAIN,
        layers: attentions.into_iter().map(layer).collect(),
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

/// Reads the attention of each layer.
fn attentions(hparams: &HParams<'_>, d_model: usize, n_layers: usize) -> Result<Vec<Attention>> {
    let heads = AttentionHeads::read_by_layer(hparams, d_model, n_layers)?;
    let qkv_bias = hparams.has_bias("attention_bias", Role::QueryBias)?;
    let out_bias = hparams.has_bias("attention_bias", Role::AttentionOutBias)?;
    // All layers have the same head size.
    let rope = Rope::Rotary(rope::rotary(hparams, heads[0].head_dim)?);
    let attention =
        |heads| Attention { qkv_bias, out_bias, ..plain_attention(heads, rope.clone()) };
    Ok(heads.into_iter().map(attention).collect())
}

/// Attention with these heads and no extras.
pub(super) fn plain_attention(heads: AttentionHeads, rope: Rope) -> Attention {
    Attention {
        n_heads: heads.n_heads,
        n_kv_heads: heads.n_kv_heads,
        head_dim: heads.head_dim,
        scale: (heads.head_dim as f32).sqrt().recip(),
        rope,
        mask: Mask::Causal,
        window: None,
        softcap: None,
        sinks: false,
        qk_norm: None,
        value_norm: None,
        position_scale: None,
        keys: KvSource::Projected,
        output_gate: false,
        qkv_bias: false,
        out_bias: false,
        qk_norm_form: QkNormForm::Head,
    }
}

/// Heads of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttentionHeads {
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
}

impl AttentionHeads {
    /// Reads the heads of each layer. Their size is the same in all.
    pub(super) fn read_by_layer(
        hparams: &HParams<'_>,
        d_model: usize,
        n_layers: usize,
    ) -> Result<Vec<Self>> {
        let n_heads = hparams.positive_counts_by_layer(keys::N_HEADS, n_layers, MAX_HEADS)?;
        let n_heads = n_heads.ok_or_else(|| hparams.missing(&hparams.name(keys::N_HEADS)))?;
        let n_kv_heads = hparams.positive_counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?;
        let n_kv_heads = n_kv_heads.unwrap_or_else(|| n_heads.clone());
        let head_dim = head_dim(hparams, d_model, n_heads[0])?;
        let heads = n_heads.into_iter().zip(n_kv_heads);
        heads
            .map(|(n_heads, n_kv_heads)| Self { n_heads, n_kv_heads, head_dim }.checked(hparams))
            .collect()
    }

    /// Checks the heads.
    ///
    /// Errors: key-value heads that do not divide the query heads.
    pub(super) fn checked(self, hparams: &HParams<'_>) -> Result<Self> {
        let Self { n_heads, n_kv_heads, .. } = self;
        if n_kv_heads == 0 || n_heads % n_kv_heads != 0 {
            let message = format!("{n_kv_heads} does not divide the {n_heads} attention heads");
            return Err(hparams.wrong(&hparams.name(keys::N_KV_HEADS), message));
        }
        Ok(self)
    }
}

/// Reads the head size. By default an equal share of the width.
pub(super) fn head_dim(hparams: &HParams<'_>, d_model: usize, n_heads: usize) -> Result<usize> {
    let head_dim = match hparams.optional_count(keys::HEAD_DIM, MAX_HEAD_DIM)? {
        Some(head_dim) => head_dim,
        None if d_model.is_multiple_of(n_heads) && d_model / n_heads <= MAX_HEAD_DIM => d_model / n_heads,
        None => {
            let message = format!("{n_heads} heads do not share a width of {d_model}");
            return Err(hparams.wrong(&hparams.name(keys::N_HEADS), message));
        }
    };
    if hparams.optional_count(keys::VALUE_DIM, MAX_HEAD_DIM)?.is_some_and(|n| n != head_dim) {
        return Err(hparams.unsupported("values that are not as wide as keys"));
    }
    Ok(head_dim)
}
