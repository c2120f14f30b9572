//! Qwen 2, 2.5, 3 and 3-VL: llama with query, key and value biases or with head norms; dense or with experts.

use kernels::Activation;
use weights::Container;

use super::hparams::{HParams, MAX_EXPERTS, MAX_LAYERS, MAX_POSITIONS, MAX_WIDTH};
use super::tensor_names::{TensorForm, TensorName};
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{EmbeddingPrefixes, ExpertForm, Experts, Ffn, ModelSpec, Role, Router, RouterInput};

pub(super) struct Qwen2;
pub(super) struct Qwen3;
pub(super) struct Qwen3Moe;
pub(super) struct Qwen3Vl;
pub(super) struct Qwen3VlMoe;

impl Architecture for Qwen2 {
    fn gguf_name(&self) -> &'static str {
        "qwen2"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        for attention in spec.attentions_mut() {
            attention.qkv_bias = true;
            attention.out_bias = false;
        }
        Ok(spec)
    }
}

impl Architecture for Qwen3 {
    fn gguf_name(&self) -> &'static str {
        "qwen3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3"]
    }

    /// As the model card of Qwen3-Embedding says.
    fn embedding_prefixes(&self) -> EmbeddingPrefixes {
        let question = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:";
        EmbeddingPrefixes { question, passage: "" }
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        norm_heads(&mut spec);
        Ok(spec)
    }
}

/// The language model of Qwen3-VL: positions of texts are as in Qwen 3, a tower brings those of images.
impl Architecture for Qwen3Vl {
    fn gguf_name(&self) -> &'static str {
        "qwen3vl"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_vl_text", "qwen3_vl"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        norm_heads(&mut spec);
        Ok(spec)
    }
}

impl Architecture for Qwen3Moe {
    fn gguf_name(&self) -> &'static str {
        "qwen3moe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_moe"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        norm_heads(&mut spec);
        let experts = Experts {
            renormalize: hparams.is_gguf() || hparams.flag("norm_topk_prob", false)?,
            ..experts(hparams)?
        };
        let is_sparse = sparse_layers(hparams, spec.layers.len())?;
        for (layer, _) in spec.layers.iter_mut().zip(is_sparse).filter(|(_, is_sparse)| *is_sparse) {
            layer.ffn = Ffn::Experts(experts.clone());
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        tensor_names(container, role)
    }
}

/// The language model of Qwen3-VL with experts. Its repositories store all experts of a layer as [in, out].
impl Architecture for Qwen3VlMoe {
    fn gguf_name(&self) -> &'static str {
        "qwen3vlmoe"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["qwen3_vl_moe_text", "qwen3_vl_moe"]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = dense(hparams, self.gguf_name())?;
        norm_heads(&mut spec);
        let experts = experts(hparams)?;
        let is_sparse = sparse_layers(hparams, spec.layers.len())?;
        for (layer, _) in spec.layers.iter_mut().zip(is_sparse).filter(|(_, is_sparse)| *is_sparse) {
            layer.ffn = Ffn::Experts(experts.clone());
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        const GATE_UP: &[Role] = &[Role::ExpertGate, Role::ExpertUp];
        const DOWN: &[Role] = &[Role::ExpertDown];
        let transposed = |name, roles| vec![TensorName { name, form: TensorForm::Transposed(roles) }];
        match (container, role) {
            (Container::Safetensors, Role::ExpertGate | Role::ExpertUp) => {
                transposed("mlp.experts.gate_up_proj", GATE_UP)
            }
            (Container::Safetensors, Role::ExpertDown) => transposed("mlp.experts.down_proj", DOWN),
            _ => names::plain(container, role),
        }
    }
}

/// Each expert has a tensor, or all share one.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    let mut all = names::plain(container, role);
    match (container, role) {
        (Container::Safetensors, Role::ExpertGate | Role::ExpertUp) => {
            all.push(TensorName::rows("mlp.experts.gate_up_proj", &[Role::ExpertGate, Role::ExpertUp]));
        }
        (Container::Safetensors, Role::ExpertDown) => all.push("mlp.experts.down_proj".into()),
        _ => {}
    }
    all
}

/// Llama's structure with Qwen's rotation and windows.
pub(super) fn dense(hparams: &HParams<'_>, architecture: &'static str) -> Result<ModelSpec> {
    let mut spec = llama::spec(hparams, architecture, false)?;
    let window = window(hparams)?;
    let from_layer = hparams.optional_unbounded(MAX_WINDOW_LAYERS)?.unwrap_or(0);
    let types = hparams
        .layer_types(spec.layers.len())?
        .map(|types| types.iter().map(|kind| *kind == "sliding_attention").collect::<Vec<_>>());
    for (index, layer) in spec.layers.iter_mut().enumerate() {
        let Some(attention) = layer.mixer.attention_mut() else { continue };
        let slides = types.as_ref().map_or(index as u64 >= from_layer, |types| types[index]);
        attention.window = window.filter(|_| slides);
        attention.set_rope_half();
    }
    Ok(spec)
}

/// Layers below this index have full attention where there is a window.
const MAX_WINDOW_LAYERS: super::hparams::HParamKey = super::hparams::HParamKey { gguf: "", hf: "max_window_layers" };

fn window(hparams: &HParams<'_>) -> Result<Option<usize>> {
    if !hparams.flag("use_sliding_window", false)? {
        return Ok(None);
    }
    hparams.optional_count(keys::WINDOW, MAX_POSITIONS)
}

/// Adds norms of query and key heads, with the layers' own epsilon.
fn norm_heads(spec: &mut ModelSpec) {
    for layer in &mut spec.layers {
        let norm = layer.mixer_norm;
        if let Some(attention) = layer.mixer.attention_mut() {
            attention.qk_norm = Some(norm);
        }
    }
}

/// Newer configs' key for the number of experts.
const N_LOCAL_EXPERTS: super::hparams::HParamKey =
    super::hparams::HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "num_local_experts" };

/// Reads experts whose weights are a softmax over all of them, normalized to sum to 1.
pub(super) fn experts(hparams: &HParams<'_>) -> Result<Experts> {
    let n_experts = match hparams.optional_count(N_LOCAL_EXPERTS, MAX_EXPERTS)? {
        Some(n_experts) => n_experts,
        None => hparams.count(keys::N_EXPERTS, MAX_EXPERTS)?,
    };
    Ok(Experts {
        n_experts,
        n_used: hparams.count(keys::N_EXPERTS_USED, n_experts)?,
        d_ff: hparams.count(keys::EXPERT_D_FF, MAX_WIDTH)?,
        activation: hparams.activation("hidden_act", Activation::Silu)?,
        renormalize: true,
        expert_scale: false,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Normed,
        shared: None,
        router: Router::default(),
        form: ExpertForm::Gated,
    })
}

/// Returns which layers have experts: all in published models, or as the config says.
pub(super) fn sparse_layers(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<bool>> {
    let step = super::hparams::HParamKey { gguf: "", hf: "decoder_sparse_step" };
    let step = hparams.optional_count(step, MAX_LAYERS)?.unwrap_or(1);
    let dense: Vec<u64> = hparams
        .value("mlp_only_layers")
        .and_then(|list| list.as_array())
        .map_or(Vec::new(), |list| list.iter().filter_map(|layer| layer.as_u64()).collect());
    Ok((0..n_layers).map(|layer| (layer + 1) % step == 0 && !dense.contains(&(layer as u64))).collect())
}
