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
    /// `[n_vocab]`
    OutputBias,
    /// First linear layer behind the output norm of models that embed. `[out, d_model]`
    Dense2,
    /// Second linear layer behind the output norm of models that embed. `[out, in]`
    Dense3,
    /// Hidden layer of a head that ranks pairs of texts, before its tanh. `[d_model, d_model]`
    RankDense,
    /// `[d_model]`
    RankDenseBias,
    /// Score of that head. `[1, d_model]`
    RankOut,
    /// `[1]`
    RankOutBias,
    /// A narrow embedding for every layer, one after another. `[n_vocab, layers · width]`
    PerLayerEmbedding,
    /// Projects the embedding to all per-layer inputs. `[layers · width, d_model]`
    PerLayerProjection,
    /// Norm of each projected per-layer input. `[width]`
    PerLayerProjectionNorm,
    /// Projections of the embedding to the further residual streams. `[n_streams - 1, d_model, d_model]`
    AltUpProjection,
    /// Projections of the further residual streams before they are joined. `[n_streams - 1, d_model, d_model]`
    AltUpOut,

    /// Projection of a patch of an image. `[d_model, channels, size, size]`
    PatchEmbedding,
    /// Projection of the same patch as the next frame of a video. `[d_model, channels, size, size]`
    PatchEmbeddingNext,
    /// `[d_model]`
    PatchEmbeddingBias,
    /// Norm of every patch before the layers. `[d_model]`
    PatchNorm,
    /// `[d_model]`
    PatchNormBias,
    /// Norm of the samples of a patch. `[channels · size · size]`
    PatchSampleNorm,
    /// `[channels · size · size]`
    PatchSampleNormBias,
    /// Norm of a projected patch, before its place is added. `[d_model]`
    PatchEmbeddingNorm,
    /// `[d_model]`
    PatchEmbeddingNormBias,
    /// Subtracted from merged patches. `[1, d_model]`
    StandardBias,
    /// Multiplies merged patches. `[1, d_model]`
    StandardScale,
    /// Joins the patches of a block before the hidden layer. `[d_model, block · d_model]`
    ProjectorMerge,
    /// Norm of merged patches. `[width]`
    ProjectorNorm,
    /// `[width]`
    ProjectorNormBias,
    /// Hidden layer between a vision tower and the language model. `[out, in]`
    ProjectorHidden,
    /// `[out]`
    ProjectorHiddenBias,
    /// Last layer between a vision tower and the language model. `[out, in]`
    ProjectorOut,
    /// `[out]`
    ProjectorOutBias,
    /// Norm of the merged patches of an inner layer (deepstack). `[block · d_model]`
    DeepNorm,
    /// `[block · d_model]`
    DeepNormBias,
    /// Hidden layer of their projector. `[out, in]`
    DeepHidden,
    /// `[out]`
    DeepHiddenBias,
    /// Last layer of their projector. `[out, in]`
    DeepOut,
    /// `[out]`
    DeepOutBias,

    /// Joins embedding and hidden state before the layer of a draft block. `[d_model, 2 · d_model]`
    DraftProjection,
    /// Norm of its embedding. `[d_model]`
    DraftEmbeddingNorm,
    /// Norm of its hidden state. `[d_model]`
    DraftHiddenNorm,
    /// Norm of its output. `[d_model]`
    DraftOutputNorm,
    /// Its own embedding table. `[n_vocab, d_model]`
    DraftEmbedding,
    /// Its own output matrix. `[n_vocab, d_model]`
    DraftOutput,
    /// Gives the hidden state for an assistant's next draft. `[width of the target, d_model]`
    DraftNextProjection,
    /// Scores an assistant's token clusters. `[clusters, d_model]`
    DraftClusters,

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

    /// First of two projections of latent queries. `[query rank, d_model]`
    LatentQueryDown,
    /// Norm between them. `[query rank]`
    LatentQueryNorm,
    /// Projection of latent queries. `[n_heads · (nope_dim + rope_dim), query rank or d_model]`
    LatentQuery,
    /// Projection to the latent. `[rank, d_model]`
    LatentDown,
    /// Norm of the latent. `[rank]`
    LatentNorm,
    /// Projection to the rotated part of the keys. `[rope_dim, d_model]`
    LatentRope,
    /// From a head's queries to the latent. `[n_heads, rank, nope_dim]`
    LatentKeys,
    /// From the latent to a head's values. `[n_heads, value_dim, rank]`
    LatentValues,

    /// Projection to the gate of a state space. `[inner, d_model]`
    SsmGate,
    /// `[inner]`
    SsmGateBias,
    /// Projection to x, B and C. `[xbc width, d_model]`
    SsmXbc,
    /// `[xbc width]`
    SsmXbcBias,
    /// Projection to the time steps. `[n_heads, d_model]`
    SsmStep,
    /// `[n_heads]`
    SsmStepBias,
    /// Taps of its convolution. `[xbc width, kernel]`
    SsmConv,
    /// `[xbc width]`
    SsmConvBias,
    /// Decay of each head, as `Decay` says. `[n_heads]`
    SsmDecay,
    /// Factor of each head on x in the output. `[n_heads]`
    SsmSkip,
    /// Added to the time steps. `[n_heads]`
    SsmTimeBias,
    /// Norm of the output. `[inner]`
    SsmNorm,
    /// Output projection of a state space. `[d_model, inner]`
    SsmOut,
    /// `[d_model]`
    SsmOutBias,

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
    /// Added to the router's scores to choose by. `[n_experts]`
    RouterSelectionBias,
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

    /// Norm of the input of the router of the residual streams. `[d_model]`
    AltUpRouterNorm,
    /// Router of the residual streams. `[n_streams, d_model]`
    AltUpRouter,
    /// From the router's output to the mixtures that predict the streams. `[n_streams², n_streams]`
    AltUpPrediction,
    /// From the router's output to the corrections of the streams. `[n_streams, n_streams]`
    AltUpCorrection,
    /// Factors on the input of the per-layer gate. `[d_model]`
    AltUpGateScale,
    /// First projection of the low-rank branch. `[rank, d_model]`
    LaurelDown,
    /// Second projection of the low-rank branch. `[d_model, rank]`
    LaurelUp,
    /// Norm of that projection. `[d_model]`
    LaurelNorm,

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
    /// Roles whose first dimension counts experts, or heads or streams with a matrix each.
    pub fn is_expert(self) -> bool {
        matches!(
            self,
            Self::AltUpProjection
                | Self::AltUpOut
                | Self::LatentKeys
                | Self::LatentValues
                | Self::ExpertGate
                | Self::ExpertGateBias
                | Self::ExpertUp
                | Self::ExpertUpBias
                | Self::ExpertDown
                | Self::ExpertDownBias
        )
    }

    /// Roles of the projectors of inner layers of a vision tower.
    pub fn is_deep(self) -> bool {
        matches!(
            self,
            Self::DeepNorm
                | Self::DeepNormBias
                | Self::DeepHidden
                | Self::DeepHiddenBias
                | Self::DeepOut
                | Self::DeepOutBias
        )
    }

    /// Roles that are a matrix for each expert, head or stream.
    pub fn is_expert_matrix(self) -> bool {
        let is_of_heads = matches!(self, Self::LatentKeys | Self::LatentValues);
        self.is_routed_matrix() || is_of_heads || matches!(self, Self::AltUpProjection | Self::AltUpOut)
    }

    /// Roles that are a matrix for each expert, of which a token reads only some.
    pub fn is_routed_matrix(self) -> bool {
        matches!(self, Self::ExpertGate | Self::ExpertUp | Self::ExpertDown)
    }
}
