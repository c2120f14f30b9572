//! The operations, one file each: formula, shapes, `scalar` (the specification, written to be read, never optimized), and
//! the body that is compiled for each instruction-set level. Functions over slices; no state.

use crate::cpu::isa::IsaLevel;
use crate::graph::Op;

pub use op_row::OpRow;

pub mod activate;
pub mod add;
pub mod attention;
pub mod clamp;
pub mod columns;
pub mod cross_entropy;
pub mod delta_net;
pub mod dot;
pub mod embed;
pub mod exp;
#[cfg(feature = "gpu")]
pub mod expert_groups;
pub mod expert_matmul;
pub mod expert_sum;
pub mod gaussian_top_k;
pub mod given;
pub mod glu;
pub mod hadamard;
pub mod integer_panel;
pub mod join_columns;
pub mod kv_rows;
pub mod kv_write;
pub mod layer_norm;
pub mod match_rms;
pub mod merge_rows;
pub mod mix;
pub mod moe_route;
mod moe_route_by_score;
pub mod op_row;
pub mod output_rows;
pub mod panel;
pub mod rms_norm;
pub mod rope;
pub mod route_all;
pub mod scale;
pub mod short_conv;
pub mod softcap;
pub mod softplus;
pub mod ssm;
pub mod top_k;

/// The row of an operation.
pub fn row(op: &Op) -> &'static OpRow {
    match op {
        Op::Embed { .. } => &embed::ROW,
        Op::Given { .. } => &given::ROW,
        Op::ReplaceGiven { .. } => &given::REPLACE_ROW,
        Op::RmsNorm { .. } => &rms_norm::ROW,
        Op::LayerNorm { .. } => &layer_norm::ROW,
        Op::MatMul { .. } => &crate::matmul::generic::ROW,
        Op::Rope { .. } => &rope::ROW,
        Op::PositionScale { .. } => &scale::POSITION_ROW,
        Op::KvWrite { .. } => &kv_write::ROW,
        Op::Attention { .. } => &attention::ROW,
        Op::Add { .. } => &add::ROW,
        Op::Scale { .. } => &scale::ROW,
        Op::Softcap { .. } => &softcap::ROW,
        Op::Clamp { .. } => &clamp::ROW,
        Op::Hadamard { .. } => &hadamard::ROW,
        Op::Activate { .. } => &activate::ROW,
        Op::Glu { .. } => &glu::ROW,
        Op::RowGate { .. } => &scale::GATE_ROW,
        Op::ScaleColumns { .. } => &scale::COLUMNS_ROW,
        Op::Columns { .. } => &columns::ROW,
        Op::JoinColumns { .. } => &join_columns::ROW,
        Op::Mix { .. } => &mix::ROW,
        Op::MatchRms { .. } => &match_rms::ROW,
        Op::GaussianTopK { .. } => &gaussian_top_k::ROW,
        Op::MoeRoute { .. } => &moe_route::ROW,
        Op::RouteAll { .. } => &route_all::ROW,
        Op::ExpertMatMul { .. } => &expert_matmul::ROW,
        Op::ExpertSum { .. } => &expert_sum::ROW,
        Op::ShortConv { .. } => &short_conv::ROW,
        Op::DeltaNet { .. } => &delta_net::ROW,
        Op::Ssm { .. } => &ssm::ROW,
        Op::OutputRows { .. } => &output_rows::ROW,
        Op::MergeRows { .. } => &merge_rows::ROW,
        Op::Copy { .. } => &COPY,
    }
}

static COPY: OpRow = OpRow { name: "copy", formula: "the same value on another device" };

/// The kernels of the small operations at one instruction-set level.
#[derive(Clone, Copy)]
pub struct Kernels {
    /// instruction-set level
    pub level: IsaLevel,
    /// nonlinearity
    pub activate: activate::Activate,
    /// addition
    pub add: add::Add,
    /// cross-entropy and its gradient
    pub cross_entropy: cross_entropy::CrossEntropy,
    /// gated delta rule
    pub delta: delta_net::AdvanceState,
    /// dot product
    pub dot: dot::Dot,
    /// weighted sum of experts
    pub expert_sum: expert_sum::ExpertSum,
    /// largest elements by mean and deviation
    pub gaussian_top_k: gaussian_top_k::GaussianTopK,
    /// gated unit
    pub glu: glu::Glu,
    /// Hadamard transform
    pub hadamard: hadamard::Transform,
    /// layer norm
    pub layer_norm: layer_norm::LayerNorm,
    /// root mean square of another row
    pub match_rms: match_rms::MatchRms,
    /// mixtures of groups of columns
    pub mix: mix::Mix,
    /// multiply-add of vectors
    pub mul_add: short_conv::MulAdd,
    /// small matrix multiplication
    pub panel: panel::MultiplyPanel,
    /// root mean square norm
    pub rms_norm: rms_norm::RmsNorm,
    /// rotary embedding
    pub rope: rope::RotateHeads,
    /// multiplication by a factor
    pub scale: scale::Scale,
    /// soft cap
    pub softcap: softcap::Softcap,
    /// state space
    pub ssm: ssm::AdvanceSsm,
    /// partial softmax
    pub softmax: attention::Softmax,
    /// merge of partial softmaxes
    pub merge: attention::Merge,
    /// f16 conversion
    pub halves: kv_write::F16Convert,
}

impl Kernels {
    /// The kernels of a level. Panics if the CPU does not have it.
    pub fn at(level: IsaLevel) -> Self {
        assert!(level.is_present(), "{level} kernels on a processor without it");
        Self {
            level,
            activate: activate::LEVELS.at(level),
            add: add::LEVELS.at(level),
            cross_entropy: cross_entropy::LEVELS.at(level),
            delta: delta_net::LEVELS.at(level),
            dot: dot::LEVELS.at(level),
            expert_sum: expert_sum::LEVELS.at(level),
            gaussian_top_k: gaussian_top_k::LEVELS.at(level),
            glu: glu::LEVELS.at(level),
            hadamard: hadamard::LEVELS.at(level),
            layer_norm: layer_norm::LEVELS.at(level),
            match_rms: match_rms::LEVELS.at(level),
            mix: mix::LEVELS.at(level),
            mul_add: short_conv::LEVELS.at(level),
            panel: panel::LEVELS.at(level),
            rms_norm: rms_norm::LEVELS.at(level),
            rope: rope::LEVELS.at(level),
            scale: scale::LEVELS.at(level),
            softcap: softcap::LEVELS.at(level),
            ssm: ssm::LEVELS.at(level),
            softmax: attention::SOFTMAX.at(level),
            merge: attention::MERGE.at(level),
            halves: kv_write::F16_CONVERT.at(level),
        }
    }
}
