//! Structure of models with several residual streams, and of low-rank residual branches.

use super::Norm;

/// Alternating updates (Baykal et al. 2023, arXiv 2301.13310): several residual streams, of which each layer computes
/// one. It predicts all of them before, as mixtures of each other, and corrects them by its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AltUp {
    /// Number of streams. The first begins as the embedding, the others as projections of it.
    pub n_streams: usize,
    /// The stream that layers compute.
    pub active: usize,
    /// Norm of the router's input.
    pub router_norm: Norm,
    /// Factor on the router's output before its tanh.
    pub router_scale: f32,
    /// Whether the input of the per-layer gate is multiplied by a vector of the file.
    pub gate_scale: bool,
}

impl AltUp {
    /// Returns the floats of all streams of a row.
    pub fn width(&self, d_model: usize) -> usize {
        self.n_streams * d_model
    }
}

/// A learned augmented residual layer (Menghani et al. 2024, arXiv 2411.07501) beside the mixer:
/// x = (x + mixer(n) + n + norm(up(down(n)))) / √2 with n = norm(x).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laurel {
    /// Width between both projections.
    pub rank: usize,
    /// Norm of their result.
    pub norm: Norm,
}
