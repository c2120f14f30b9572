//! Lists every tensor that a spec requires, with its shape.

use super::{
    Attention, DeltaNet, Dense, Experts, Ffn, KvSource, LayerSpec, Mixer, ModelSpec, Norm, Role, RouterInput,
    ShortConv, TensorSpec,
};

/// Takes a role and its shape, row-major.
type AddTensor<'a> = dyn FnMut(Role, Vec<usize>) + 'a;

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
            add(Role::PerLayerEmbedding, vec![self.n_vocab, width]);
            add(Role::PerLayerProjection, vec![width, d]);
            norm(per_layer.norm, per_layer.width, [Role::PerLayerProjectionNorm; 2], &mut add);
        }
        norm(self.output_norm, d, [Role::OutputNorm, Role::OutputNormBias], &mut add);
        match &self.embeds {
            None if self.tied_embeddings => {}
            None => add(Role::Output, vec![self.n_vocab, d]),
            Some(embeds) => {
                let mut width = d;
                for (role, out) in embeds.layers() {
                    add(role, vec![out, width]);
                    width = out;
                }
            }
        }
        for (index, layer) in self.layers.iter().enumerate() {
            layer.tensors(d, &mut |role, shape| all.push((role, Some(index), shape)));
        }
        all
    }
}

impl LayerSpec {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        norm(self.mixer_norm, d, [Role::MixerNorm, Role::MixerNormBias], add);
        match &self.mixer {
            Mixer::Attention(attention) => attention.tensors(d, add),
            Mixer::ShortConv(conv) => conv.tensors(d, add),
            Mixer::DeltaNet(delta) => delta.tensors(d, add),
        }
        if let Some(post) = self.mixer_post_norm {
            norm(post, d, [Role::MixerPostNorm; 2], add);
        }
        norm(self.ffn_norm, d, [Role::FfnNorm, Role::FfnNormBias], add);
        match &self.ffn {
            Ffn::Gated(dense) => {
                add(Role::Gate, vec![dense.d_ff, d]);
                if dense.bias {
                    add(Role::GateBias, vec![dense.d_ff]);
                }
                dense.tensors(d, add);
            }
            Ffn::Plain(dense) => dense.tensors(d, add),
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

impl Attention {
    fn tensors(&self, d: usize, add: &mut AddTensor) {
        let (q, kv) = (self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim);
        let q_rows = if self.output_gate { 2 * q } else { q };
        add(Role::Query, vec![q_rows, d]);
        if self.qkv_bias {
            add(Role::QueryBias, vec![q_rows]);
        }
        if let Some(qk_norm) = self.qk_norm {
            norm(qk_norm, self.head_dim, [Role::QueryNorm; 2], add);
        }
        let (has_keys, has_values) = match self.keys {
            KvSource::Projected => (true, true),
            KvSource::SharedByValues => (true, false),
            KvSource::OfLayer(_) => (false, false),
        };
        let projections = [(has_keys, Role::Key, Role::KeyBias), (has_values, Role::Value, Role::ValueBias)];
        for (_, role, bias) in projections.into_iter().filter(|(exists, ..)| *exists) {
            add(role, vec![kv, d]);
            if self.qkv_bias {
                add(bias, vec![kv]);
            }
        }
        if let Some(qk_norm) = self.qk_norm.filter(|_| has_keys) {
            norm(qk_norm, self.head_dim, [Role::KeyNorm; 2], add);
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
        match self.router_input {
            RouterInput::Normed => {}
            RouterInput::Residual { .. } => add(Role::RouterScale, vec![d]),
        }
        add(Role::ExpertGate, vec![n, d_ff, d]);
        add(Role::ExpertUp, vec![n, d_ff, d]);
        add(Role::ExpertDown, vec![n, d, d_ff]);
        if self.bias {
            add(Role::ExpertGateBias, vec![n, d_ff]);
            add(Role::ExpertUpBias, vec![n, d_ff]);
            add(Role::ExpertDownBias, vec![n, d]);
        }
        if self.expert_scale {
            add(Role::ExpertScale, vec![n]);
        }
        if let Some(shared) = &self.shared {
            add(Role::SharedGate, vec![shared.d_ff, d]);
            add(Role::SharedUp, vec![shared.d_ff, d]);
            add(Role::SharedDown, vec![d, shared.d_ff]);
            add(Role::SharedRouter, vec![1, d]);
        }
    }
}

/// The tensors of a norm: weight and bias have a role each.
fn norm(norm: Norm, width: usize, [weight, bias]: [Role; 2], add: &mut AddTensor) {
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
