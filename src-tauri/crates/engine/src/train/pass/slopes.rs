//! Gradients of operations that treat every row alone. `dy` is the gradient of the output; outputs are overwritten.

use kernels::Activation;
use kernels::cpu::isa::BaselineMac;
use kernels::ops::Kernels;
use kernels::ops::dot::{LANES, sum_lanes};
use kernels::ops::exp::exp;

/// x, dy, dx (n_groups, width), weight (width) including its offset. With s = 1 / √(mean(x²) + eps):
/// dx = s · (dy · weight − x · s² · mean(dy · weight · x))
pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, dy: &[f32], dx: &mut [f32]) {
    let n = weight.len();
    for ((x, dy), dx) in x.chunks_exact(n).zip(dy.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
        let squares = sum_of(n, |i| x[i] * x[i]);
        let products = sum_of(n, |i| dy[i] * weight[i] * x[i]);
        let scale = 1.0 / (squares / n as f32 + eps).sqrt();
        let shift = products / n as f32 * scale * scale;
        for i in 0..n {
            dx[i] = scale * (dy[i] * weight[i] - x[i] * shift);
        }
    }
}

/// x, weight, dy, dx (width). With x̂ the normed row, s = 1 / √(variance + eps) and g = dy · weight:
/// dx = s · (g − mean(g) − x̂ · mean(g · x̂))
pub(super) fn layer_norm(x: &[f32], weight: &[f32], eps: f32, dy: &[f32], dx: &mut [f32]) {
    let n = dx.len();
    let mean = sum_of(n, |i| x[i]) / n as f32;
    let variance = sum_of(n, |i| (x[i] - mean) * (x[i] - mean)) / n as f32;
    let scale = 1.0 / (variance + eps).sqrt();
    let mean_g = sum_of(n, |i| dy[i] * weight[i]) / n as f32;
    let mean_gx = sum_of(n, |i| dy[i] * weight[i] * (x[i] - mean) * scale) / n as f32;
    for i in 0..n {
        dx[i] = scale * (dy[i] * weight[i] - mean_g - (x[i] - mean) * scale * mean_gx);
    }
}

/// Σ f(i) for i below n, in lanes by index modulo their number.
fn sum_of(n: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    for i in 0..n {
        lanes[i % LANES] += f(i);
    }
    sum_lanes(lanes)
}

/// x, dy, dx of one length. With y = cap · tanh(x / cap): dx = dy · (1 − (y / cap)²)
pub(super) fn softcap(kernels: &Kernels, x: &[f32], cap: f32, dy: &[f32], dx: &mut [f32]) {
    dx.copy_from_slice(x);
    (kernels.softcap)(dx, cap);
    for (dy, dx) in dy.iter().zip(dx) {
        *dx = dy * (1.0 - (*dx / cap) * (*dx / cap));
    }
}

/// x, dy, dx of one length: dx = dy · act'(x)
pub(super) fn activation(kernels: &Kernels, x: &[f32], act: Activation, dy: &[f32], dx: &mut [f32]) {
    derivative(kernels, x, act, dx);
    for (dy, dx) in dy.iter().zip(dx) {
        *dx *= dy;
    }
}

/// gate, up, dy, dgate, dup of one length: dgate = dy · up · act'(gate), dup = dy · act(gate)
pub(super) fn gated_unit(
    kernels: &Kernels,
    [gate, up, dy]: [&[f32]; 3],
    act: Activation,
    dgate: &mut [f32],
    dup: &mut [f32],
) {
    derivative(kernels, gate, act, dgate);
    dup.copy_from_slice(gate);
    (kernels.activate)(dup, act);
    for (i, (dgate, dup)) in dgate.iter_mut().zip(dup).enumerate() {
        *dgate *= dy[i] * up[i];
        *dup *= dy[i];
    }
}

/// √(2/π) and the cubic coefficient of the tanh approximation
const GELU: (f32, f32) = (0.797_884_6, 0.044_715);
/// 1 / √(2π)
const FRAC_1_SQRT_2PI: f32 = 0.398_942_3;
/// Below it Φ(x) is ½ to within rounding, and Φ cannot be found by a division.
const NEAR_ZERO: f32 = 1e-6;

/// act'(x) of every element. The plan refuses activations that are not here.
fn derivative(kernels: &Kernels, x: &[f32], act: Activation, out: &mut [f32]) {
    match act {
        Activation::Identity | Activation::ClampedSwish { .. } | Activation::XIelu { .. } => out.fill(1.0),
        Activation::ReluSquared => out.iter_mut().zip(x).for_each(|(out, x)| *out = 2.0 * x.max(0.0)),
        Activation::Sigmoid => {
            out.copy_from_slice(x);
            (kernels.activate)(out, Activation::Sigmoid);
            out.iter_mut().for_each(|s| *s *= 1.0 - *s);
        }
        Activation::Silu => {
            out.copy_from_slice(x);
            (kernels.activate)(out, Activation::Sigmoid);
            out.iter_mut().zip(x).for_each(|(s, x)| *s *= 1.0 + x * (1.0 - *s));
        }
        Activation::Gelu => {
            // Φ(x) + x · φ(x)
            out.copy_from_slice(x);
            (kernels.activate)(out, Activation::Gelu);
            for (y, x) in out.iter_mut().zip(x) {
                let below = if x.abs() > NEAR_ZERO { *y / x } else { 0.5 };
                *y = below + x * FRAC_1_SQRT_2PI * exp::<BaselineMac>(-0.5 * x * x);
            }
        }
        Activation::GeluTanh => {
            // x · σ(2z) with z = √(2/π) · (x + c · x³)
            for (out, x) in out.iter_mut().zip(x) {
                *out = 2.0 * GELU.0 * (x + GELU.1 * x * x * x);
            }
            (kernels.activate)(out, Activation::Sigmoid);
            for (s, x) in out.iter_mut().zip(x) {
                let slope = 2.0 * GELU.0 * (1.0 + 3.0 * GELU.1 * x * x);
                *s += x * *s * (1.0 - *s) * slope;
            }
        }
    }
}
