//! Gated unit: out = act(gate) · up.

use super::OpRow;
use super::activate::{clamped_swish, gelu, gelu_tanh, relu_squared, sigmoid, silu, single};
use crate::cpu::isa::{Mac, levels};
use crate::graph::Activation;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "glu", formula: "act(gate) · up" };

/// gate, up, out of one length
pub type Glu = fn(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]);

/// gate, up, out (n)
pub fn scalar(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]) {
    for i in 0..out.len() {
        out[i] = match act {
            Activation::ClampedSwish { limit } => {
                clamped_swish(gate[i], up[i], limit, |x| single(x, Activation::Sigmoid))
            }
            Activation::Identity
            | Activation::Sigmoid
            | Activation::Silu
            | Activation::Gelu
            | Activation::GeluTanh
            | Activation::ReluSquared
            | Activation::XIelu { .. } => single(gate[i], act) * up[i],
        };
    }
}

#[inline(always)]
fn body<M: Mac>(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]) {
    match act {
        Activation::Identity => each(gate, up, out, |g, u| g * u),
        Activation::Sigmoid => each(gate, up, out, |g, u| sigmoid::<M>(g) * u),
        Activation::Silu => each(gate, up, out, |g, u| silu::<M>(g) * u),
        Activation::Gelu => each(gate, up, out, |g, u| gelu::<M>(g) * u),
        Activation::GeluTanh => each(gate, up, out, |g, u| gelu_tanh::<M>(g) * u),
        Activation::ReluSquared => each(gate, up, out, |g, u| relu_squared(g) * u),
        Activation::XIelu { .. } => unreachable!("`GraphBuilder::glu` takes none of single operands"),
        Activation::ClampedSwish { limit } => {
            each(gate, up, out, |g, u| clamped_swish(g, u, limit, sigmoid::<M>));
        }
    }
}

#[inline(always)]
fn each(gate: &[f32], up: &[f32], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    let n = out.len();
    let (gate, up) = (&gate[..n], &up[..n]);
    for i in 0..n {
        out[i] = f(gate[i], up[i]);
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]));
