//! Tensor names that most families share, in both containers. A family overrides the roles it names differently.

use weights::Container;

use super::tensor_names::TensorName;
use crate::spec::Role;

/// Returns the names of a role's tensor in a plain family. Without the layer prefix, in Hugging Face also without the
/// model's root.
pub(super) fn plain(container: Container, role: Role) -> Vec<TensorName> {
    match container {
        Container::Gguf { .. } => gguf(role),
        Container::Safetensors => vec![hugging_face(role).into()],
    }
}

/// GGUF names are the same in every family. Fused tensors are tried after separate ones.
fn gguf(role: Role) -> Vec<TensorName> {
    let fused = match role {
        Role::Query | Role::Key | Role::Value => Some(TensorName::rows("attn_qkv.weight", QKV)),
        Role::QueryBias | Role::KeyBias | Role::ValueBias => {
            Some(TensorName::rows("attn_qkv.bias", QKV_BIAS))
        }
        Role::ExpertGate | Role::ExpertUp => {
            Some(TensorName::rows("ffn_gate_up_exps.weight", &[Role::ExpertGate, Role::ExpertUp]))
        }
        _ => None,
    };
    std::iter::once(gguf_name(role).into()).chain(fused).collect()
}

/// Fused projections, in the order of their rows.
pub(super) const QKV: &[Role] = &[Role::Query, Role::Key, Role::Value];
pub(super) const QKV_BIAS: &[Role] = &[Role::QueryBias, Role::KeyBias, Role::ValueBias];
pub(super) const GATE_UP: &[Role] = &[Role::Gate, Role::Up];

/// One row per role, so that a new role without names does not compile.
macro_rules! names {
    ($($role:ident: $gguf:literal, $hf:literal;)*) => {
        fn gguf_name(role: Role) -> &'static str {
            match role { $(Role::$role => $gguf),* }
        }

        /// Llama's names; for roles llama lacks, those of the family that introduced them.
        pub(super) fn hugging_face(role: Role) -> &'static str {
            match role { $(Role::$role => $hf),* }
        }
    };
}

