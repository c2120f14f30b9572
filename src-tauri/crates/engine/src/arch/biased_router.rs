//! Experts as in DeepSeek V3: sigmoid scores, chosen by a bias and by groups, beside shared ones; the first layers are
//! dense.

use kernels::{Activation, ExpertScoring, GroupLimit, GroupScore, MAX_EXPERT_GROUPS};
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_EXPERTS, MAX_FACTOR, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{keys, names};
use crate::error::Result;
use crate::spec::{
    ExpertForm, Experts, Ffn, ModelSpec, Role, Router, RouterInput, SharedExpert, SharedWeight,
};

const N_EXPERTS: HParamKey = HParamKey { gguf: keys::N_EXPERTS.gguf, hf: "n_routed_experts" };
const N_SHARED: HParamKey = HParamKey { gguf: "expert_shared_count", hf: "n_shared_experts" };
const N_DENSE: HParamKey = HParamKey { gguf: "leading_dense_block_count", hf: "first_k_dense_replace" };
const N_GROUPS: HParamKey = HParamKey { gguf: "expert_group_count", hf: "n_group" };
const N_GROUPS_USED: HParamKey = HParamKey { gguf: "expert_group_used_count", hf: "topk_group" };
const WEIGHT_SCALE: HParamKey = HParamKey { gguf: "expert_weights_scale", hf: "routed_scaling_factor" };
const SCORING: HParamKey = HParamKey { gguf: "expert_gating_func", hf: "" };
/// Numbers of the scores in a GGUF.
const SOFTMAX: u64 = 1;
const SIGMOID: u64 = 2;
/// Name of a choice among all experts, whatever the groups.
const GREEDY: &str = "greedy";
const NORMALIZES: &str = "expert_weights_norm";
/// Keeps the division by a sum of vanishing scores finite.
const SUM_EPSILON: f32 = 1e-20;

/// Gives a dense spec its experts in all layers but the first. `normalizes` is the family's default for a config.
pub(super) fn add_experts(hparams: &HParams<'_>, spec: &mut ModelSpec, normalizes: bool) -> Result<()> {
    add_scored_experts(hparams, spec, normalizes, ExpertScoring::Sigmoid)
}

/// Does the same where scores may be others. `scoring` is that of a config, and of a GGUF that states none.
pub(super) fn add_scored_experts(
    hparams: &HParams<'_>,
    spec: &mut ModelSpec,
    normalizes: bool,
    scoring: ExpertScoring,
) -> Result<()> {
    let n_dense = hparams.optional_unbounded(N_DENSE)?.unwrap_or(0);
    let n_dense = usize::try_from(n_dense).unwrap_or(usize::MAX).min(spec.layers.len());
    if n_dense == spec.layers.len() {
        return Ok(());
    }
    let experts = experts(hparams, n_dense, normalizes, scoring)?;
    for layer in &mut spec.layers[n_dense..] {
        layer.ffn = Ffn::Experts(experts.clone());
    }
    Ok(())
}

/// Reads the experts. `first` is the first layer that has some.
pub(super) fn experts(
    hparams: &HParams<'_>,
    first: usize,
    normalizes: bool,
    scoring: ExpertScoring,
) -> Result<Experts> {
    let scoring = match hparams.optional_unbounded(SCORING)? {
        None | Some(0) => scoring,
        Some(SOFTMAX) => ExpertScoring::Softmax,
        Some(SIGMOID) => ExpertScoring::Sigmoid,
        Some(other) => {
            let what = format!("scores of experts of the kind {other} (expert_gating_func)");
            return Err(hparams.unsupported(&what));
        }
    };
    let is_sigmoid = scoring == ExpertScoring::Sigmoid;
    let n_experts = hparams.count(N_EXPERTS, MAX_EXPERTS)?;
    let d_ff = hparams.count(keys::EXPERT_D_FF, MAX_WIDTH)?;
    let n_shared = hparams.optional_unbounded(N_SHARED)?.unwrap_or(0);
    let shared = match n_shared.saturating_mul(d_ff as u64) {
        0 => None,
        n => {
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            let d_ff = hparams.bounded(&hparams.name(N_SHARED), n, MAX_WIDTH)?;
            Some(SharedExpert { d_ff, weight: SharedWeight::One })
        }
    };
    let kind = if is_sigmoid { SIGMOID } else { SOFTMAX };
    hparams.note(SCORING.gguf, weights::write::OwnedValue::U32(kind as u32));
    let renormalize = match hparams.is_gguf() {
        true => hparams.optional_flag(NORMALIZES)?.unwrap_or(false),
        false => hparams.flag("norm_topk_prob", normalizes)?,
    };
    hparams.note(NORMALIZES, weights::write::OwnedValue::Bool(renormalize));
    let scale = hparams.optional_real(WEIGHT_SCALE, 0.0, MAX_FACTOR)?;
    let scale = scale.filter(|x| *x != 1.0 && (*x != 0.0 || !hparams.is_gguf()));
    Ok(Experts {
        n_experts,
        n_used: hparams.count(keys::N_EXPERTS_USED, n_experts)?,
        d_ff,
        activation: hparams.activation("hidden_act", Activation::Silu)?,
        renormalize,
        expert_scale: false,
        router_bias: false,
        bias: false,
        router_input: RouterInput::Normed,
        shared,
        form: ExpertForm::Gated,
        router: Router {
            scoring,
            selection_bias: is_sigmoid && !hparams.is_gguf()
                || hparams.has_tensor(Role::RouterSelectionBias, Some(first)),
            groups: groups(
                hparams,
                n_experts,
                if is_sigmoid { GroupScore::TopTwo } else { GroupScore::Max },
            )?,
            sum_epsilon: SUM_EPSILON,
            scale: scale.map(|x| x as f32),
        },
    })
}

/// Reads the groups of experts. One group is none.
fn groups(hparams: &HParams<'_>, n_experts: usize, score: GroupScore) -> Result<Option<GroupLimit>> {
    if hparams.value("topk_method").and_then(|method| method.as_str()) == Some(GREEDY) {
        return Ok(None);
    }
    let n_groups = hparams.optional_count(N_GROUPS, MAX_EXPERT_GROUPS)?.unwrap_or(1);
    let n_used = hparams.optional_count(N_GROUPS_USED, n_groups)?.unwrap_or(n_groups);
    if !n_experts.is_multiple_of(n_groups) {
        let message = format!("{n_groups} does not divide the {n_experts} experts");
        return Err(hparams.wrong(&hparams.name(N_GROUPS), message));
    }
    if n_used * (n_experts / n_groups) < hparams.count(keys::N_EXPERTS_USED, n_experts)? {
        let message = format!("{n_used} groups have fewer experts than are used");
        return Err(hparams.wrong(&hparams.name(N_GROUPS_USED), message));
    }
    Ok((n_used < n_groups).then_some(GroupLimit { n_groups, n_used, score }))
}

/// Names with several shared experts in one.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    match (container, role) {
        (Container::Safetensors, Role::SharedGate) => vec!["mlp.shared_experts.gate_proj.weight".into()],
        (Container::Safetensors, Role::SharedUp) => vec!["mlp.shared_experts.up_proj.weight".into()],
        (Container::Safetensors, Role::SharedDown) => vec!["mlp.shared_experts.down_proj.weight".into()],
        _ => names::plain(container, role),
    }
}
