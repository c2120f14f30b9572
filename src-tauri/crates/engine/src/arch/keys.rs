//! Hyperparameter keys that several families share, in both containers.

/// One hyperparameter's name in both containers; GGUF's without the architecture prefix. Empty where a container has
/// no such key.
#[derive(Debug, Clone, Copy)]
pub(super) struct HParamKey {
    pub gguf: &'static str,
    pub hf: &'static str,
}

pub(super) const N_LAYERS: HParamKey = HParamKey { gguf: "block_count", hf: "num_hidden_layers" };
pub(super) const D_MODEL: HParamKey = HParamKey { gguf: "embedding_length", hf: "hidden_size" };
pub(super) const D_FF: HParamKey = HParamKey { gguf: "feed_forward_length", hf: "intermediate_size" };
pub(super) const N_HEADS: HParamKey = HParamKey { gguf: "attention.head_count", hf: "num_attention_heads" };
pub(super) const N_KV_HEADS: HParamKey =
    HParamKey { gguf: "attention.head_count_kv", hf: "num_key_value_heads" };
pub(super) const HEAD_DIM: HParamKey = HParamKey { gguf: "attention.key_length", hf: "head_dim" };
pub(super) const VALUE_DIM: HParamKey = HParamKey { gguf: "attention.value_length", hf: "" };
pub(super) const RMS_EPS: HParamKey =
    HParamKey { gguf: "attention.layer_norm_rms_epsilon", hf: "rms_norm_eps" };
pub(super) const CONTEXT: HParamKey = HParamKey { gguf: "context_length", hf: "max_position_embeddings" };
pub(super) const WINDOW: HParamKey = HParamKey { gguf: "attention.sliding_window", hf: "sliding_window" };
pub(super) const N_EXPERTS: HParamKey = HParamKey { gguf: "expert_count", hf: "num_experts" };
pub(super) const N_EXPERTS_USED: HParamKey =
    HParamKey { gguf: "expert_used_count", hf: "num_experts_per_tok" };
pub(super) const EXPERT_D_FF: HParamKey =
    HParamKey { gguf: "expert_feed_forward_length", hf: "moe_intermediate_size" };
pub(super) const SHARED_D_FF: HParamKey =
    HParamKey { gguf: "expert_shared_feed_forward_length", hf: "shared_expert_intermediate_size" };

/// Keys that describe the whole model: a list of them is damage, even of equal values.
pub(super) const OF_THE_MODEL: &[&str] = &[N_LAYERS.gguf, D_MODEL.gguf, CONTEXT.gguf];
/// The same in config.json.
pub(super) const OF_THE_MODEL_HF: &[&str] = &[N_LAYERS.hf, D_MODEL.hf, CONTEXT.hf, "vocab_size"];
