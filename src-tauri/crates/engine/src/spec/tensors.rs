//! Lists every tensor that a spec requires, with its shape.

use super::{
    AltUp, Attention, DeltaNet, Dense, EmbeddingHead, ExpertForm, Experts, Ffn, KvSource, LatentAttention,
    LayerSpec, Mixer, ModelSpec, Norm, QkNormForm, Role, RouterInput, SharedWeight, ShortConv, Ssm,
    TensorSpec,
};

/// Takes a role and its shape, row-major.
pub(super) type AddTensor<'a> = dyn FnMut(Role, Vec<usize>) + 'a;

impl ModelSpec {
    /// Returns every tensor that the model requires.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        let d = self.d_model;
        let mut all = Vec::new();
        let mut add = |role, shape| all.push((role, None, shape));
        add(Role::TokenEmbedding, vec![self.n_vocab, d]);
        if let Some(n_positions) = self.embedding.n_positions {
            add(Role::PositionEmbedding, vec![n_positions, d]);
        }
        if let Some(n_kinds) = self.embedding.n_kinds {
            add(Role::TokenTypes, vec![n_kinds, d]);
        }
        if let Some(of_embedding) = self.embedding.norm {
            norm(of_embedding, d, [Role::EmbeddingNorm, Role::EmbeddingNormBias], &mut add);
        }
        if let Some(per_layer) = &self.embedding.per_layer {
            let width = self.layers.len() * per_layer.width;
            add(Role::PerLayerEmbedding, vec![per_layer.n_rows.unwrap_or(self.n_vocab), width]);
            add(Role::PerLayerProjection, vec![width, d]);
            norm(per_layer.norm, per_layer.width, [Role::PerLayerProjectionNorm; 2], &mut add);
        }
        if let Some(altup) = self.streams.filter(|altup| altup.n_streams > 1) {
            add(Role::AltUpProjection, vec![altup.n_streams - 1, d, d]);
            add(Role::AltUpOut, vec![altup.n_streams - 1, d, d]);
        }
        norm(self.output_norm, d, [Role::OutputNorm, Role::OutputNormBias], &mut add);
        match &self.embeds {
            None if self.tied_embeddings => {}
            None => add(Role::Output, vec![self.n_vocab, d]),
            Some(EmbeddingHead { rank: Some(_), .. }) => {
                add(Role::RankDense, vec![d, d]);
                add(Role::RankDenseBias, vec![d]);
                add(Role::RankOut, vec![1, d]);
                add(Role::RankOutBias, vec![1]);
            }
            Some(embeds) => {
                let mut width = d;
                for (role, out) in embeds.layers() {
                    add(role, vec![out, width]);
                    width = out;
                }
            }
        }
        if self.output_bias && self.embeds.is_none() {
            add(Role::OutputBias, vec![self.n_vocab]);
        }
        if let Some(head) = self.assistant_head() {
            head.tensors(d, &mut |role, shape| all.push((role, None, shape)));
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let mut add = |role, shape| all.push((role, Some(index), shape));
            layer.tensors(d, &mut add);
            if let Some(altup) = &self.streams {
                altup.tensors(d, &mut add);
            }
        }
        if let Some(draft) = &self.draft {
            let layer = Some(draft.layer_number);
            draft.tensors(self.n_vocab, d, &mut |role, shape| all.push((role, layer, shape)));
        }
        all
    }
}

