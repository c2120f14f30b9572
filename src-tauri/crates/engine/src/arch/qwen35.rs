//! Qwen 3.5: gated DeltaNet layers beside gated full attention with partial rotation; dense, or with experts and a
//! shared expert.

use kernels::{Activation, HeadOrder, Mask};
use weights::Container;

use super::hparams::{HParams, HParamKey, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::qwen::experts;
use super::{Architecture, keys, llama, qwen};
use crate::error::Result;
use crate::spec::{
    Decay, DeltaNet, Dense, DraftBlock, Experts, Ffn, LayerSpec, MTP_LAYERS, Mixer, ModelSpec, Norm, Role, SharedExpert,
    SharedWeight, TensorOwner,
};

pub(super) struct Qwen35;
pub(super) struct Qwen35Moe;

/// Interval of attention layers, every fourth by default.
const ATTENTION_INTERVAL: HParamKey = HParamKey { gguf: "full_attention_interval", hf: "full_attention_interval" };
const DEFAULT_INTERVAL: usize = 4;
/// Which layers are recurrent. It holds where the layers follow no interval.
const RECURRENT_LAYERS: &str = "attention.recurrent_layers";
/// Layers at a file's end for multi-token prediction: draft blocks. Plain decoding leaves them out.
const N_DRAFT_LAYERS: HParamKey = HParamKey { gguf: "nextn_predict_layers", hf: "" };
const KERNEL: HParamKey = HParamKey { gguf: "ssm.conv_kernel", hf: "linear_conv_kernel_dim" };
const N_K_HEADS: HParamKey = HParamKey { gguf: "ssm.group_count", hf: "linear_num_key_heads" };
const N_V_HEADS: HParamKey = HParamKey { gguf: "ssm.time_step_rank", hf: "linear_num_value_heads" };
const K_DIM: HParamKey = HParamKey { gguf: "ssm.state_size", hf: "linear_key_head_dim" };
const V_WIDTH: HParamKey = HParamKey { gguf: "ssm.inner_size", hf: "" };
const V_DIM: HParamKey = HParamKey { gguf: "", hf: "linear_value_head_dim" };
/// More taps would be a mistake.
const MAX_KERNEL: usize = 64;

impl Architecture for Qwen35 {
    fn gguf_name(&self) -> &'static str {
        "qwen35"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_5_text", "qwen3_5"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::Silu)?,
            bias: false,
        };
        spec(hparams, self.gguf_name(), Ffn::Gated(dense))
    }

    fn draft_block(&self, hparams: &HParams<'_>, spec: &ModelSpec) -> Result<Option<DraftBlock>> {
        draft_block(hparams, spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

impl Architecture for Qwen35Moe {
    fn gguf_name(&self) -> &'static str {
        "qwen35moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_5_moe_text", "qwen3_5_moe"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let shared = SharedExpert { d_ff: hparams.count(keys::SHARED_D_FF, MAX_WIDTH)?, weight: SharedWeight::Gate };
        let experts = Experts { shared: Some(shared), ..experts(hparams)? };
        spec(hparams, self.gguf_name(), Ffn::Experts(experts))
    }

    fn draft_block(&self, hparams: &HParams<'_>, spec: &ModelSpec) -> Result<Option<DraftBlock>> {
        draft_block(hparams, spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

/// Reads the structure, with a feed-forward part.
pub(super) fn spec(hparams: &HParams<'_>, architecture: &'static str, ffn: Ffn) -> Result<ModelSpec> {
    let mut spec = llama::spec_with(hparams, architecture, false, ffn)?;
    let n_draft_layers = hparams.optional_unbounded(N_DRAFT_LAYERS)?.unwrap_or(0);
    let n_layers = spec.layers.len() as u64;
    if n_draft_layers >= n_layers {
        let message = format!("{n_draft_layers} of {n_layers} layers");
        return Err(hparams.wrong(&hparams.name(N_DRAFT_LAYERS), message));
    }
    spec.layers.truncate((n_layers - n_draft_layers) as usize);
    // A GGUF stores weight + 1.
    let norm = if hparams.is_gguf() { spec.output_norm } else { spec.output_norm.centred() };
    let recurrent = recurrent(hparams, spec.layers.len())?;
    let delta = delta_net(hparams, spec.output_norm)?;
    spec.output_norm = norm;
    for (layer, is_recurrent) in spec.layers.iter_mut().zip(recurrent) {
        layer.mixer_norm = norm;
        layer.ffn_norm = norm;
        if is_recurrent {
            layer.mixer = Mixer::DeltaNet(delta.clone());
        } else if let Some(attention) = layer.mixer.attention_mut() {
            attention.qk_norm = Some(norm);
            attention.output_gate = hparams.flag("attn_output_gate", true)?;
            attention.set_rope_half();
        }
    }
    Ok(spec)
}

/// The block's layer is one of the model's attention layers with other weights. Of several blocks the first is used.
pub(super) fn draft_block(hparams: &HParams<'_>, spec: &ModelSpec) -> Result<Option<DraftBlock>> {
    let layer_number = match hparams.is_gguf() {
        true if hparams.optional_unbounded(N_DRAFT_LAYERS)?.unwrap_or(0) == 0 => return Ok(None),
        true => spec.layers.len(),
        false => MTP_LAYERS,
    };
    let attends = |layer: &&LayerSpec| matches!(layer.mixer, Mixer::Attention(_));
    let Some(mut layer) = spec.layers.iter().find(attends).cloned() else { return Ok(None) };
    if !hparams.has_tensor(Role::DraftProjection, Some(layer_number)) {
        return Ok(None);
    }
    if let Some(attention) = layer.mixer.attention_mut() {
        attention.mask = Mask::CausalAfterFirst;
    }
    hparams.note_count(N_DRAFT_LAYERS, 1);
    hparams.note_count(keys::N_LAYERS, spec.layers.len() + 1);
    let is_recurrent = |layer: &LayerSpec| matches!(layer.mixer, Mixer::DeltaNet(_));
    note_recurrent(hparams, &spec.layers.iter().map(is_recurrent).collect::<Vec<_>>(), &[false]);
    let owner = |role| match hparams.has_tensor(role, Some(layer_number)) {
        true => TensorOwner::Block,
        false => TensorOwner::Model,
    };
    Ok(Some(DraftBlock {
        layer_number,
        layer,
        norm: spec.output_norm,
        embedding: owner(Role::DraftEmbedding),
        output: owner(Role::DraftOutput),
        output_norm: owner(Role::DraftOutputNorm),
        n_common_tokens: spec.n_vocab,
    }))
}

fn recurrent(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    if let Some(flags) = hparams.flags_by_layer(RECURRENT_LAYERS, n_layers)? {
        return Ok(flags);
    }
    if let Some(types) = hparams.layer_types(n_layers)? {
        let recurrent: Vec<bool> = types.iter().map(|kind| *kind == "linear_attention").collect();
        note_recurrent(hparams, &recurrent, &[]);
        return Ok(recurrent);
    }
    let interval = hparams.optional_count(ATTENTION_INTERVAL, MAX_LAYERS)?.unwrap_or(DEFAULT_INTERVAL);
    Ok((1..=n_layers).map(|n| n % interval != 0).collect())
}

/// Notes which layers are recurrent: one by one, with those of draft blocks, and by the interval of the others.
fn note_recurrent(hparams: &HParams<'_>, recurrent: &[bool], of_drafts: &[bool]) {
    let interval = recurrent.iter().position(|is_recurrent| !is_recurrent).map_or(recurrent.len() + 1, |first| first + 1);
    let follows = |(layer, is_recurrent): (usize, &bool)| ((layer + 1) % interval != 0) == *is_recurrent;
    if recurrent.iter().enumerate().all(follows) {
        hparams.note_count(ATTENTION_INTERVAL, interval);
    }
    hparams.note_flags(RECURRENT_LAYERS, &[recurrent, of_drafts].concat());
}

fn delta_net(hparams: &HParams<'_>, norm: Norm) -> Result<DeltaNet> {
    let n_k_heads = hparams.count(N_K_HEADS, MAX_HEADS)?;
    let n_v_heads = hparams.count(N_V_HEADS, MAX_HEADS)?;
    let k_dim = hparams.count(K_DIM, MAX_HEAD_DIM)?;
    if n_v_heads % n_k_heads != 0 {
        let message = format!("{n_k_heads} key heads do not divide it");
        return Err(hparams.wrong(&hparams.name(N_V_HEADS), message));
    }
    let v_dim = if hparams.is_gguf() {
        let width = hparams.count(V_WIDTH, MAX_WIDTH)?;
        if width % n_v_heads != 0 || width / n_v_heads > MAX_HEAD_DIM {
            let message = format!("{n_v_heads} heads do not share {width}");
            return Err(hparams.wrong(&hparams.name(V_WIDTH), message));
        }
        width / n_v_heads
    } else {
        let v_dim = hparams.count(V_DIM, MAX_HEAD_DIM)?;
        hparams.note_count(V_WIDTH, n_v_heads * v_dim);
        v_dim
    };
    Ok(DeltaNet {
        n_k_heads,
        n_v_heads,
        k_dim,
        v_dim,
        kernel: hparams.count(KERNEL, MAX_KERNEL)?,
        order: if hparams.is_gguf() { HeadOrder::Tiled } else { HeadOrder::Grouped },
        decay: if hparams.is_gguf() { Decay::Factor } else { Decay::Log },
        norm,
    })
}

pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    match (container, role) {
        (Container::Gguf { .. }, Role::FfnNorm) => vec!["post_attention_norm.weight".into()],
        _ => qwen::tensor_names(container, role),
    }
}
