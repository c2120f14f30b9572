//! The operations, a file each: formula, shapes, `scalar` (the specification: written to be read, never optimised),
//! and the body that is compiled for each instruction-set level. Functions over slices; no state.

use crate::cpu::isa::IsaLevel;
use crate::graph::Op;

pub mod add;
pub mod attention;
pub mod dot;
pub mod embed;
pub mod exp;
pub mod glu;
pub mod kv_write;
pub mod output_rows;
pub mod panel;
pub mod rms_norm;
pub mod rope;

/// One row for each variant of `Op`: its name in profiles, and what it computes.
pub struct OpRow {
    pub name: &'static str,
    pub formula: &'static str,
}

/// The row of an operation.
pub fn row(op: &Op) -> &'static OpRow {
    match op {
        Op::Embed { .. } => &embed::ROW,
        Op::RmsNorm { .. } => &rms_norm::ROW,
        Op::MatMul { .. } => &crate::matmul::generic::ROW,
        Op::Rope { .. } => &rope::ROW,
        Op::KvWrite { .. } => &kv_write::ROW,
        Op::Attention { .. } => &attention::ROW,
        Op::Add { .. } => &add::ROW,
        Op::Glu { .. } => &glu::ROW,
        Op::OutputRows { .. } => &output_rows::ROW,
        Op::Copy { .. } => &COPY,
    }
}

static COPY: OpRow = OpRow { name: "copy", formula: "the same value on another device" };

/// The small operations of one level, looked up once.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub level: IsaLevel,
    pub add: add::Add,
    pub dot: dot::Dot,
    pub glu: glu::Glu,
    pub panel: panel::Panel,
    pub rms_norm: rms_norm::RmsNorm,
    pub rope: rope::Rotate,
    pub softmax: attention::Softmax,
    pub merge: attention::Merge,
    pub halves: kv_write::Halves,
}

impl Kernels {
    /// `level` must be present on this processor; panics otherwise.
    pub fn at(level: IsaLevel) -> Self {
        assert!(level.is_present(), "{level} kernels on a processor without it");
        Self {
            level,
            add: add::LEVELS.at(level),
            dot: dot::LEVELS.at(level),
            glu: glu::LEVELS.at(level),
            panel: panel::LEVELS.at(level),
            rms_norm: rms_norm::LEVELS.at(level),
            rope: rope::LEVELS.at(level),
            softmax: attention::SOFTMAX.at(level),
            merge: attention::MERGE.at(level),
            halves: kv_write::HALVES.at(level),
        }
    }
}
