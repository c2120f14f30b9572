//! The feed-forward part of one layer.

use kernels::ValueId;

use super::Decoder;
use crate::error::Result;
use crate::spec::{Ffn, Role};

impl Decoder<'_> {
    /// x (tokens, d_model) → same shape
    pub(super) fn ffn(&mut self, x: ValueId, spec: &Ffn) -> Result<ValueId> {
        match *spec {
            Ffn::Gated { d_ff: _, activation, bias } => {
                let bias = |role| bias.then_some(role);
                let gate = self.matmul("ffn.gate", x, Role::Gate, bias(Role::GateBias))?; // (tokens, d_ff)
                let up = self.matmul("ffn.up", x, Role::Up, bias(Role::UpBias))?; // (tokens, d_ff)
                let gated = self.graph.glu(self.name("ffn.glu"), gate, up, activation)?; // (tokens, d_ff)
                self.matmul("ffn.down", gated, Role::Down, bias(Role::DownBias))
            }
        }
    }
}
