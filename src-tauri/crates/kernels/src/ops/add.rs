//! a + b, element by element: residual connections and biases.

use super::OpRow;
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "add", formula: "a + b" };

/// a, b, out of one length
pub type Add = fn(a: &[f32], b: &[f32], out: &mut [f32]);

/// a, b, out (n)
pub fn scalar(a: &[f32], b: &[f32], out: &mut [f32]) {
    for i in 0..out.len() {
        out[i] = a[i] + b[i];
    }
}

#[inline(always)]
fn body<M: Mac>(a: &[f32], b: &[f32], out: &mut [f32]) {
    let n = out.len();
    let (a, b) = (&a[..n], &b[..n]);
    for i in 0..n {
        out[i] = a[i] + b[i];
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(a: &[f32], b: &[f32], out: &mut [f32]));
