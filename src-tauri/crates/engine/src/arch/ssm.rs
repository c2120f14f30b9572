//! State spaces of Mamba-2 by the names that families give their sizes.

use serde_json::Value;

use kernels::Activation;
use weights::Container;

use super::hparams::{HParamKey, HParams, MAX_FACTOR, MAX_HEADS, MAX_WIDTH};
use super::names;
use super::tensor_names::{TensorForm, TensorName};
use crate::error::Result;
use crate::spec::{Decay, Ffn, GateOrder, LayerSpec, Mixer, Norm, NormPosition, Role, Ssm, SsmFactors};

const INNER: HParamKey = HParamKey { gguf: "ssm.inner_size", hf: "" };
/// More taps would be a mistake.
const MAX_KERNEL: usize = 64;
/// Published state spaces have up to 256.
const MAX_STATE: usize = 1 << 12;

/// A family's names in config.json.
pub(super) struct SsmKeys {
    pub n_heads: &'static str,
    pub head_dim: &'static str,
    pub n_groups: &'static str,
    pub d_state: &'static str,
    pub kernel: &'static str,
    /// Width of all heads, where it is given.
    pub inner: &'static str,
    /// The same as a multiple of the model's width. Empty where it says nothing.
    pub expand: &'static str,
    pub conv_bias: &'static str,
    pub in_bias: &'static str,
    pub out_bias: &'static str,
    /// Activation of the convolution and the gate.
    pub activation: &'static str,
}

/// Names of Bamba and the families after it.
pub(super) const PREFIXED: SsmKeys = SsmKeys {
    n_heads: "mamba_n_heads",
    head_dim: "mamba_d_head",
    n_groups: "mamba_n_groups",
    d_state: "mamba_d_state",
    kernel: "mamba_d_conv",
    inner: "mamba_d_ssm",
    expand: "mamba_expand",
    conv_bias: "mamba_conv_bias",
    in_bias: "mamba_proj_bias",
    out_bias: "mamba_proj_bias",
    activation: "hidden_act",
};

/// Reads a state space. `layer` is the first that has one.
pub(super) fn read(
    hparams: &HParams<'_>,
    keys: &SsmKeys,
    d_model: usize,
    (norm, layer): (Option<Norm>, usize),
) -> Result<Ssm> {
    let key = |gguf, hf| HParamKey { gguf, hf };
    if hparams.activation(keys.activation, Activation::Silu)? != Activation::Silu {
        return Err(hparams.unsupported("a state space with another activation than SiLU"));
    }
    let n_heads = hparams.count(key("ssm.time_step_rank", keys.n_heads), MAX_HEADS)?;
    let n_groups = hparams.count(key("ssm.group_count", keys.n_groups), n_heads)?;
    if n_heads % n_groups != 0 {
        let message = format!("{n_groups} does not divide the {n_heads} heads");
        return Err(hparams.wrong(&hparams.name(key("ssm.group_count", keys.n_groups)), message));
    }
    let inner = inner(hparams, keys, d_model, n_heads)?;
    hparams.note_count(INNER, inner);
    let has = |flag: &str, default: bool, role: Role| match hparams.is_gguf() {
        true => Ok(hparams.has_tensor(role, Some(layer))),
        false => hparams.flag(flag, default),
    };
    Ok(Ssm {
        n_heads,
        head_dim: inner / n_heads,
        n_groups,
        d_state: hparams.count(key("ssm.state_size", keys.d_state), MAX_STATE)?,
        kernel: hparams.count(key("ssm.conv_kernel", keys.kernel), MAX_KERNEL)?,
        conv_bias: has(keys.conv_bias, true, Role::SsmConvBias)?,
        in_bias: has(keys.in_bias, false, Role::SsmGateBias)?,
        out_bias: has(keys.out_bias, false, Role::SsmOutBias)?,
        decay: if hparams.is_gguf() { Decay::Factor } else { Decay::Log },
        dt_limits: dt_limits(hparams)?,
        norm,
        order: GateOrder::GateFirst,
        factors: SsmFactors::NONE,
    })
}

