//! Floats that a row takes while it passes a layer.

use super::{Attention, Ffn, LayerSpec, Mixer, Ssm};

impl LayerSpec {
    /// Floats alive at once while a row passes a layer, beside the residual stream.
    pub(crate) fn row_floats(&self, d_model: usize) -> usize {
        let of_attention = |a: &Attention| {
            let (q, kv) = (a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim);
            2 * q + 2 * kv + if a.output_gate { q } else { 0 }
        };
        let of_ssm = |ssm: &Ssm| 2 * ssm.xbc_width() + 3 * ssm.inner() + ssm.n_heads;
        let mixer = match &self.mixer {
            Mixer::Attention(a) => of_attention(a),
            // Queries before and after their projection to the latent, and the values.
            Mixer::Latent(latent) => {
                let a = &latent.attention;
                of_attention(a) + a.n_heads * (2 * (latent.nope_dim + latent.rope_dim) + latent.value_dim)
            }
            Mixer::ShortConv(_) => 4 * d_model,
            Mixer::DeltaNet(delta) => 2 * delta.qkv_width() + 2 * delta.value_width(),
            Mixer::Ssm(ssm) => of_ssm(ssm),
            Mixer::AttentionAndSsm { attention, ssm } => {
                d_model + of_attention(&attention.0).max(of_ssm(&ssm.0))
            }
            Mixer::None => 0,
        };
        let dense = match &self.ffn {
            Ffn::Gated(dense)
            | Ffn::Plain(dense)
            | Ffn::Scaled { dense, .. }
            | Ffn::Sparse { dense, .. }
            | Ffn::GatedAndExperts { dense, .. } => 3 * dense.d_ff,
            Ffn::Experts(_) | Ffn::None => 0,
        };
        let experts = self.ffn.experts().map_or(0, |experts| {
            let shared = experts.shared.map_or(0, |shared| 3 * shared.d_ff);
            experts.n_used * (3 * experts.d_ff + d_model) + shared
        });
        let laurel = self.laurel.map_or(0, |laurel| d_model + laurel.rank);
        (mixer + laurel).max(dense + experts)
    }
}
