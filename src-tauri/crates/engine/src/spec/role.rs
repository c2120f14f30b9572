//! Roles of a model's tensors.

/// Role of a tensor in a model. An architecture maps it to the name in its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Embedding table. `[n_vocab, d_model]`
    TokenEmbedding,
    /// Table of learned positions. `[n_positions, d_model]`
    PositionEmbedding,
    /// Table of token types (BERT). `[n_kinds, d_model]`
    TokenTypes,
    /// Norm of the embedding. `[d_model]`
    EmbeddingNorm,
    /// Bias of that norm. `[d_model]`
    EmbeddingNormBias,
    /// Norm before the output matrix. `[d_model]`
    OutputNorm,
    /// Bias of that norm. `[d_model]`
    OutputNormBias,
    /// Output matrix. `[n_vocab, d_model]`
    Output,
    /// First linear layer behind the output norm of models that embed. `[out, d_model]`
    Dense2,
    /// Second linear layer behind the output norm of models that embed. `[out, in]`
    Dense3,
    /// A narrow embedding for every layer, one after another. `[n_vocab, layers · width]`
    PerLayerEmbedding,
    /// Projects the embedding to all per-layer inputs. `[layers · width, d_model]`
    PerLayerProjection,
    /// Norm of each projected per-layer input. `[width]`
    PerLayerProjectionNorm,

    /// Norm before the mixer. `[d_model]`
    MixerNorm,
    /// Bias of that norm. `[d_model]`
    MixerNormBias,
    /// Norm after the mixer. `[d_model]`
    MixerPostNorm,
    /// Query projection, with gate rows where the attention has an output gate. `[rows, d_model]`
    Query,
    /// `[rows]`
    QueryBias,
    /// Norm of a query head. `[head_dim]`
    QueryNorm,
    /// Key projection. `[n_kv_heads · head_dim, d_model]`
    Key,
    /// `[n_kv_heads · head_dim]`
    KeyBias,
    /// Norm of a key head. `[head_dim]`
    KeyNorm,
    /// Value projection. `[n_kv_heads · head_dim, d_model]`
    Value,
    /// `[n_kv_heads · head_dim]`
    ValueBias,
    /// Attention sinks. `[n_heads]`
    Sinks,
    /// Output projection of an attention. `[d_model, n_heads · head_dim]`
    AttentionOut,
    /// `[d_model]`
    AttentionOutBias,

    /// Projection to B, C and x of a short convolution. `[3 · d_model, d_model]`
    ConvIn,
    /// `[3 · d_model]`
    ConvInBias,
    /// Taps of a short convolution. `[d_model, kernel]`
    Conv,
    /// `[d_model]`
    ConvBias,
    /// Output projection of a short convolution. `[d_model, d_model]`
    ConvOut,
    /// `[d_model]`
    ConvOutBias,

    /// Query, key and value projection of a DeltaNet. `[qkv width, d_model]`
    DeltaQkv,
    /// Projection of the output gate. `[value width, d_model]`
    DeltaGate,
    /// Projection of the write strength. `[n_v_heads, d_model]`
    DeltaBeta,
    /// Projection of the decay's exponent. `[n_v_heads, d_model]`
    DeltaAlpha,
    /// Taps of its convolution. `[qkv width, kernel]`
    DeltaConv,
    /// Decay of each head, as `Decay` says. `[n_v_heads]`
    DeltaDecay,
    /// Bias of the decay's exponent. `[n_v_heads]`
    DeltaTimeBias,
    /// Norm of an output head. `[v_dim]`
    DeltaNorm,
    /// Output projection of a DeltaNet. `[d_model, value width]`
    DeltaOut,

    /// Norm before the feed-forward part. `[d_model]`
    FfnNorm,
    /// Bias of that norm. `[d_model]`
    FfnNormBias,
    /// Norm after the feed-forward part. `[d_model]`
    FfnPostNorm,
    /// Gate of a dense part. `[d_ff, d_model]`
    Gate,
    /// `[d_ff]`
    GateBias,
    /// Up projection of a dense part. `[d_ff, d_model]`
    Up,
    /// `[d_ff]`
    UpBias,
    /// Down projection of a dense part. `[d_model, d_ff]`
    Down,
    /// `[d_model]`
    DownBias,

    /// Router of the experts. `[n_experts, d_model]`
    Router,
    /// `[n_experts]`
    RouterBias,
    /// Factors on the router's input. `[d_model]`
    RouterScale,
    /// `[n_experts, d_ff, d_model]`
    ExpertGate,
    /// `[n_experts, d_ff]`
    ExpertGateBias,
    /// `[n_experts, d_ff, d_model]`
    ExpertUp,
    /// `[n_experts, d_ff]`
    ExpertUpBias,
    /// `[n_experts, d_model, d_ff]`
    ExpertDown,
    /// `[n_experts, d_model]`
    ExpertDownBias,
    /// Factor on each expert's weight. `[n_experts]`
    ExpertScale,
    /// Gate of the shared expert. `[d_ff, d_model]`
    SharedGate,
    /// Up projection of the shared expert. `[d_ff, d_model]`
    SharedUp,
    /// Down projection of the shared expert. `[d_model, d_ff]`
    SharedDown,
    /// Weight of the shared expert. `[1, d_model]`
    SharedRouter,
    /// Norms of a layer that has a dense part beside its experts.
    DensePostNorm,
    /// Norm of the experts' input. `[d_model]`
    ExpertNorm,
    /// Norm of the experts' output. `[d_model]`
    ExpertPostNorm,

    /// Gate of the per-layer input. `[width, d_model]`
    LayerInputGate,
    /// Projection of the gated per-layer input. `[d_model, width]`
    LayerInputProjection,
    /// Norm of that projection. `[d_model]`
    LayerInputNorm,
    /// Factor on the layer's output. `[1]`
    LayerScale,
}

impl Role {
    /// Roles whose first dimension counts experts.
    pub fn is_expert(self) -> bool {
        matches!(
            self,
            Self::ExpertGate
                | Self::ExpertGateBias
                | Self::ExpertUp
                | Self::ExpertUpBias
                | Self::ExpertDown
                | Self::ExpertDownBias
        )
    }

    /// Roles that are a matrix for each expert.
    pub fn is_expert_matrix(self) -> bool {
        matches!(self, Self::ExpertGate | Self::ExpertUp | Self::ExpertDown)
    }
}
