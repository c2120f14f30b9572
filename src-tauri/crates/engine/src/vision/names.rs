//! Names of a tower's tensors in GGUF files, where most families share them.

use crate::arch::TensorName;
use crate::spec::Role;

/// Fused projections, in the order of their rows.
pub(super) const QKV: &[Role] = &[Role::Query, Role::Key, Role::Value];
pub(super) const QKV_BIAS: &[Role] = &[Role::QueryBias, Role::KeyBias, Role::ValueBias];

/// Returns the names that a role's tensor may have. Older converters exchanged the two feed-forward matrices.
pub(super) fn gguf(role: Role) -> Vec<TensorName> {
    let names: &[&'static str] = match role {
        Role::PatchEmbedding => &["v.patch_embd.weight"],
        Role::PatchEmbeddingBias => &["v.patch_embd.bias"],
        Role::PositionEmbedding => &["v.position_embd.weight"],
        Role::OutputNorm => &["v.post_ln.weight"],
        Role::OutputNormBias => &["v.post_ln.bias"],
        Role::MixerNorm => &["v.blk.#.ln1.weight"],
        Role::MixerNormBias => &["v.blk.#.ln1.bias"],
        Role::Query => &["v.blk.#.attn_q.weight"],
        Role::QueryBias => &["v.blk.#.attn_q.bias"],
        Role::Key => &["v.blk.#.attn_k.weight"],
        Role::KeyBias => &["v.blk.#.attn_k.bias"],
        Role::Value => &["v.blk.#.attn_v.weight"],
        Role::ValueBias => &["v.blk.#.attn_v.bias"],
        Role::AttentionOut => &["v.blk.#.attn_out.weight"],
        Role::AttentionOutBias => &["v.blk.#.attn_out.bias"],
        Role::PatchNorm => &["v.pre_ln.weight"],
        Role::QueryNorm => &["v.blk.#.attn_q_norm.weight"],
        Role::KeyNorm => &["v.blk.#.attn_k_norm.weight"],
        Role::MixerPostNorm => &["v.blk.#.attn_post_norm.weight"],
        Role::FfnPostNorm => &["v.blk.#.ffn_post_norm.weight"],
        Role::StandardBias => &["v.std_bias"],
        Role::StandardScale => &["v.std_scale"],
        Role::FfnNorm => &["v.blk.#.ln2.weight"],
        Role::FfnNormBias => &["v.blk.#.ln2.bias"],
        Role::Gate => &["v.blk.#.ffn_gate.weight"],
        Role::Up => &["v.blk.#.ffn_up.weight", "v.blk.#.ffn_down.weight"],
        Role::UpBias => &["v.blk.#.ffn_up.bias", "v.blk.#.ffn_down.bias"],
        Role::Down => &["v.blk.#.ffn_down.weight", "v.blk.#.ffn_up.weight"],
        Role::DownBias => &["v.blk.#.ffn_down.bias", "v.blk.#.ffn_up.bias"],
        _ => &[],
    };
    let fused = match role {
        Role::Query | Role::Key | Role::Value => Some(TensorName::rows("v.blk.#.attn_qkv.weight", QKV)),
        Role::QueryBias | Role::KeyBias | Role::ValueBias => {
            Some(TensorName::rows("v.blk.#.attn_qkv.bias", QKV_BIAS))
        }
        _ => None,
    };
    names.iter().map(|name| TensorName::from(*name)).chain(fused).collect()
}
