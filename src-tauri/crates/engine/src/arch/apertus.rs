//! Apertus: normed heads, and an ungated feed-forward part of xIELU with separate numbers in each layer.

use kernels::Activation;
use weights::Container;
use weights::write::OwnedValue;

use super::hparams::{HParams, MAX_FACTOR, MAX_WIDTH};
use super::tensor_names::TensorName;
use super::{Architecture, keys, llama, names};
use crate::error::Result;
use crate::spec::{Dense, Ffn, ModelSpec, Role};

pub(super) struct Apertus;

/// The numbers of the activation: key in a GGUF, tensor of a layer in safetensors.
const ALPHA_P: (&str, &str) = ("xielu.alpha_p", "mlp.act_fn.alpha_p");
const ALPHA_N: (&str, &str) = ("xielu.alpha_n", "mlp.act_fn.alpha_n");
const BETA: (&str, &str) = ("xielu.beta", "mlp.act_fn.beta");
const EPS: (&str, &str) = ("xielu.eps", "mlp.act_fn.eps");
const DEFAULT_BETA: f32 = 0.5;
const DEFAULT_EPS: f32 = -1e-6;

impl Architecture for Apertus {
    fn gguf_name(&self) -> &'static str {
        "apertus"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["apertus"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 65_536.0), ("rope_theta", 12e6)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        if hparams.flag("post_norm", false)? {
            return Err(hparams.unsupported("norms after each part (post_norm)"));
        }
        let activation = hparams.value("hidden_act").and_then(|name| name.as_str());
        if let Some(other) = activation.filter(|name| *name != "xielu") {
            return Err(hparams.unsupported(&format!("activation \"{other}\"")));
        }
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: Activation::Identity,
            bias: hparams.has_bias("mlp_bias", Role::UpBias)?,
        };
        let mut spec = llama::spec_with(hparams, self.gguf_name(), false, Ffn::Plain(dense))?;
        let norm = spec.output_norm;
        let has_norms = match hparams.is_gguf() {
            true => hparams.has_tensor(Role::QueryNorm, Some(0)),
            false => hparams.flag("qk_norm", true)?,
        };
        for attention in spec.attentions_mut() {
            attention.qk_norm = has_norms.then_some(norm);
            attention.set_rope_half();
        }
        let n_layers = spec.layers.len();
        for (layer, activation) in spec.layers.iter_mut().zip(xielus(hparams, n_layers)?) {
            layer.ffn = Ffn::Plain(Dense { activation, ..dense });
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        match (container, role) {
            (Container::Safetensors, Role::MixerNorm) => vec!["attention_layernorm.weight".into()],
            (Container::Safetensors, Role::FfnNorm) => vec!["feedforward_layernorm.weight".into()],
            _ => names::plain(container, role),
        }
    }
}

/// Reads each layer's activation. Files store both alphas before softplus, and the negative one without beta.
fn xielus(hparams: &HParams<'_>, n_layers: usize) -> Result<Vec<Activation>> {
    let alpha_p = numbers(hparams, ALPHA_P, n_layers, None)?;
    let alpha_n = numbers(hparams, ALPHA_N, n_layers, None)?;
    let beta = numbers(hparams, BETA, n_layers, Some(DEFAULT_BETA))?;
    let eps = numbers(hparams, EPS, n_layers, Some(DEFAULT_EPS))?;
    let one = |i: usize| Activation::XIelu {
        alpha_p: softplus(alpha_p[i]),
        alpha_n: beta[i] + softplus(alpha_n[i]),
        beta: beta[i],
        eps: eps[i],
    };
    Ok((0..n_layers).map(one).collect())
}

/// Reads a number of each layer.
fn numbers(
    hparams: &HParams<'_>,
    (key, tensor): (&'static str, &str),
    n_layers: usize,
    default: Option<f32>,
) -> Result<Vec<f32>> {
    let found = match hparams.is_gguf() {
        true => hparams.global_reals(key, n_layers)?,
        false => hparams.numbers_by_layer(tensor, n_layers)?,
    };
    let numbers = match (found, default) {
        (Some(numbers), _) => numbers,
        (None, Some(default)) => vec![default; n_layers],
        (None, None) => return Err(hparams.missing(if hparams.is_gguf() { key } else { tensor })),
    };
    if let Some(bad) = numbers.iter().find(|x| !x.is_finite() || f64::from(x.abs()) > MAX_FACTOR) {
        return Err(hparams.wrong(key, format!("{bad} is no usable number")));
    }
    hparams.note_global(key, OwnedValue::F32s(numbers.clone()));
    Ok(numbers)
}

fn softplus(x: f32) -> f32 {
    let x = f64::from(x);
    (x.max(0.0) + (-x.abs()).exp().ln_1p()) as f32
}
