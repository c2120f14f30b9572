//! How a router's logits choose experts.

use std::sync::Arc;

/// Largest number of groups of experts. Published models have up to 8.
pub const MAX_EXPERT_GROUPS: usize = 64;

/// How a router's logits choose experts and weigh them. With the default choice: softmax over all, then the `n_used`
/// largest (on ties the first).
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    /// number of experts
    pub n_experts: usize,
    /// experts chosen per token
    pub n_used: usize,
    /// whether the weights of the chosen experts are divided by their sum
    pub renormalize: bool,
    /// (n_experts) factor on each expert's weight, applied after renormalization
    pub expert_scale: Option<Arc<[f32]>>,
    /// scores, and which of them count
    pub choice: ExpertChoice,
}

/// How logits become scores, and scores a choice. A chosen expert's weight is its score.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpertChoice {
    /// score of each expert
    pub scoring: ExpertScoring,
    /// (n_experts) added to the scores to choose by, not to the weights
    pub selection_bias: Option<Arc<[f32]>>,
    /// restricts the choice to the best groups of neighboring experts
    pub groups: Option<GroupLimit>,
    /// added to the sum by which the weights are divided
    pub sum_epsilon: f32,
    /// factor on all weights; None: 1
    pub scale: Option<f32>,
}

/// Scores of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ExpertScoring {
    /// softmax over all experts
    #[default]
    Softmax,
    /// σ(logit), each by itself
    Sigmoid,
    /// Liu et al. 2024, arXiv 2409.12136: one expert after another. The best logit m of those not yet chosen wins, with
    /// its softmax among those not yet chosen whose distance (m − logit) / max(|logit|, m) is at most 2 · jitter.
    /// Without bias, groups or renormalization.
    SparseMixer {
        /// half the largest distance
        jitter: f32,
    },
}

/// A choice among the experts of the best groups only (DeepSeek).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// number of groups; divides the number of experts
    pub n_groups: usize,
    /// groups that remain
    pub n_used: usize,
    /// score of a group
    pub score: GroupScore,
}

/// Score of a group of experts, bias included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupScore {
    /// its best score
    Max,
    /// the sum of its two best scores
    TopTwo,
}
