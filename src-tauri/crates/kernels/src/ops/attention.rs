//! Attention of one query head: softmax(q·k · scale) · v over the visible positions, optionally with capped scores and a
//! sink. A sink is an additional score that takes part in the softmax and has no value.
//! The fast path splits positions into chunks at absolute multiples of `CHUNK`, computes a softmax for each, and merges
//! them in rising order. So the result of a row depends on its position alone.

pub mod integer_softmax;
#[cfg(feature = "gpu")]
pub mod lanes;
mod merge;
pub mod page_operands;
pub mod pages;
pub mod partials;
#[cfg(feature = "gpu")]
pub mod prompt;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[allow(unsafe_code)] // SIMD: each block argues its safety, the traits say what they ask for
#[allow(clippy::missing_safety_doc, clippy::needless_range_loop)] // counted loops over registers unroll
mod simd;
mod visible;

pub use merge::{MERGE, Merge, Partial};
pub use visible::visible;

use super::OpRow;
use super::dot::{LANES, sum_lanes};
use super::exp::exp;
use super::kv_write::page_defines;
use crate::cpu::isa::{Mac, levels};
use crate::graph::{AttentionShape, KvDType, KvPrecision};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "attention", formula: "softmax(q·kᵀ · scale) · v" };

/// Positions of one partial softmax; a multiple of the page.
pub const CHUNK: usize = 256;

/// Queries per workgroup of the GPU kernels: wide and narrow.
pub const GPU_QUERIES: [usize; 2] = [8, 4];

/// Definitions of the attention shader: KV formats, whether requantized pages occur, eight queries at a time or four.
pub fn shader_defines(
    precision: KvPrecision,
    has_requantized: bool,
    is_wide: bool,
) -> &'static [&'static str] {
    match (has_requantized, is_wide) {
        (false, false) => page_defines!(precision),
        (false, true) => page_defines!(precision, "EIGHT"),
        (true, false) => page_defines!(precision, "REQUANTIZED"),
        (true, true) => page_defines!(precision, "REQUANTIZED", "EIGHT"),
    }
}

/// How q·k becomes a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scoring {
    /// factor on q·k
    pub scale: f32,
    /// scores become cap · tanh(score / cap)
    pub softcap: Option<f32>,
    /// additional score without a value
    pub sink: Option<f32>,
}

impl Scoring {
    /// The scoring of one query head.
    pub fn of(shape: &AttentionShape, head: usize) -> Self {
        let sink = shape.sinks.as_ref().map(|sinks| sinks[head]);
        Self { scale: shape.scale, softcap: shape.softcap, sink }
    }
}

/// q, out (head_dim); keys, values (n, head_dim); scores (n) is scratch.
pub fn scalar(
    q: &[f32],
    keys: &[f32],
    values: &[f32],
    scoring: Scoring,
    scores: &mut [f32],
    out: &mut [f32],
) {
    let d = q.len();
    for (j, score) in scores.iter_mut().enumerate() {
        *score = super::dot::scalar(q, &keys[j * d..(j + 1) * d]) * scoring.scale;
    }
    if let Some(cap) = scoring.softcap {
        super::softcap::scalar(scores, cap);
    }
    let max = scores.iter().fold(scoring.sink.unwrap_or(f32::NEG_INFINITY), |a, b| a.max(*b));
    let mut sum = scoring.sink.map_or(0.0, |sink| (sink - max).exp());
    for score in scores.iter_mut() {
        *score = (*score - max).exp();
        sum += *score;
    }
    out.fill(0.0);
    for (j, p) in scores.iter().enumerate() {
        for i in 0..d {
            out[i] += p / sum * values[j * d + i];
        }
    }
}

/// scores (a multiple of 32; -inf where hidden) → e^(score − max) in place.
pub type Softmax = fn(scores: &mut [f32]) -> Partial;

#[inline(always)]
fn softmax<M: Mac>(scores: &mut [f32]) -> Partial {
    let mut max = [f32::NEG_INFINITY; LANES];
    for s in scores.chunks_exact(LANES) {
        for i in 0..LANES {
            max[i] = if s[i] > max[i] { s[i] } else { max[i] };
        }
    }
    let max = max.iter().fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
    let mut sum = [0.0; LANES];
    for s in scores.chunks_exact_mut(LANES) {
        for i in 0..LANES {
            s[i] = exp::<M>(s[i] - max);
            sum[i] += s[i];
        }
    }
    Partial { max, sum: sum_lanes(sum) }
}

levels!(
    /// The kernel at each instruction-set level.
    pub SOFTMAX = softmax(scores: &mut [f32]) -> Partial);

#[cfg(test)]
mod tests {
    use super::*;

    fn attend(scoring: Scoring) -> f32 {
        let mut out = [0.0];
        scalar(&[1.0], &[0.0, 3.0], &[8.0, 4.0], scoring, &mut [0.0; 2], &mut out);
        out[0]
    }

    #[test]
    fn sinks_take_their_share_and_caps_hold() {
        let plain = Scoring { scale: 0.0, softcap: None, sink: None };
        assert_eq!(attend(plain), 6.0);
        assert!(
            (attend(Scoring { sink: Some(0.0), ..plain }) - 4.0).abs() < 1e-6,
            "a third goes to the sink"
        );
        assert_eq!(attend(Scoring { sink: Some(f32::NEG_INFINITY), ..plain }), 6.0);
        assert_eq!(attend(Scoring { sink: Some(1e9), ..plain }), 0.0);
        let steep = Scoring { scale: 100.0, ..plain };
        assert_eq!(attend(steep), 4.0);
        let share = 1.0 / (1.0 + 1f32.exp());
        let capped = attend(Scoring { softcap: Some(1.0), ..steep });
        assert!((capped - 4.0 - 4.0 * share).abs() < 1e-5, "{capped}");
    }
}
