//! Qwen 3.5: gated DeltaNet layers beside gated full attention that turns a quarter of each head; dense or with experts
//! and one that all tokens share.

use kernels::{Activation, HeadOrder};
use weights::Container;

use super::hyper::{Hyper, Key, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_WIDTH};
use super::place::Place;
use super::qwen::experts;
use super::{Architecture, keys, llama, qwen};
use crate::error::Result;
use crate::spec::{Decay, DeltaNet, Dense, Experts, Ffn, Mixer, ModelSpec, Norm, Role, SharedExpert};

pub(super) struct Qwen35;
pub(super) struct Qwen35Moe;

/// Where nothing else says so, every fourth layer attends.
const ATTENTION_INTERVAL: Key = Key { gguf: "full_attention_interval", hf: "full_attention_interval" };
const DEFAULT_INTERVAL: usize = 4;
/// Blocks at a file's end that guess the token after the next; plain decoding leaves them out.
const N_GUESSING: Key = Key { gguf: "nextn_predict_layers", hf: "" };
const KERNEL: Key = Key { gguf: "ssm.conv_kernel", hf: "linear_conv_kernel_dim" };
const N_K_HEADS: Key = Key { gguf: "ssm.group_count", hf: "linear_num_key_heads" };
const N_V_HEADS: Key = Key { gguf: "ssm.time_step_rank", hf: "linear_num_value_heads" };
const K_DIM: Key = Key { gguf: "ssm.state_size", hf: "linear_key_head_dim" };
const V_WIDTH: Key = Key { gguf: "ssm.inner_size", hf: "" };
const V_DIM: Key = Key { gguf: "", hf: "linear_value_head_dim" };
/// A convolution with more taps would be a mistake.
const MAX_KERNEL: usize = 64;

impl Architecture for Qwen35 {
    fn gguf_name(&self) -> &'static str {
        "qwen35"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_5_text", "qwen3_5"]
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hyper.count(keys::D_FF, MAX_WIDTH)?,
            activation: hyper.activation("hidden_act", Activation::Silu)?,
            bias: false,
        };
        spec(hyper, self.gguf_name(), Ffn::Gated(dense))
    }

    fn places(&self, container: Container, role: Role) -> Vec<Place> {
        places(container, role)
    }
}

impl Architecture for Qwen35Moe {
    fn gguf_name(&self) -> &'static str {
        "qwen35moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_5_moe_text", "qwen3_5_moe"]
    }

    fn spec(&self, hyper: &Hyper<'_>) -> Result<ModelSpec> {
        let shared = SharedExpert { d_ff: hyper.count(keys::SHARED_D_FF, MAX_WIDTH)? };
        let experts = Experts { shared: Some(shared), ..experts(hyper)? };
        spec(hyper, self.gguf_name(), Ffn::Experts(experts))
    }

    fn places(&self, container: Container, role: Role) -> Vec<Place> {
        places(container, role)
    }
}

fn spec(hyper: &Hyper<'_>, architecture: &'static str, ffn: Ffn) -> Result<ModelSpec> {
    let mut spec = llama::spec_with(hyper, architecture, false, ffn)?;
    let n_guessing = hyper.optional_unbounded(N_GUESSING)?.unwrap_or(0);
    let n_layers = spec.layers.len() as u64;
    if n_guessing >= n_layers {
        let message = format!("{n_guessing} of {n_layers} layers");
        return Err(hyper.wrong(&hyper.name(N_GUESSING), message));
    }
    spec.layers.truncate((n_layers - n_guessing) as usize);
    // a GGUF stores weight + 1
    let norm = if hyper.is_gguf() { spec.output_norm } else { spec.output_norm.centred() };
    let recurrent = recurrent(hyper, spec.layers.len())?;
    let delta = delta_net(hyper, spec.output_norm)?;
    spec.output_norm = norm;
    for (layer, is_recurrent) in spec.layers.iter_mut().zip(recurrent) {
        layer.mixer_norm = norm;
        layer.ffn_norm = norm;
        if is_recurrent {
            layer.mixer = Mixer::DeltaNet(delta.clone());
        } else if let Some(attention) = layer.mixer.attention_mut() {
            attention.qk_norm = Some(norm);
            attention.output_gate = hyper.flag("attn_output_gate", true)?;
            attention.turn_halves();
        }
    }
    Ok(spec)
}

fn recurrent(hyper: &Hyper<'_>, n_layers: usize) -> Result<Vec<bool>> {
    if let Some(flags) = hyper.flags_by_layer("attention.recurrent_layers", n_layers)? {
        return Ok(flags);
    }
    if let Some(types) = hyper.layer_types(n_layers)? {
        return Ok(types.iter().map(|kind| *kind == "linear_attention").collect());
    }
    let interval = hyper.optional_count(ATTENTION_INTERVAL, MAX_LAYERS)?.unwrap_or(DEFAULT_INTERVAL);
    Ok((1..=n_layers).map(|n| n % interval != 0).collect())
}

fn delta_net(hyper: &Hyper<'_>, norm: Norm) -> Result<DeltaNet> {
    let n_k_heads = hyper.count(N_K_HEADS, MAX_HEADS)?;
    let n_v_heads = hyper.count(N_V_HEADS, MAX_HEADS)?;
    let k_dim = hyper.count(K_DIM, MAX_HEAD_DIM)?;
    if n_v_heads % n_k_heads != 0 {
        let message = format!("{n_k_heads} key heads do not divide it");
        return Err(hyper.wrong(&hyper.name(N_V_HEADS), message));
    }
    let v_dim = if hyper.is_gguf() {
        let width = hyper.count(V_WIDTH, MAX_WIDTH)?;
        if width % n_v_heads != 0 || width / n_v_heads > MAX_HEAD_DIM {
            let message = format!("{n_v_heads} heads do not share {width}");
            return Err(hyper.wrong(&hyper.name(V_WIDTH), message));
        }
        width / n_v_heads
    } else {
        let v_dim = hyper.count(V_DIM, MAX_HEAD_DIM)?;
        hyper.note_count(V_WIDTH, n_v_heads * v_dim);
        v_dim
    };
    Ok(DeltaNet {
        n_k_heads,
        n_v_heads,
        k_dim,
        v_dim,
        kernel: hyper.count(KERNEL, MAX_KERNEL)?,
        order: if hyper.is_gguf() { HeadOrder::Tiled } else { HeadOrder::Grouped },
        decay: if hyper.is_gguf() { Decay::Factor } else { Decay::Log },
        norm,
    })
}

fn places(container: Container, role: Role) -> Vec<Place> {
    match (container, role) {
        (Container::Gguf { .. }, Role::FfnNorm) => vec!["post_attention_norm.weight".into()],
        _ => qwen::places(container, role),
    }
}
