//! LFM2: gated short convolutions, and attention with normed heads in a few layers; dense, or with experts.

use kernels::{Activation, ExpertScoring, RopeStyle};
use weights::Container;
use weights::write::OwnedValue;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_FACTOR, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names, rope};
use crate::error::Result;
use crate::spec::{
    Attention, Dense, Embedding, ExpertForm, Experts, Ffn, LayerSpec, Mixer, ModelSpec, Norm, NormPosition, Role, Rope, Rotary,
    Router, RouterInput, ShortConv,
};

pub(super) struct Lfm2;
pub(super) struct Lfm2Moe;

const EPS: HParamKey = HParamKey { gguf: keys::RMS_EPS.gguf, hf: "norm_eps" };
const KERNEL: HParamKey = HParamKey { gguf: "shortconv.l_cache", hf: "conv_L_cache" };
/// Layers before those with experts.
const N_DENSE: HParamKey = HParamKey { gguf: "leading_dense_block_count", hf: "num_dense_layers" };
const SCORING: HParamKey = HParamKey { gguf: "expert_gating_func", hf: "" };
/// Number of the sigmoid in a GGUF.
const SIGMOID: u64 = 2;
/// A GGUF has no key for another factor than 1.
const WEIGHT_SCALE: HParamKey = HParamKey { gguf: "", hf: "routed_scaling_factor" };
const SUM_EPSILON: f32 = 1e-6;
/// More taps would be a mistake.
const MAX_KERNEL: usize = 64;

impl Architecture for Lfm2 {
    fn gguf_name(&self) -> &'static str {
        "lfm2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["lfm2"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        spec(hparams, self.gguf_name(), d_ff(hparams)?)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let name = match (container, role) {
            // Named for the embedding, but norms the output.
            (Container::Gguf { .. }, Role::OutputNorm) => "token_embd_norm.weight",
            (Container::Gguf { .. }, _) => return names::plain(container, role),
            (Container::Safetensors, Role::OutputNorm) => "embedding_norm.weight",
            (Container::Safetensors, Role::MixerNorm) => "operator_norm.weight",
            (Container::Safetensors, Role::FfnNorm) => "ffn_norm.weight",
            (Container::Safetensors, Role::QueryNorm) => "self_attn.q_layernorm.weight",
            (Container::Safetensors, Role::KeyNorm) => "self_attn.k_layernorm.weight",
            (Container::Safetensors, Role::AttentionOut) => "self_attn.out_proj.weight",
            (Container::Safetensors, Role::Gate) => "feed_forward.w1.weight",
            (Container::Safetensors, Role::Up) => "feed_forward.w3.weight",
            (Container::Safetensors, Role::Down) => "feed_forward.w2.weight",
            (Container::Safetensors, other) => names::hugging_face(other),
        };
        vec![name.into()]
    }
}

impl Architecture for Lfm2Moe {
    fn gguf_name(&self) -> &'static str {
        "lfm2moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["lfm2_moe"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[
            ("norm_eps", 1e-5),
            ("conv_L_cache", 3.0),
            ("num_dense_layers", 2.0),
            ("max_position_embeddings", 128_000.0),
            ("rope_theta", 1e6),
        ]
    }

    /// The width of dense layers is used as given.
    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = spec(hparams, self.gguf_name(), hparams.count(keys::D_FF, MAX_WIDTH)?)?;
        let n_dense = hparams.optional_unbounded(N_DENSE)?.unwrap_or(0);
        let n_dense = usize::try_from(n_dense).unwrap_or(usize::MAX).min(spec.layers.len());
        if n_dense < spec.layers.len() {
            let experts = experts(hparams, n_dense)?;
            for layer in &mut spec.layers[n_dense..] {
                layer.ffn = Ffn::Experts(experts.clone());
            }
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let name = match (container, role) {
            (Container::Safetensors, Role::Router) => "feed_forward.gate.weight",
            (Container::Safetensors, Role::RouterSelectionBias) => "feed_forward.expert_bias",
            (Container::Safetensors, Role::ExpertGate) => "feed_forward.experts.#.w1.weight",
            (Container::Safetensors, Role::ExpertUp) => "feed_forward.experts.#.w3.weight",
            (Container::Safetensors, Role::ExpertDown) => "feed_forward.experts.#.w2.weight",
            _ => return Lfm2.tensor_names(container, role),
        };
        vec![name.into()]
    }
}

/// Reads the experts: sigmoid scores, whose bias chooses only.
fn experts(hparams: &HParams<'_>, first: usize) -> Result<Experts> {
    if hparams.optional_unbounded(SCORING)?.is_some_and(|kind| kind != SIGMOID) {
        return Err(hparams.unsupported("another score of experts than a sigmoid (expert_gating_func)"));
    }
    hparams.note(SCORING.gguf, OwnedValue::U32(SIGMOID as u32));
    let scale = hparams.optional_real(WEIGHT_SCALE, 0.0, MAX_FACTOR)?.filter(|x| *x != 1.0);
    let n_experts = hparams.count(keys::N_EXPERTS, MAX_EXPERTS)?;
    Ok(Experts {
        n_experts,
        n_used: hparams.count(keys::N_EXPERTS_USED, n_experts)?,
        d_ff: hparams.count(keys::EXPERT_D_FF, MAX_WIDTH)?,
        activation: Activation::Silu,
        renormalize: hparams.flag("norm_topk_prob", true)?,
        expert_scale: false,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Normed,
        shared: None,
        form: ExpertForm::Gated,
        router: Router {
            scoring: ExpertScoring::Sigmoid,
            selection_bias: match hparams.is_gguf() {
                true => hparams.has_tensor(Role::RouterSelectionBias, Some(first)),
                false => hparams.flag("use_expert_bias", true)?,
            },
            groups: None,
            sum_epsilon: SUM_EPSILON,
            scale: scale.map(|x| x as f32),
        },
    })
}

