//! Tensor names: what most families share in either container. A family overrides the roles it names otherwise.

use weights::Container;

use super::place::Place;
use crate::spec::Role;

/// Where a role's tensor lies in a file of a plain family. Names of layers' tensors are without the layer before
/// them, Hugging Face's besides without the model's root.
pub(super) fn plain(container: Container, role: Role) -> Vec<Place> {
    match container {
        Container::Gguf { .. } => gguf(role),
        Container::Safetensors => vec![hugging_face(role).into()],
    }
}

/// GGUF names are the same in every family; fused tensors are tried after separate ones.
fn gguf(role: Role) -> Vec<Place> {
    let fused = match role {
        Role::Query | Role::Key | Role::Value => Some(Place::rows("attn_qkv.weight", QKV)),
        Role::QueryBias | Role::KeyBias | Role::ValueBias => Some(Place::rows("attn_qkv.bias", QKV_BIAS)),
        Role::ExpertGate | Role::ExpertUp => {
            Some(Place::rows("ffn_gate_up_exps.weight", &[Role::ExpertGate, Role::ExpertUp]))
        }
        _ => None,
    };
    std::iter::once(gguf_name(role).into()).chain(fused).collect()
}

/// Fused projections, in the order of their rows.
pub(super) const QKV: &[Role] = &[Role::Query, Role::Key, Role::Value];
pub(super) const QKV_BIAS: &[Role] = &[Role::QueryBias, Role::KeyBias, Role::ValueBias];
pub(super) const GATE_UP: &[Role] = &[Role::Gate, Role::Up];

pub(super) fn gguf_name(role: Role) -> &'static str {
    match role {
        Role::TokenEmbedding => "token_embd.weight",
        Role::PositionEmbedding => "position_embd.weight",
        Role::OutputNorm => "output_norm.weight",
        Role::OutputNormBias => "output_norm.bias",
        Role::Output => "output.weight",
        Role::PerLayerEmbedding => "per_layer_token_embd.weight",
        Role::PerLayerProjection => "per_layer_model_proj.weight",
        Role::PerLayerProjectionNorm => "per_layer_proj_norm.weight",
        Role::MixerNorm => "attn_norm.weight",
        Role::MixerNormBias => "attn_norm.bias",
        Role::MixerPostNorm => "post_attention_norm.weight",
        Role::Query => "attn_q.weight",
        Role::QueryBias => "attn_q.bias",
        Role::QueryNorm => "attn_q_norm.weight",
        Role::Key => "attn_k.weight",
        Role::KeyBias => "attn_k.bias",
        Role::KeyNorm => "attn_k_norm.weight",
        Role::Value => "attn_v.weight",
        Role::ValueBias => "attn_v.bias",
        Role::Sinks => "attn_sinks.weight",
        Role::AttentionOut => "attn_output.weight",
        Role::AttentionOutBias => "attn_output.bias",
        Role::ConvIn => "shortconv.in_proj.weight",
        Role::ConvInBias => "shortconv.in_proj.bias",
        Role::Conv => "shortconv.conv.weight",
        Role::ConvBias => "shortconv.conv.bias",
        Role::ConvOut => "shortconv.out_proj.weight",
        Role::ConvOutBias => "shortconv.out_proj.bias",
        Role::DeltaQkv => "attn_qkv.weight",
        Role::DeltaGate => "attn_gate.weight",
        Role::DeltaBeta => "ssm_beta.weight",
        Role::DeltaAlpha => "ssm_alpha.weight",
        Role::DeltaConv => "ssm_conv1d.weight",
        Role::DeltaDecay => "ssm_a",
        Role::DeltaTimeBias => "ssm_dt.bias",
        Role::DeltaNorm => "ssm_norm.weight",
        Role::DeltaOut => "ssm_out.weight",
        Role::FfnNorm => "ffn_norm.weight",
        Role::FfnNormBias => "ffn_norm.bias",
        Role::FfnPostNorm => "post_ffw_norm.weight",
        Role::Gate => "ffn_gate.weight",
        Role::GateBias => "ffn_gate.bias",
        Role::Up => "ffn_up.weight",
        Role::UpBias => "ffn_up.bias",
        Role::Down => "ffn_down.weight",
        Role::DownBias => "ffn_down.bias",
        Role::Router => "ffn_gate_inp.weight",
        Role::RouterBias => "ffn_gate_inp.bias",
        Role::RouterScale => "ffn_gate_inp.scale",
        Role::ExpertGate => "ffn_gate_exps.weight",
        Role::ExpertGateBias => "ffn_gate_exps.bias",
        Role::ExpertUp => "ffn_up_exps.weight",
        Role::ExpertUpBias => "ffn_up_exps.bias",
        Role::ExpertDown => "ffn_down_exps.weight",
        Role::ExpertDownBias => "ffn_down_exps.bias",
        Role::ExpertScale => "ffn_down_exps.scale",
        Role::SharedGate => "ffn_gate_shexp.weight",
        Role::SharedUp => "ffn_up_shexp.weight",
        Role::SharedDown => "ffn_down_shexp.weight",
        Role::SharedRouter => "ffn_gate_inp_shexp.weight",
        Role::DensePostNorm => "post_ffw_norm_1.weight",
        Role::ExpertNorm => "pre_ffw_norm_2.weight",
        Role::ExpertPostNorm => "post_ffw_norm_2.weight",
        Role::LayerInputGate => "inp_gate.weight",
        Role::LayerInputProjection => "proj.weight",
        Role::LayerInputNorm => "post_norm.weight",
        Role::LayerScale => "layer_output_scale.weight",
    }
}

