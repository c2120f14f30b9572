//! Arcee (AFM): llama with an ungated feed-forward part of squared ReLU.

use kernels::Activation;

use super::hparams::{HParams, MAX_WIDTH};
use super::{Architecture, keys, llama};
use crate::error::Result;
use crate::spec::{Dense, Ffn, ModelSpec, Role};

pub(super) struct Arcee;

impl Architecture for Arcee {
    fn gguf_name(&self) -> &'static str {
        "arcee"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["arcee"]
    }

    fn hf_defaults(&self) -> &'static [(&'static str, f64)] {
        &[("rms_norm_eps", 1e-5), ("max_position_embeddings", 4096.0)]
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let dense = Dense {
            d_ff: hparams.count(keys::D_FF, MAX_WIDTH)?,
            activation: hparams.activation("hidden_act", Activation::ReluSquared)?,
            bias: hparams.has_bias("mlp_bias", Role::UpBias)?,
        };
        llama::spec_with(hparams, self.gguf_name(), false, Ffn::Plain(dense))
    }
}
