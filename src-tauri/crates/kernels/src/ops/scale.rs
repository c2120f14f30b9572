//! x · factor, where the factor is a constant, a function of the position, or a gate per row.

use super::{OpRow, activate};
use crate::cpu::isa::{Mac, levels};
use crate::graph::Activation;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "scale", formula: "x · factor" };
/// Row in the table of operations.
pub static POSITION_ROW: OpRow =
    OpRow { name: "position_scale", formula: "x · (1 + beta · ln(1 + ⌊position / original_context⌋))" };
/// Row in the table of operations.
pub static GATE_ROW: OpRow = OpRow { name: "row_gate", formula: "σ(gate) · x" };

/// Row in the table of operations.
pub static COLUMNS_ROW: OpRow = OpRow { name: "scale_columns", formula: "x · factors, column by column" };

/// x, out of one length
pub type Scale = fn(x: &[f32], factor: f32, out: &mut [f32]);

/// x, out (n)
pub fn scalar(x: &[f32], factor: f32, out: &mut [f32]) {
    for i in 0..out.len() {
        out[i] = x[i] * factor;
    }
}

/// x, factors, out (n)
pub fn columns(x: &[f32], factors: &[f32], out: &mut [f32]) {
    for ((out, x), factor) in out.iter_mut().zip(x).zip(factors) {
        *out = x * factor;
    }
}

/// The factor of a position.
pub fn at_position(beta: f32, original_context: u32, position: u32) -> f32 {
    1.0 + beta * (1.0 + (position / original_context) as f32).ln()
}

/// The factor of a gate.
pub fn of_gate(gate: f32) -> f32 {
    activate::single(gate, Activation::Sigmoid)
}

#[inline(always)]
fn body<M: Mac>(x: &[f32], factor: f32, out: &mut [f32]) {
    let n = out.len();
    let x = &x[..n];
    for i in 0..n {
        out[i] = x[i] * factor;
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &[f32], factor: f32, out: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors() {
        assert_eq!(at_position(0.1, 16, 15), 1.0);
        assert!((at_position(0.1, 16, 16) - 1.0 - 0.1 * 2f32.ln()).abs() < 1e-7);
        assert_eq!(at_position(0.1, 16, 47), at_position(0.1, 16, 32));
        assert_eq!((of_gate(0.0), of_gate(f32::NEG_INFINITY), of_gate(f32::INFINITY)), (0.5, 0.0, 1.0));
    }
}