/// Reads the structure with dense feed-forward parts.
fn spec(hparams: &HParams<'_>, architecture: &'static str, d_ff: usize) -> Result<ModelSpec> {
    let n_layers = hparams.count(keys::N_LAYERS, MAX_LAYERS)?;
    let d_model = hparams.count(keys::D_MODEL, MAX_WIDTH)?;
    let norm = Norm::rms(hparams.real(EPS, 0.0, 1.0)? as f32);
    let conv =
        ShortConv { kernel: hparams.count(KERNEL, MAX_KERNEL)?, bias: hparams.flag("conv_bias", false)? };
    let n_heads = hparams.count(keys::N_HEADS, MAX_HEADS)?;
    let head_dim = llama::head_dim(hparams, d_model, n_heads)?;
    let attends = attends(hparams, n_layers)?;
    let dense = Dense { d_ff, activation: Activation::Silu, bias: false };
    let mut layers = Vec::with_capacity(n_layers);
    for n_kv_heads in attends {
        let mixer = match n_kv_heads {
            None => Mixer::ShortConv(conv.clone()),
            Some(n_kv_heads) => {
                let heads = llama::AttentionHeads { n_heads, n_kv_heads, head_dim }.checked(hparams)?;
                let rotary = rope::rotary(hparams, head_dim)?;
                let rope = Rope::Rotary(Rotary { style: RopeStyle::Half, ..rotary });
                Mixer::Attention(Attention { qk_norm: Some(norm), ..llama::plain_attention(heads, rope) })
            }
        };
        layers.push(LayerSpec {
            norms: NormPosition::Before,
            mixer_norm: norm,
            mixer,
            mixer_post_norm: None,
            ffn_norm: norm,
            ffn: Ffn::Gated(dense),
            ffn_post_norm: None,
            per_layer_input: None,
            output_scale: false,
            residual_scale: None,
            laurel: None,
        });
    }
    Ok(ModelSpec {
        architecture,
        n_vocab: hparams.n_vocab()?,
        d_model,
        context_length: hparams.count(keys::CONTEXT, MAX_POSITIONS)?,
        embedding: Embedding::PLAIN,
        layers,
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

/// Returns each layer's key-value heads. `None` for a convolution.
fn attends(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<Option<usize>>> {
    let counts = hparams.counts_by_layer(keys::N_KV_HEADS, n_layers, MAX_HEADS)?;
    let Some(counts) = counts else { return Err(hparams.missing(&hparams.name(keys::N_KV_HEADS))) };
    let listed = hparams.value("full_attn_idxs").and_then(|list| list.as_array());
    let is_attention: Vec<bool> = match (hparams.layer_types(n_layers)?, listed) {
        (Some(types), _) => types.iter().map(|kind| *kind == "full_attention").collect(),
        (None, Some(listed)) => {
            (0..n_layers as u64).map(|layer| listed.iter().any(|l| l.as_u64() == Some(layer))).collect()
        }
        (None, None) => counts.iter().map(|n| *n > 0).collect(),
    };
    let counts: Vec<Option<usize>> =
        counts.into_iter().zip(is_attention).map(|(n, attends)| attends.then_some(n)).collect();
    // 0 stands for a convolution.
    hparams.note_counts(keys::N_KV_HEADS, &counts.iter().map(|n| n.unwrap_or(0)).collect::<Vec<_>>());
    Ok(counts)
}

/// Reads the feed-forward width. A config may give the width before it is cut to two thirds and rounded up.
fn d_ff(hparams: &HParams<'_>) -> Result<usize> {
    if hparams.is_gguf() {
        return hparams.count(keys::D_FF, MAX_WIDTH);
    }
    let key = |hf| HParamKey { gguf: "", hf };
    let d_ff = match hparams.optional_count(key("block_ff_dim"), MAX_WIDTH)? {
        Some(d_ff) => d_ff,
        None => hparams.count(keys::D_FF, MAX_WIDTH)?,
    };
    let d_ff = if hparams.flag("block_auto_adjust_ff_dim", true)? {
        let multiplier = hparams.optional_real(key("block_ffn_dim_multiplier"), 0.0, MAX_FACTOR)?;
        let multiple = hparams.optional_count(key("block_multiple_of"), MAX_WIDTH)?.unwrap_or(256);
        let cut = (multiplier.unwrap_or(1.0) * (2 * d_ff / 3) as f64) as usize;
        cut.next_multiple_of(multiple)
    } else {
        d_ff
    };
    hparams.note_count(keys::D_FF, d_ff);
    hparams.bounded("block_ff_dim", d_ff, MAX_WIDTH)
}
