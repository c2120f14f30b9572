//! The parts that tensors play.

/// Which of a model's tensors is meant. An architecture maps it to the name in its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    TokenEmbedding,
    PositionEmbedding,
    TokenTypes,
    EmbeddingNorm,
    EmbeddingNormBias,
    OutputNorm,
    OutputNormBias,
    Output,
    /// Linear layers behind the output norm of models that embed.
    Dense2,
    Dense3,
    /// A narrow embedding for every layer, one after another.
    PerLayerEmbedding,
    PerLayerProjection,
    PerLayerProjectionNorm,

    MixerNorm,
    MixerNormBias,
    MixerPostNorm,
    Query,
    QueryBias,
    QueryNorm,
    Key,
    KeyBias,
    KeyNorm,
    Value,
    ValueBias,
    Sinks,
    AttentionOut,
    AttentionOutBias,

    ConvIn,
    ConvInBias,
    Conv,
    ConvBias,
    ConvOut,
    ConvOutBias,

    DeltaQkv,
    DeltaGate,
    DeltaBeta,
    DeltaAlpha,
    DeltaConv,
    DeltaDecay,
    DeltaTimeBias,
    DeltaNorm,
    DeltaOut,

    FfnNorm,
    FfnNormBias,
    FfnPostNorm,
    Gate,
    GateBias,
    Up,
    UpBias,
    Down,
    DownBias,

    Router,
    RouterBias,
    RouterScale,
    /// [n_experts, d_ff, d_model]
    ExpertGate,
    /// [n_experts, d_ff]
    ExpertGateBias,
    ExpertUp,
    ExpertUpBias,
    /// [n_experts, d_model, d_ff]
    ExpertDown,
    ExpertDownBias,
    ExpertScale,
    SharedGate,
    SharedUp,
    SharedDown,
    SharedRouter,
    /// Norms of a layer that has a dense part beside its experts.
    DensePostNorm,
    ExpertNorm,
    ExpertPostNorm,

    LayerInputGate,
    LayerInputProjection,
    LayerInputNorm,
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
