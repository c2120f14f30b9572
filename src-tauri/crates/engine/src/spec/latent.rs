//! Attention over a compressed cache (multi-head latent attention, DeepSeek-V2, arXiv 2405.04434).

use super::{Attention, Norm};

/// Multi-head latent attention. The cache holds one row for all heads: a latent from which each head's keys and values
/// are projected, and a rotated part of the keys. Queries are projected to the latent instead of the keys from it.
#[derive(Debug, Clone, PartialEq)]
pub struct LatentAttention {
    /// The attention over the cache: one key-value head of `rank` + `rope_dim` elements. Its rotation is of the last
    /// `rope_dim` of them.
    pub attention: Attention,
    /// Low-rank projection of the queries. `None`: a single matrix.
    pub query_rank: Option<QueryRank>,
    /// Width of the latent.
    pub rank: usize,
    /// Size of the part of a head that is not rotated.
    pub nope_dim: usize,
    /// Size of the rotated part of a head.
    pub rope_dim: usize,
    /// Size of a value head.
    pub value_dim: usize,
    /// Norm of the latent.
    pub norm: Norm,
}

/// Low-rank projection of queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryRank {
    /// Width between the two matrices.
    pub rank: usize,
    /// Norm between them.
    pub norm: Norm,
}
