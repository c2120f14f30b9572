//! Hyperparameters that several families have, by their names in both containers.

use super::hyper::Key;

pub(super) const N_LAYERS: Key = Key { gguf: "block_count", hf: "num_hidden_layers" };
pub(super) const D_MODEL: Key = Key { gguf: "embedding_length", hf: "hidden_size" };
pub(super) const D_FF: Key = Key { gguf: "feed_forward_length", hf: "intermediate_size" };
pub(super) const N_HEADS: Key = Key { gguf: "attention.head_count", hf: "num_attention_heads" };
pub(super) const N_KV_HEADS: Key = Key { gguf: "attention.head_count_kv", hf: "num_key_value_heads" };
pub(super) const HEAD_DIM: Key = Key { gguf: "attention.key_length", hf: "head_dim" };
pub(super) const VALUE_DIM: Key = Key { gguf: "attention.value_length", hf: "" };
pub(super) const RMS_EPS: Key = Key { gguf: "attention.layer_norm_rms_epsilon", hf: "rms_norm_eps" };
pub(super) const CONTEXT: Key = Key { gguf: "context_length", hf: "max_position_embeddings" };
pub(super) const WINDOW: Key = Key { gguf: "attention.sliding_window", hf: "sliding_window" };
pub(super) const N_EXPERTS: Key = Key { gguf: "expert_count", hf: "num_experts" };
pub(super) const N_EXPERTS_USED: Key = Key { gguf: "expert_used_count", hf: "num_experts_per_tok" };
pub(super) const EXPERT_D_FF: Key = Key { gguf: "expert_feed_forward_length", hf: "moe_intermediate_size" };
pub(super) const SHARED_D_FF: Key =
    Key { gguf: "expert_shared_feed_forward_length", hf: "shared_expert_intermediate_size" };