names! {
    TokenEmbedding:         "token_embd.weight",           "embed_tokens.weight";
    PositionEmbedding:      "position_embd.weight",        "wpe.weight";
    TokenTypes:              "token_types.weight",          "token_type_embeddings.weight";
    EmbeddingNorm:          "token_embd_norm.weight",      "LayerNorm.weight";
    EmbeddingNormBias:      "token_embd_norm.bias",        "LayerNorm.bias";
    OutputNorm:             "output_norm.weight",          "norm.weight";
    OutputNormBias:         "output_norm.bias",            "norm.bias";
    Output:                 "output.weight",               "lm_head.weight";
    OutputBias:             "output.bias",                 "lm_head.bias";
    Dense2:                 "dense_2.weight",              "dense_2.weight";
    Dense3:                 "dense_3.weight",              "dense_3.weight";
    RankDense:              "cls.weight",                  "classifier.dense.weight";
    RankDenseBias:          "cls.bias",                    "classifier.dense.bias";
    RankOut:                "cls.output.weight",           "classifier.out_proj.weight";
    RankOutBias:            "cls.output.bias",             "classifier.out_proj.bias";
    PerLayerEmbedding:      "per_layer_token_embd.weight", "embed_tokens_per_layer.weight";
    PerLayerProjection:     "per_layer_model_proj.weight", "per_layer_model_projection.weight";
    PerLayerProjectionNorm: "per_layer_proj_norm.weight",  "per_layer_projection_norm.weight";
    AltUpProjection:        "altup_proj.weight",           "altup_projections.#.weight";
    AltUpOut:               "altup_unembd_proj.weight",    "altup_unembed_projections.#.weight";
    PatchEmbedding:         "v.patch_embd.weight",         "patch_embedding.weight";
    PatchEmbeddingNext:     "v.patch_embd.weight.1",       "patch_embedding.weight";
    PatchEmbeddingBias:     "v.patch_embd.bias",           "patch_embedding.bias";
    PatchNorm:              "v.pre_ln.weight",             "ln_pre.weight";
    PatchNormBias:          "v.patch_norm.3.bias",         "vision_embedder.pos_norm.bias";
    PatchSampleNorm:        "v.patch_norm.1.weight",       "vision_embedder.patch_ln1.weight";
    PatchSampleNormBias:    "v.patch_norm.1.bias",         "vision_embedder.patch_ln1.bias";
    PatchEmbeddingNorm:     "v.patch_norm.2.weight",       "vision_embedder.patch_ln2.weight";
    PatchEmbeddingNormBias: "v.patch_norm.2.bias",         "vision_embedder.patch_ln2.bias";
    StandardBias:           "v.std_bias",                  "std_bias";
    StandardScale:          "v.std_scale",                 "std_scale";
    ProjectorMerge:         "mm.patch_merger.weight",      "patch_merger.merging_layer.weight";
    ProjectorNorm:          "mm.input_norm.weight",        "norm.weight";
    ProjectorNormBias:      "mm.input_norm.bias",          "norm.bias";
    ProjectorHidden:        "mm.1.weight",                 "linear_1.weight";
    ProjectorHiddenBias:    "mm.1.bias",                   "linear_1.bias";
    ProjectorOut:           "mm.2.weight",                 "linear_2.weight";
    ProjectorOutBias:       "mm.2.bias",                   "linear_2.bias";
    DeepNorm:               "v.deepstack.#.norm.weight",   "deepstack_merger_list.#.norm.weight";
    DeepNormBias:           "v.deepstack.#.norm.bias",     "deepstack_merger_list.#.norm.bias";
    DeepHidden:             "v.deepstack.#.fc1.weight",    "deepstack_merger_list.#.linear_fc1.weight";
    DeepHiddenBias:         "v.deepstack.#.fc1.bias",      "deepstack_merger_list.#.linear_fc1.bias";
    DeepOut:                "v.deepstack.#.fc2.weight",    "deepstack_merger_list.#.linear_fc2.weight";
    DeepOutBias:            "v.deepstack.#.fc2.bias",      "deepstack_merger_list.#.linear_fc2.bias";
    DraftProjection:        "nextn.eh_proj.weight",        "fc.weight";
    DraftEmbeddingNorm:     "nextn.enorm.weight",          "pre_fc_norm_embedding.weight";
    DraftHiddenNorm:        "nextn.hnorm.weight",          "pre_fc_norm_hidden.weight";
    DraftOutputNorm:        "nextn.shared_head_norm.weight", "norm.weight";
    DraftEmbedding:         "nextn.embed_tokens.weight",   "embed_tokens.weight";
    DraftOutput:            "nextn.shared_head_head.weight", "lm_head.weight";
    DraftNextProjection:    "nextn.post_projection.weight", "post_projection.weight";
    DraftClusters:          "masked_embd_centroids.weight", "masked_embedding.centroids.weight";
    MixerNorm:              "attn_norm.weight",            "input_layernorm.weight";
    MixerNormBias:          "attn_norm.bias",              "input_layernorm.bias";
    MixerPostNorm:          "post_attention_norm.weight",  "post_attention_layernorm.weight";
    Query:                  "attn_q.weight",               "self_attn.q_proj.weight";
    QueryBias:              "attn_q.bias",                 "self_attn.q_proj.bias";
    QueryNorm:              "attn_q_norm.weight",          "self_attn.q_norm.weight";
    Key:                    "attn_k.weight",               "self_attn.k_proj.weight";
    KeyBias:                "attn_k.bias",                 "self_attn.k_proj.bias";
    KeyNorm:                "attn_k_norm.weight",          "self_attn.k_norm.weight";
    Value:                  "attn_v.weight",               "self_attn.v_proj.weight";
    ValueBias:              "attn_v.bias",                 "self_attn.v_proj.bias";
    Sinks:                  "attn_sinks.weight",           "self_attn.sinks";
    AttentionOut:           "attn_output.weight",          "self_attn.o_proj.weight";
    AttentionOutBias:       "attn_output.bias",            "self_attn.o_proj.bias";
    ConvIn:                 "shortconv.in_proj.weight",    "conv.in_proj.weight";
    ConvInBias:             "shortconv.in_proj.bias",      "conv.in_proj.bias";
    Conv:                   "shortconv.conv.weight",       "conv.conv.weight";
    ConvBias:               "shortconv.conv.bias",         "conv.conv.bias";
    ConvOut:                "shortconv.out_proj.weight",   "conv.out_proj.weight";
    ConvOutBias:            "shortconv.out_proj.bias",     "conv.out_proj.bias";
    DeltaQkv:               "attn_qkv.weight",             "linear_attn.in_proj_qkv.weight";
    DeltaGate:              "attn_gate.weight",            "linear_attn.in_proj_z.weight";
    DeltaBeta:              "ssm_beta.weight",             "linear_attn.in_proj_b.weight";
    DeltaAlpha:             "ssm_alpha.weight",            "linear_attn.in_proj_a.weight";
    DeltaConv:              "ssm_conv1d.weight",           "linear_attn.conv1d.weight";
    DeltaDecay:             "ssm_a",                       "linear_attn.A_log";
    DeltaTimeBias:          "ssm_dt.bias",                 "linear_attn.dt_bias";
    DeltaNorm:              "ssm_norm.weight",             "linear_attn.norm.weight";
    DeltaOut:               "ssm_out.weight",              "linear_attn.out_proj.weight";
    LatentQueryDown:        "attn_q_a.weight",             "self_attn.q_a_proj.weight";
    LatentQueryNorm:        "attn_q_a_norm.weight",        "self_attn.q_a_layernorm.weight";
    LatentQuery:            "attn_q_b.weight",             "self_attn.q_b_proj.weight";
    LatentDown:             "attn_kv_a_mqa.weight",        "self_attn.kv_a_proj_with_mqa.weight";
    LatentNorm:             "attn_kv_a_norm.weight",       "self_attn.kv_a_layernorm.weight";
    LatentRope:             "attn_kv_a_mqa.weight",        "self_attn.kv_a_proj_with_mqa.weight";
    LatentKeys:             "attn_k_b.weight",             "self_attn.kv_b_proj.weight";
    LatentValues:           "attn_v_b.weight",             "self_attn.kv_b_proj.weight";
    SsmGate:                "ssm_in.weight",               "mamba.in_proj.weight";
    SsmGateBias:            "ssm_in.bias",                 "mamba.in_proj.bias";
    SsmXbc:                 "ssm_in.weight",               "mamba.in_proj.weight";
    SsmXbcBias:             "ssm_in.bias",                 "mamba.in_proj.bias";
    SsmStep:                "ssm_in.weight",               "mamba.in_proj.weight";
    SsmStepBias:            "ssm_in.bias",                 "mamba.in_proj.bias";
    SsmConv:                "ssm_conv1d.weight",           "mamba.conv1d.weight";
    SsmConvBias:            "ssm_conv1d.bias",             "mamba.conv1d.bias";
    SsmDecay:               "ssm_a",                       "mamba.A_log";
    SsmSkip:                "ssm_d",                       "mamba.D";
    SsmTimeBias:            "ssm_dt.bias",                 "mamba.dt_bias";
    SsmNorm:                "ssm_norm.weight",             "mamba.norm.weight";
    SsmOut:                 "ssm_out.weight",              "mamba.out_proj.weight";
    SsmOutBias:             "ssm_out.bias",                "mamba.out_proj.bias";
    FfnNorm:                "ffn_norm.weight",             "post_attention_layernorm.weight";
    FfnNormBias:            "ffn_norm.bias",               "post_attention_layernorm.bias";
    FfnPostNorm:            "post_ffw_norm.weight",        "post_feedforward_layernorm.weight";
    Gate:                   "ffn_gate.weight",             "mlp.gate_proj.weight";
    GateBias:               "ffn_gate.bias",               "mlp.gate_proj.bias";
    Up:                     "ffn_up.weight",               "mlp.up_proj.weight";
    UpBias:                 "ffn_up.bias",                 "mlp.up_proj.bias";
    Down:                   "ffn_down.weight",             "mlp.down_proj.weight";
    DownBias:               "ffn_down.bias",               "mlp.down_proj.bias";
    Router:                 "ffn_gate_inp.weight",         "mlp.gate.weight";
    RouterBias:             "ffn_gate_inp.bias",           "mlp.gate.bias";
    RouterSelectionBias:    "exp_probs_b.bias",            "mlp.gate.e_score_correction_bias";
    RouterScale:            "ffn_gate_inp.scale",          "router.scale";
    ExpertGate:             "ffn_gate_exps.weight",        "mlp.experts.#.gate_proj.weight";
    ExpertGateBias:         "ffn_gate_exps.bias",          "mlp.experts.#.gate_proj.bias";
    ExpertUp:               "ffn_up_exps.weight",          "mlp.experts.#.up_proj.weight";
    ExpertUpBias:           "ffn_up_exps.bias",            "mlp.experts.#.up_proj.bias";
    ExpertDown:             "ffn_down_exps.weight",        "mlp.experts.#.down_proj.weight";
    ExpertDownBias:         "ffn_down_exps.bias",          "mlp.experts.#.down_proj.bias";
    ExpertScale:            "ffn_down_exps.scale",         "router.per_expert_scale";
    SharedGate:             "ffn_gate_shexp.weight",       "mlp.shared_expert.gate_proj.weight";
    SharedUp:               "ffn_up_shexp.weight",         "mlp.shared_expert.up_proj.weight";
    SharedDown:             "ffn_down_shexp.weight",       "mlp.shared_expert.down_proj.weight";
    SharedRouter:           "ffn_gate_inp_shexp.weight",   "mlp.shared_expert_gate.weight";
    DensePostNorm:          "post_ffw_norm_1.weight",      "post_feedforward_layernorm_1.weight";
    ExpertNorm:             "pre_ffw_norm_2.weight",       "pre_feedforward_layernorm_2.weight";
    ExpertPostNorm:         "post_ffw_norm_2.weight",      "post_feedforward_layernorm_2.weight";
    AltUpRouterNorm:        "altup_router_norm.weight",    "altup.router_norm.weight";
    AltUpRouter:            "altup_router.weight",         "altup.modality_router.weight";
    AltUpPrediction:        "altup_predict_coef.weight",   "altup.prediction_coefs.weight";
    AltUpCorrection:        "altup_correct_coef.weight",   "altup.correction_coefs.weight";
    AltUpGateScale:         "altup_correct_scale.weight",  "altup.correct_output_scale";
    LaurelDown:             "laurel_l.weight",             "laurel.linear_left.weight";
    LaurelUp:               "laurel_r.weight",             "laurel.linear_right.weight";
    LaurelNorm:             "laurel_post_norm.weight",     "laurel.post_laurel_norm.weight";
    LayerInputGate:         "inp_gate.weight",             "per_layer_input_gate.weight";
    LayerInputProjection:   "proj.weight",                 "per_layer_projection.weight";
    LayerInputNorm:         "post_norm.weight",            "post_per_layer_input_norm.weight";
    LayerScale:             "layer_output_scale.weight",   "layer_scalar";
}