impl LayerSpec {
    pub(super) fn tensors(&self, d: usize, add: &mut AddTensor) {
        norm(self.mixer_norm, d, [Role::MixerNorm, Role::MixerNormBias], add);
        match &self.mixer {
            Mixer::Attention(attention) => attention.tensors(d, add),
            Mixer::ShortConv(conv) => conv.tensors(d, add),
            Mixer::DeltaNet(delta) => delta.tensors(d, add),
            Mixer::Latent(latent) => latent.tensors(d, add),
            Mixer::Ssm(ssm) => ssm.tensors(d, add),
            Mixer::AttentionAndSsm { attention, ssm } => {
                attention.0.tensors(d, add);
                ssm.0.tensors(d, add);
            }
            Mixer::None => {}
        }
        if let Some(post) = self.mixer_post_norm {
            norm(post, d, [Role::MixerPostNorm; 2], add);
        }
        if let Some(laurel) = &self.laurel {
            add(Role::LaurelDown, vec![laurel.rank, d]);
            add(Role::LaurelUp, vec![d, laurel.rank]);
            norm(laurel.norm, d, [Role::LaurelNorm; 2], add);
        }
        norm(self.ffn_norm, d, [Role::FfnNorm, Role::FfnNormBias], add);
        match &self.ffn {
            Ffn::Gated(dense) | Ffn::Scaled { dense, .. } | Ffn::Sparse { dense, .. } => {
                add(Role::Gate, vec![dense.d_ff, d]);
                if dense.bias {
                    add(Role::GateBias, vec![dense.d_ff]);
                }
                dense.tensors(d, add);
            }
            Ffn::Plain(dense) => dense.tensors(d, add),
            Ffn::None => {}
            Ffn::Experts(experts) => experts.tensors(d, add),
            Ffn::GatedAndExperts { dense, experts, norm: around } => {
                add(Role::Gate, vec![dense.d_ff, d]);
                dense.tensors(d, add);
                experts.tensors(d, add);
                for role in [Role::DensePostNorm, Role::ExpertNorm, Role::ExpertPostNorm] {
                    norm(*around, d, [role; 2], add);
                }
            }
        }
        if let Some(post) = self.ffn_post_norm {
            norm(post, d, [Role::FfnPostNorm; 2], add);
        }
        if let Some(input) = &self.per_layer_input {
            add(Role::LayerInputGate, vec![input.width, d]);
            add(Role::LayerInputProjection, vec![d, input.width]);
            norm(input.norm, d, [Role::LayerInputNorm; 2], add);
        }
        if self.output_scale {
            add(Role::LayerScale, vec![1]);
        }
    }
}

impl AltUp {
    /// Those of one layer.
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let n = self.n_streams;
        norm(self.router_norm, d, [Role::AltUpRouterNorm; 2], add);
        add(Role::AltUpRouter, vec![n, d]);
        add(Role::AltUpPrediction, vec![n * n, n]);
        add(Role::AltUpCorrection, vec![n, n]);
        if self.gate_scale {
            add(Role::AltUpGateScale, vec![d]);
        }
    }
}

impl Attention {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let (q, kv) = (self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim);
        let q_rows = if self.output_gate { 2 * q } else { q };
        add(Role::Query, vec![q_rows, d]);
        if self.qkv_bias {
            add(Role::QueryBias, vec![q_rows]);
        }
        if let Some(qk_norm) = self.qk_norm {
            self.qk_norm_tensor(qk_norm, self.n_heads, Role::QueryNorm, add);
        }
        let (has_keys, has_values) = match self.keys {
            KvSource::Projected => (true, true),
            KvSource::SharedByValues => (true, false),
            KvSource::OfLayer(_) | KvSource::OfTarget { .. } => (false, false),
        };
        let projections = [(has_keys, Role::Key, Role::KeyBias), (has_values, Role::Value, Role::ValueBias)];
        for (_, role, bias) in projections.into_iter().filter(|(exists, ..)| *exists) {
            add(role, vec![kv, d]);
            if self.qkv_bias {
                add(bias, vec![kv]);
            }
        }
        if let Some(qk_norm) = self.qk_norm.filter(|_| has_keys) {
            self.qk_norm_tensor(qk_norm, self.n_kv_heads, Role::KeyNorm, add);
        }
        if self.sinks {
            add(Role::Sinks, vec![self.n_heads]);
        }
        add(Role::AttentionOut, vec![d, q]);
        if self.out_bias {
            add(Role::AttentionOutBias, vec![d]);
        }
    }
}

impl Attention {
    /// The weights of the norm of that many query or key heads.
    fn qk_norm_tensor(&self, norm: Norm, n_heads: usize, role: Role, add: &mut AddTensor) {
        let width = self.head_dim;
        match self.qk_norm_form {
            QkNormForm::Head | QkNormForm::RotatedHead => self::norm(norm, width, [role; 2], add),
            QkNormForm::Projection => self::norm(norm, n_heads * width, [role; 2], add),
            QkNormForm::OwnHead => add(role, vec![n_heads, width]),
        }
    }
}

impl ShortConv {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        add(Role::ConvIn, vec![3 * d, d]);
        add(Role::Conv, vec![d, self.kernel]);
        add(Role::ConvOut, vec![d, d]);
        if self.bias {
            add(Role::ConvInBias, vec![3 * d]);
            add(Role::ConvBias, vec![d]);
            add(Role::ConvOutBias, vec![d]);
        }
    }
}

impl DeltaNet {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let (qkv, v) = (self.qkv_width(), self.value_width());
        add(Role::DeltaQkv, vec![qkv, d]);
        add(Role::DeltaGate, vec![v, d]);
        add(Role::DeltaBeta, vec![self.n_v_heads, d]);
        add(Role::DeltaAlpha, vec![self.n_v_heads, d]);
        add(Role::DeltaConv, vec![qkv, self.kernel]);
        add(Role::DeltaDecay, vec![self.n_v_heads]);
        add(Role::DeltaTimeBias, vec![self.n_v_heads]);
        norm(self.norm, self.v_dim, [Role::DeltaNorm; 2], add);
        add(Role::DeltaOut, vec![d, v]);
    }
}

