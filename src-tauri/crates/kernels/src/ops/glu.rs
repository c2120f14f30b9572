//! Gated unit: out = act(gate) · up. SiLU is x·σ(x); GELU is the tanh approximation, which is x·σ(2z).

use super::OpRow;
use super::exp::exp;
use crate::cpu::isa::{Mac, levels};
use crate::graph::Activation;

pub static ROW: OpRow = OpRow { name: "glu", formula: "act(gate) · up" };

/// gate, up, out of one length
pub type Glu = fn(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]);

/// √(2/π) and the cubic coefficient of the tanh approximation
const GELU: (f32, f32) = (0.797_884_6, 0.044_715);

/// gate, up, out (n)
pub fn scalar(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]) {
    for i in 0..out.len() {
        let x = gate[i];
        let y = match act {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::GeluTanh => 0.5 * x * (1.0 + (GELU.0 * (x + GELU.1 * x * x * x)).tanh()),
        };
        out[i] = y * up[i];
    }
}

#[inline(always)]
fn body<M: Mac>(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]) {
    let n = out.len();
    let (gate, up) = (&gate[..n], &up[..n]);
    match act {
        Activation::Silu => {
            for i in 0..n {
                out[i] = gate[i] / (1.0 + exp::<M>(-gate[i])) * up[i];
            }
        }
        Activation::GeluTanh => {
            for i in 0..n {
                let x = gate[i];
                let z = GELU.0 * (x + GELU.1 * x * x * x);
                out[i] = x / (1.0 + exp::<M>(-2.0 * z)) * up[i];
            }
        }
    }
}

levels!(pub LEVELS = body(gate: &[f32], up: &[f32], act: Activation, out: &mut [f32]));