/// Reads the width of all heads. Every statement about it must agree.
fn inner(hparams: &HParams<'_>, keys: &SsmKeys, d_model: usize, n_heads: usize) -> Result<usize> {
    let key = |hf| HParamKey { gguf: "", hf };
    // A config may say "auto".
    let is_number = hparams.value(keys.head_dim).is_some_and(Value::is_number);
    let of_heads = match is_number {
        true => hparams.optional_count(key(keys.head_dim), MAX_WIDTH)?.map(|dim| dim * n_heads),
        false => None,
    };
    let of_model = match hparams.optional_count(key(keys.inner), MAX_WIDTH)? {
        Some(inner) => Some(inner),
        None => {
            let expand = hparams.optional_real(key(keys.expand), 0.0, MAX_FACTOR)?;
            expand.map(|expand| (expand * d_model as f64) as usize)
        }
    };
    let inner = match (hparams.is_gguf(), of_heads, of_model) {
        (true, ..) => hparams.count(INNER, MAX_WIDTH)?,
        (false, Some(a), Some(b)) if a != b => {
            let message = format!("{n_heads} heads of {} are {a} wide, not {b}", a / n_heads);
            return Err(hparams.wrong(keys.head_dim, message));
        }
        (false, a, b) => a.or(b).ok_or_else(|| hparams.missing(keys.head_dim))?,
    };
    let name = if hparams.is_gguf() { hparams.name(INNER) } else { keys.n_heads.to_owned() };
    if inner % n_heads != 0 {
        return Err(hparams.wrong(&name, format!("{n_heads} heads do not share a width of {inner}")));
    }
    hparams.bounded(&name, inner, MAX_WIDTH)
}

/// Reads the limits of time steps. GGUFs have none.
fn dt_limits(hparams: &HParams<'_>) -> Result<[f32; 2]> {
    const KEY: &str = "time_step_limit";
    let Some(limits) = hparams.value(KEY) else { return Ok([0.0, f32::INFINITY]) };
    let numbers: Option<Vec<f32>> =
        limits.as_array().and_then(|list| list.iter().map(number).collect::<Option<_>>());
    match numbers.as_deref() {
        Some(&[least, largest]) if least <= largest => Ok([least, largest]),
        _ => Err(hparams.wrong(KEY, format!("{limits} is not a least and a largest number"))),
    }
}

/// Reads a number, or an infinity as transformers spells it.
fn number(value: &Value) -> Option<f32> {
    match value.get("__float__").and_then(Value::as_str) {
        Some("Infinity") => Some(f32::INFINITY),
        Some("-Infinity") => Some(f32::NEG_INFINITY),
        Some(_) => None,
        None => value.as_f64().map(|x| x as f32),
    }
}

/// Names with the tensors of state spaces under `mamba.`. Its first projection holds gate, x, B, C and time steps.
pub(super) fn tensor_names(container: Container, role: Role) -> Vec<TensorName> {
    const IN: &[Role] = &[Role::SsmGate, Role::SsmXbc, Role::SsmStep];
    const IN_BIAS: &[Role] = &[Role::SsmGateBias, Role::SsmXbcBias, Role::SsmStepBias];
    let form = match role {
        Role::SsmGate | Role::SsmXbc | Role::SsmStep => TensorForm::Rows(IN),
        Role::SsmGateBias | Role::SsmXbcBias | Role::SsmStepBias => TensorForm::Rows(IN_BIAS),
        // GGUFs divide it by groups.
        Role::SsmNorm => TensorForm::Flat,
        _ => return names::plain(container, role),
    };
    names::plain(container, role).into_iter().map(|name| TensorName { form, ..name }).collect()
}

/// A layer with norms before its parts.
pub(super) fn layer(norm: Norm, mixer: Mixer, ffn: Ffn) -> LayerSpec {
    let unless = |is_absent| if is_absent { Norm::None } else { norm };
    LayerSpec {
        norms: NormPosition::Before,
        mixer_norm: unless(mixer == Mixer::None),
        mixer,
        mixer_post_norm: None,
        ffn_norm: unless(ffn == Ffn::None),
        ffn,
        ffn_post_norm: None,
        per_layer_input: None,
        output_scale: false,
        residual_scale: None,
        laurel: None,
    }
}
