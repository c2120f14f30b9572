//! An operation that only vision towers need: bounds on values.

use super::{GraphBuilder, NodeResult};
use crate::error::KernelError;
use crate::graph::{Op, ValueId};

impl GraphBuilder {
    /// Bounds: min(max(x, low), high)
    pub fn clamp(&mut self, name: impl Into<String>, x: ValueId, low: f32, high: f32) -> NodeResult {
        let name = name.into();
        let value = self.input(&name, x)?;
        if !(low.is_finite() && high.is_finite() && low <= high) {
            let found = format!("{low} to {high}");
            return Err(KernelError::mismatch(&name, "bounds", "finite and in order", found));
        }
        Ok(self.push(name, Op::Clamp { x, low, high }, value.rows, value.width))
    }
}
