//! The positions that a row of attention sees.

use crate::graph::{AttentionShape, Mask};

/// The positions that a token at `position` sees. `end` is as `Batch::ends_for` says.
pub fn visible(shape: &AttentionShape, position: usize, end: usize) -> std::ops::Range<usize> {
    let start = shape.window.map_or(0, |w| (position + 1).saturating_sub(w));
    match shape.mask {
        Mask::Causal => start..position + 1,
        Mask::CausalAfterFirst => start.max(1)..position + 1,
        Mask::CausalImages => start..end.max(position + 1),
        Mask::Bidirectional => start..shape.window.map_or(end, |w| position.saturating_add(w).min(end)),
    }
}