impl LatentAttention {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let n_heads = self.attention.n_heads;
        let mut width = d;
        if let Some(query) = self.query_rank {
            add(Role::LatentQueryDown, vec![query.rank, d]);
            norm(query.norm, query.rank, [Role::LatentQueryNorm; 2], add);
            width = query.rank;
        }
        add(Role::LatentQuery, vec![n_heads * (self.nope_dim + self.rope_dim), width]);
        add(Role::LatentDown, vec![self.rank, d]);
        norm(self.norm, self.rank, [Role::LatentNorm; 2], add);
        add(Role::LatentRope, vec![self.rope_dim, d]);
        add(Role::LatentKeys, vec![n_heads, self.rank, self.nope_dim]);
        add(Role::LatentValues, vec![n_heads, self.value_dim, self.rank]);
        add(Role::AttentionOut, vec![d, n_heads * self.value_dim]);
    }
}

impl Ssm {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let (inner, xbc) = (self.inner(), self.xbc_width());
        for (role, bias, rows) in [
            (Role::SsmGate, Role::SsmGateBias, inner),
            (Role::SsmXbc, Role::SsmXbcBias, xbc),
            (Role::SsmStep, Role::SsmStepBias, self.n_heads),
        ] {
            add(role, vec![rows, d]);
            if self.in_bias {
                add(bias, vec![rows]);
            }
        }
        add(Role::SsmConv, vec![xbc, self.kernel]);
        if self.conv_bias {
            add(Role::SsmConvBias, vec![xbc]);
        }
        for role in [Role::SsmDecay, Role::SsmSkip, Role::SsmTimeBias] {
            add(role, vec![self.n_heads]);
        }
        if let Some(of_output) = self.norm {
            norm(of_output, inner, [Role::SsmNorm; 2], add);
        }
        add(Role::SsmOut, vec![d, inner]);
        if self.out_bias {
            add(Role::SsmOutBias, vec![d]);
        }
    }
}

impl Dense {
    /// Without the gate.
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        add(Role::Up, vec![self.d_ff, d]);
        add(Role::Down, vec![d, self.d_ff]);
        if self.bias {
            add(Role::UpBias, vec![self.d_ff]);
            add(Role::DownBias, vec![d]);
        }
    }
}

impl Experts {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let (n, d_ff) = (self.n_experts, self.d_ff);
        add(Role::Router, vec![n, d]);
        if self.router_bias {
            add(Role::RouterBias, vec![n]);
        }
        if self.router.selection_bias {
            add(Role::RouterSelectionBias, vec![n]);
        }
        match self.router_input {
            RouterInput::Normed => {}
            RouterInput::Residual { .. } => add(Role::RouterScale, vec![d]),
        }
        let is_gated = self.form == ExpertForm::Gated;
        if is_gated {
            add(Role::ExpertGate, vec![n, d_ff, d]);
        }
        add(Role::ExpertUp, vec![n, d_ff, d]);
        add(Role::ExpertDown, vec![n, d, d_ff]);
        if self.bias {
            if is_gated {
                add(Role::ExpertGateBias, vec![n, d_ff]);
            }
            add(Role::ExpertUpBias, vec![n, d_ff]);
            add(Role::ExpertDownBias, vec![n, d]);
        }
        if self.expert_scale {
            add(Role::ExpertScale, vec![n]);
        }
        if let Some(shared) = &self.shared {
            if is_gated {
                add(Role::SharedGate, vec![shared.d_ff, d]);
            }
            add(Role::SharedUp, vec![shared.d_ff, d]);
            add(Role::SharedDown, vec![d, shared.d_ff]);
            match shared.weight {
                SharedWeight::Gate => add(Role::SharedRouter, vec![1, d]),
                SharedWeight::One => {}
            }
        }
    }
}

/// The tensors of a norm: weight and bias have a role each.
pub(super) fn norm(norm: Norm, width: usize, [weight, bias]: [Role; 2], add: &mut AddTensor) {
    match norm {
        Norm::Rms { .. } => add(weight, vec![width]),
        Norm::None | Norm::PlainRms { .. } => {}
        Norm::Layer { bias: has_bias, .. } => {
            add(weight, vec![width]);
            if has_bias {
                add(bias, vec![width]);
            }
        }
    }
}
