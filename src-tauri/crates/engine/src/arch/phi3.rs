//! Phi 3 and 3.5: llama with fused projections and LongRoPE.

use weights::Container;

use super::hparams::HParams;
use super::tensor_names::TensorName;
use super::{Architecture, llama, names};
use crate::error::Result;
use crate::spec::{ModelSpec, Role};

pub(super) struct Phi3;

impl Architecture for Phi3 {
    fn gguf_name(&self) -> &'static str {
        "phi3"
    }

    fn hf_names(&self) -> &'static [&'static str] {
        &["phi3"]
    }

    fn is_trainable(&self) -> bool {
        true
    }

    fn spec(&self, hparams: &HParams<'_>) -> Result<ModelSpec> {
        let mut spec = llama::spec(hparams, self.gguf_name(), false)?;
        let window = hparams.window()?;
        for attention in spec.attentions_mut() {
            attention.window = window;
            attention.set_rope_half();
        }
        Ok(spec)
    }

    fn tensor_names(&self, container: Container, role: Role) -> Vec<TensorName> {
        let is_gguf = matches!(container, Container::Gguf { .. });
        match role {
            Role::Query | Role::Key | Role::Value => {
                let name = if is_gguf { "attn_qkv.weight" } else { "self_attn.qkv_proj.weight" };
                vec![TensorName::rows(name, names::QKV)]
            }
            Role::Gate | Role::Up => {
                let name = if is_gguf { "ffn_up.weight" } else { "mlp.gate_up_proj.weight" };
                vec![TensorName::rows(name, names::GATE_UP)]
            }
            _ => names::plain(container, role),
        }
    }
}
