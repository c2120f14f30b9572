//! Element-wise nonlinearities of one operand. SiLU is x·σ(x); the tanh approximation of GELU is x·σ(2z); exact GELU
//! uses a polynomial fitted to ln erfc.

use super::OpRow;
use super::exp::exp;
use crate::cpu::isa::{Mac, levels};
use crate::graph::Activation;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "activate", formula: "act(x)" };

/// x (n), in place; `act` must not be a gated activation
pub type Activate = fn(x: &mut [f32], act: Activation);

/// √(2/π) and the cubic coefficient of the tanh approximation
const GELU: (f32, f32) = (0.797_884_6, 0.044_715);

/// Steepness of the sigmoid of `ClampedSwish`.
pub(super) const SWISH: f32 = 1.702;

/// x (n), in place
pub fn scalar(x: &mut [f32], act: Activation) {
    for x in x {
        *x = single(*x, act);
    }
}

/// act(x); for a gated activation the other operand is taken as 0.
pub(super) fn single(x: f32, act: Activation) -> f32 {
    match act {
        Activation::Identity => x,
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => {
            let x = f64::from(x);
            (0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))) as f32
        }
        Activation::GeluTanh => 0.5 * x * (1.0 + (GELU.0 * (x + GELU.1 * x * x * x)).tanh()),
        Activation::ReluSquared => relu_squared(x),
        Activation::XIelu { alpha_p, alpha_n, beta, eps } => {
            xielu(x, [alpha_p, alpha_n, beta], |x| x.min(eps).exp_m1())
        }
        Activation::ClampedSwish { limit } => clamped_swish(x, 0.0, limit, |x| 1.0 / (1.0 + (-x).exp())),
    }
}

/// max(x, 0)²; NaN stays NaN.
#[inline(always)]
pub(super) fn relu_squared(x: f32) -> f32 {
    let x = if x < 0.0 { 0.0 } else { x };
    x * x
}

/// `expm1` bounds its operand by eps itself.
#[inline(always)]
fn xielu(x: f32, [alpha_p, alpha_n, beta]: [f32; 3], expm1: impl Fn(f32) -> f32) -> f32 {
    let curved = if x > 0.0 { alpha_p * x * x } else { (expm1(x) - x) * alpha_n };
    curved + beta * x
}

/// Below this distance from 0 eˣ − 1 loses digits, and seven terms of its series have a relative error of 2e-7.
const SMALL_EXPONENT: f32 = 0.5;

/// e^min(x, eps) − 1
#[inline(always)]
fn expm1<M: Mac>(x: f32, eps: f32) -> f32 {
    let x = if x > eps { eps } else { x };
    let mut series = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0] {
        series = M::mac(series, x, factor);
    }
    if x > -SMALL_EXPONENT { series * x } else { exp::<M>(x) - 1.0 }
}

/// g·σ(1.702·g) · (u + 1) with both clamped; NaN stays NaN.
#[inline(always)]
pub(super) fn clamped_swish(gate: f32, up: f32, limit: f32, sigmoid: impl Fn(f32) -> f32) -> f32 {
    let gate = if gate > limit { limit } else { gate };
    let up = if up > limit { limit } else { up };
    let up = if up < -limit { -limit } else { up };
    gate * sigmoid(SWISH * gate) * (up + 1.0)
}

/// The error function by its power series. With e^(−x²) factored out, all terms have one sign; beyond 6 the result is ±1.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// σ(x)
#[inline(always)]
pub(super) fn sigmoid<M: Mac>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<M>(-x))
}

/// x · σ(x)
#[inline(always)]
pub(super) fn silu<M: Mac>(x: f32) -> f32 {
    x / (1.0 + exp::<M>(-x))
}

/// x · σ(2z) = ½x · (1 + tanh z)
#[inline(always)]
pub(super) fn gelu_tanh<M: Mac>(x: f32) -> f32 {
    let z = GELU.0 * (x + GELU.1 * x * x * x);
    x / (1.0 + exp::<M>(-2.0 * z))
}

/// Interpolates ln(erfc(z)/t) + z² over t = 1 / (1 + z/2) at Chebyshev points, z from 0 to 10, with a relative error of
/// erfc below 6e-8. Lowest power first.
const LN_ERFC: [f32; 10] = [
    -1.265_454_9,
    0.998_782_46,
    0.385_283_63,
    0.041_395_963,
    -0.019_507_999,
    -0.039_866_325,
    -0.746_469_9,
    1.195_327_6,
    -0.697_536_6,
    0.148_046_05,
];

/// x · Φ(x), where Φ(−|x|) = ½ erfc(|x|/√2)
#[inline(always)]
pub(super) fn gelu<M: Mac>(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let mut p = LN_ERFC[9];
    for i in (0..9).rev() {
        p = M::mac(p, t, LN_ERFC[i]);
    }
    let below = 0.5 * t * exp::<M>(p - z * z);
    x * if x > 0.0 { 1.0 - below } else { below }
}

#[inline(always)]
fn body<M: Mac>(x: &mut [f32], act: Activation) {
    match act {
        Activation::Identity => {}
        Activation::Sigmoid => each(x, sigmoid::<M>),
        Activation::Silu => each(x, silu::<M>),
        Activation::Gelu => each(x, gelu::<M>),
        Activation::GeluTanh => each(x, gelu_tanh::<M>),
        Activation::ReluSquared => each(x, relu_squared),
        Activation::XIelu { alpha_p, alpha_n, beta, eps } => {
            each(x, |x| xielu(x, [alpha_p, alpha_n, beta], |x| expm1::<M>(x, eps)));
        }
        Activation::ClampedSwish { limit } => each(x, |x| clamped_swish(x, 0.0, limit, sigmoid::<M>)),
    }
}

#[inline(always)]
fn each(x: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in x {
        *x = f(*x);
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &mut [f32], act: Activation));

#[cfg(test)]
mod tests {
    use super::erf;

    /// Tabled values, to ten digits.
    #[test]
    fn the_error_function() {
        for (x, want) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_0),
            (0.5, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (2.0, 0.995_322_265_0),
            (3.0, 0.999_977_909_5),
            (5.9, 1.0),
            (7.0, 1.0),
        ] {
            assert!((erf(x) - want).abs() < 1e-10, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
    }
}
