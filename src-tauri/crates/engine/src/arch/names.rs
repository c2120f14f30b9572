//! Tensor names of the plain decoder, which most families share: GGUF's and Hugging Face's.

use weights::Container;

use crate::spec::Role;

/// The name of a role's tensor. `layer` is None for the model's own tensors.
pub(super) fn decoder(container: Container, role: Role, layer: Option<usize>) -> String {
    let hf = matches!(container, Container::Safetensors);
    let name = match role {
        Role::TokenEmbedding => ["token_embd.weight", "model.embed_tokens.weight"],
        Role::OutputNorm => ["output_norm.weight", "model.norm.weight"],
        Role::Output => ["output.weight", "lm_head.weight"],
        Role::AttentionNorm => ["attn_norm.weight", "input_layernorm.weight"],
        Role::Query => ["attn_q.weight", "self_attn.q_proj.weight"],
        Role::QueryBias => ["attn_q.bias", "self_attn.q_proj.bias"],
        Role::Key => ["attn_k.weight", "self_attn.k_proj.weight"],
        Role::KeyBias => ["attn_k.bias", "self_attn.k_proj.bias"],
        Role::Value => ["attn_v.weight", "self_attn.v_proj.weight"],
        Role::ValueBias => ["attn_v.bias", "self_attn.v_proj.bias"],
        Role::AttentionOut => ["attn_output.weight", "self_attn.o_proj.weight"],
        Role::AttentionOutBias => ["attn_output.bias", "self_attn.o_proj.bias"],
        Role::FfnNorm => ["ffn_norm.weight", "post_attention_layernorm.weight"],
        Role::Gate => ["ffn_gate.weight", "mlp.gate_proj.weight"],
        Role::GateBias => ["ffn_gate.bias", "mlp.gate_proj.bias"],
        Role::Up => ["ffn_up.weight", "mlp.up_proj.weight"],
        Role::UpBias => ["ffn_up.bias", "mlp.up_proj.bias"],
        Role::Down => ["ffn_down.weight", "mlp.down_proj.weight"],
        Role::DownBias => ["ffn_down.bias", "mlp.down_proj.bias"],
    }[usize::from(hf)];
    match (layer, hf) {
        (None, _) => name.to_owned(),
        (Some(layer), false) => format!("blk.{layer}.{name}"),
        (Some(layer), true) => format!("model.layers.{layer}.{name}"),
    }
}
