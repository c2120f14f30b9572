//! Structure of feed-forward parts: dense, or experts with a router.

use std::fmt;

use kernels::{Activation, ExpertScoring, GroupLimit};

use super::Norm;

/// The feed-forward part of a layer.
#[derive(Debug, Clone, PartialEq)]
pub enum Ffn {
    /// down(act(gate(x)) · up(x))
    Gated(Dense),
    /// down(act(gate(x) · gate_factor) · up(x)) · out_factor
    Scaled {
        /// The dense part.
        dense: Dense,
        /// Factor on the gate.
        gate_factor: f32,
        /// Factor on the result.
        out_factor: f32,
    },
    /// down(act(g) · up(x)) with g = max(gate(x) − mean − deviations · standard deviation, 0): about the largest
    /// elements of the gate (Gemma 3n).
    Sparse {
        /// The dense part.
        dense: Dense,
        /// Standard deviations above the mean.
        deviations: f32,
    },
    /// down(act(up(x)))
    Plain(Dense),
    /// Nothing: the layer has only a mixer.
    None,
    /// Mixture of experts.
    Experts(Experts),
    /// Both in parallel on the residual stream, with separate norms (Gemma 4): the experts' input is normed
    /// separately, and both outputs are normed before the sum.
    GatedAndExperts {
        /// The dense part.
        dense: Dense,
        /// The experts.
        experts: Experts,
        /// Norm of the experts' input and of both outputs.
        norm: Norm,
    },
}

impl Ffn {
    /// Returns the experts, if it has any.
    pub fn experts(&self) -> Option<&Experts> {
        match self {
            Self::Experts(experts) | Self::GatedAndExperts { experts, .. } => Some(experts),
            Self::Gated(_) | Self::Scaled { .. } | Self::Sparse { .. } | Self::Plain(_) | Self::None => None,
        }
    }
}

/// Sizes of a dense feed-forward part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dense {
    /// Width of the hidden layer.
    pub d_ff: usize,
    /// Activation of the hidden layer.
    pub activation: Activation,
    /// Whether every projection has a bias.
    pub bias: bool,
}

/// Mixture of experts: a router chooses some for each token.
#[derive(Clone, PartialEq)]
pub struct Experts {
    /// Number of experts.
    pub n_experts: usize,
    /// Experts chosen for each token.
    pub n_used: usize,
    /// Width of an expert's hidden layer.
    pub d_ff: usize,
    /// Activation of the hidden layers.
    pub activation: Activation,
    /// Whether the weights of the chosen experts are normalized to sum to 1.
    pub renormalize: bool,
    /// Whether each expert's weight has a factor.
    pub expert_scale: bool,
    /// Whether the router has a bias.
    pub router_bias: bool,
    /// Whether every expert's projections have biases.
    pub bias: bool,
    /// Input of the router.
    pub router_input: RouterInput,
    /// Expert that every token passes through.
    pub shared: Option<SharedExpert>,
    /// How the router's logits choose experts.
    pub router: Router,
    /// What each expert computes.
    pub form: ExpertForm,
}

debug_without_defaults! {
    Experts: n_experts, n_used, d_ff, activation, renormalize, expert_scale, router_bias, bias, router_input, shared;
        router, form
}

/// What each expert computes, the shared one too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExpertForm {
    /// down(act(gate(x)) · up(x))
    #[default]
    Gated,
    /// down(act(up(x)))
    Plain,
}

/// How the logits of a router choose experts and weigh them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Router {
    /// Score of each expert.
    pub scoring: ExpertScoring,
    /// Whether a bias of the file is added to the scores to choose by.
    pub selection_bias: bool,
    /// Restricts the choice to the best groups.
    pub groups: Option<GroupLimit>,
    /// Added to the sum that weights are normalized by.
    pub sum_epsilon: f32,
    /// Factor on all weights.
    pub scale: Option<f32>,
}

/// Input of a router.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RouterInput {
    /// The experts' input.
    Normed,
    /// The residual stream, normed without weight, times a vector of the file, times `scale`.
    Residual {
        /// Epsilon of the norm.
        eps: f32,
        /// Factor on the result.
        scale: f32,
    },
}

/// An expert that every token passes through. Several are one of their joint width.
#[derive(Clone, Copy, PartialEq)]
pub struct SharedExpert {
    /// Width of its hidden layer.
    pub d_ff: usize,
    /// Its weight.
    pub weight: SharedWeight,
}

debug_without_defaults!(SharedExpert: d_ff; weight);

/// Weight of a shared expert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SharedWeight {
    /// σ of a projection of the experts' input.
    #[default]
    Gate,
    /// 1
    One,
}
