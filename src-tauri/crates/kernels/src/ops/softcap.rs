//! cap · tanh(x / cap): keeps scores and logits within ±cap.

use super::OpRow;
use super::exp::exp;
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "softcap", formula: "cap · tanh(x / cap)" };

/// x (n), in place
pub type Softcap = fn(x: &mut [f32], cap: f32);

/// x (n), in place
pub fn scalar(x: &mut [f32], cap: f32) {
    for x in x {
        *x = cap * (*x / cap).tanh();
    }
}

/// tanh z = 1 − 2 / (e^2z + 1), with an absolute error of 2e-7, which suffices for scores.
#[inline(always)]
fn body<M: Mac>(x: &mut [f32], cap: f32) {
    for x in x {
        *x = cap * (1.0 - 2.0 / (exp::<M>(2.0 * (*x / cap)) + 1.0));
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &mut [f32], cap: f32));