/// Llama's names, and for what llama doesn't have those of the family that brought it.
pub(super) fn hugging_face(role: Role) -> &'static str {
    match role {
        Role::TokenEmbedding => "embed_tokens.weight",
        Role::PositionEmbedding => "wpe.weight",
        Role::OutputNorm => "norm.weight",
        Role::OutputNormBias => "norm.bias",
        Role::Output => "lm_head.weight",
        Role::PerLayerEmbedding => "embed_tokens_per_layer.weight",
        Role::PerLayerProjection => "per_layer_model_projection.weight",
        Role::PerLayerProjectionNorm => "per_layer_projection_norm.weight",
        Role::MixerNorm => "input_layernorm.weight",
        Role::MixerNormBias => "input_layernorm.bias",
        Role::MixerPostNorm => "post_attention_layernorm.weight",
        Role::Query => "self_attn.q_proj.weight",
        Role::QueryBias => "self_attn.q_proj.bias",
        Role::QueryNorm => "self_attn.q_norm.weight",
        Role::Key => "self_attn.k_proj.weight",
        Role::KeyBias => "self_attn.k_proj.bias",
        Role::KeyNorm => "self_attn.k_norm.weight",
        Role::Value => "self_attn.v_proj.weight",
        Role::ValueBias => "self_attn.v_proj.bias",
        Role::Sinks => "self_attn.sinks",
        Role::AttentionOut => "self_attn.o_proj.weight",
        Role::AttentionOutBias => "self_attn.o_proj.bias",
        Role::ConvIn => "conv.in_proj.weight",
        Role::ConvInBias => "conv.in_proj.bias",
        Role::Conv => "conv.conv.weight",
        Role::ConvBias => "conv.conv.bias",
        Role::ConvOut => "conv.out_proj.weight",
        Role::ConvOutBias => "conv.out_proj.bias",
        Role::DeltaQkv => "linear_attn.in_proj_qkv.weight",
        Role::DeltaGate => "linear_attn.in_proj_z.weight",
        Role::DeltaBeta => "linear_attn.in_proj_b.weight",
        Role::DeltaAlpha => "linear_attn.in_proj_a.weight",
        Role::DeltaConv => "linear_attn.conv1d.weight",
        Role::DeltaDecay => "linear_attn.A_log",
        Role::DeltaTimeBias => "linear_attn.dt_bias",
        Role::DeltaNorm => "linear_attn.norm.weight",
        Role::DeltaOut => "linear_attn.out_proj.weight",
        Role::FfnNorm => "post_attention_layernorm.weight",
        Role::FfnNormBias => "post_attention_layernorm.bias",
        Role::FfnPostNorm => "post_feedforward_layernorm.weight",
        Role::Gate => "mlp.gate_proj.weight",
        Role::GateBias => "mlp.gate_proj.bias",
        Role::Up => "mlp.up_proj.weight",
        Role::UpBias => "mlp.up_proj.bias",
        Role::Down => "mlp.down_proj.weight",
        Role::DownBias => "mlp.down_proj.bias",
        Role::Router => "mlp.gate.weight",
        Role::RouterBias => "mlp.gate.bias",
        Role::RouterScale => "router.scale",
        Role::ExpertGate => "mlp.experts.#.gate_proj.weight",
        Role::ExpertGateBias => "mlp.experts.#.gate_proj.bias",
        Role::ExpertUp => "mlp.experts.#.up_proj.weight",
        Role::ExpertUpBias => "mlp.experts.#.up_proj.bias",
        Role::ExpertDown => "mlp.experts.#.down_proj.weight",
        Role::ExpertDownBias => "mlp.experts.#.down_proj.bias",
        Role::ExpertScale => "router.per_expert_scale",
        Role::SharedGate => "mlp.shared_expert.gate_proj.weight",
        Role::SharedUp => "mlp.shared_expert.up_proj.weight",
        Role::SharedDown => "mlp.shared_expert.down_proj.weight",
        Role::SharedRouter => "mlp.shared_expert_gate.weight",
        Role::DensePostNorm => "post_feedforward_layernorm_1.weight",
        Role::ExpertNorm => "pre_feedforward_layernorm_2.weight",
        Role::ExpertPostNorm => "post_feedforward_layernorm_2.weight",
        Role::LayerInputGate => "per_layer_input_gate.weight",
        Role::LayerInputProjection => "per_layer_projection.weight",
        Role::LayerInputNorm => "post_per_layer_input_norm.weight",
        Role::LayerScale => "layer_scalar",
    }
}
