// Element-wise nonlinearities of one operand.
#import exp

fn sigmoid(x: f32) -> f32 {
  // e^−x overflows below −88, where 1 / ∞ is the right answer only if the device has infinities
  let e = exp(-abs(x));
  return select(e, 1.0, x >= 0.0) / (1.0 + e);
}

const LN_ERFC = array<f32, 10>(
  -1.2654549, 0.99878246, 0.38528363, 0.041395963, -0.019507999,
  -0.039866325, -0.7464699, 1.1953276, -0.6975366, 0.14804605,
);

// x · Φ(x), where Φ(−|x|) = ½ erfc(|x|/√2)
fn gelu(x: f32) -> f32 {
  let z = abs(x) * 0.70710678;
  let t = 1.0 / (1.0 + 0.5 * z);
  var coefficients = LN_ERFC;
  var sum = coefficients[9];
  for (var i = 9; i > 0; i--) {
    sum = fma(sum, t, coefficients[i - 1]);
  }
  let below = 0.5 * t * exp(max(sum - z * z, -100.0));
  return x * select(below, 1.0 - below, x > 0.0);
}

fn gelu_tanh(x: f32) -> f32 {
  let inner = 0.7978846 * (x + 0.044715 * x * x * x);
  return x * sigmoid(2.0 * inner);
}

const IDENTITY = 0u;
const SIGMOID = 1u;
const SILU = 2u;
const GELU = 3u;
const GELU_TANH = 4u;
const CLAMPED_SWISH = 5u;
const RELU_SQUARED = 6u;
const XIELU = 7u;

fn relu_squared(x: f32) -> f32 {
  let above = select(x, 0.0, x < 0.0);
  return above * above;
}

fn activate(x: f32, act: u32) -> f32 {
  switch (act) {
    case SIGMOID: { return sigmoid(x); }
    case SILU: { return x * sigmoid(x); }
    case GELU: { return gelu(x); }
    case GELU_TANH: { return gelu_tanh(x); }
    case RELU_SQUARED: { return relu_squared(x); }
    default: { return x; }
  }
}

// act(gate) · up
fn gated(gate: f32, up: f32, act: u32, limit: f32) -> f32 {
  if (act == CLAMPED_SWISH) {
    let g = select(gate, limit, gate > limit);
    let above = select(up, limit, up > limit);
    let u = select(above, -limit, above < -limit);
    return g * sigmoid(1.702 * g) * (u + 1.0);
  }
  return activate(gate, act) * up;
}

#ifdef MAIN
#import batch
struct Params {
  width: u32,
  act: u32,
  limit: f32,
  alpha_p: f32,
  alpha_n: f32,
  beta: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

// e^min(x, limit) − 1: near 0 by its series
fn expm1(x: f32, limit: f32) -> f32 {
  let y = min(x, limit);
  var series = 1.0 / 5040.0;
  series = fma(series, y, 1.0 / 720.0);
  series = fma(series, y, 1.0 / 120.0);
  series = fma(series, y, 1.0 / 24.0);
  series = fma(series, y, 1.0 / 6.0);
  series = fma(series, y, 0.5);
  series = fma(series, y, 1.0);
  return select(exp(max(y, -100.0)) - 1.0, series * y, y > -0.5);
}

fn xielu(x: f32) -> f32 {
  let below = (expm1(x, p.limit) - x) * p.alpha_n;
  return select(below, p.alpha_p * x * x, x > 0.0) + p.beta * x;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.width) {
    return;
  }
  let at = id.z * p.width + id.x;
  if (p.act == CLAMPED_SWISH) {
    out[at] = gated(x[at], 0.0, p.act, p.limit);
  } else if (p.act == XIELU) {
    out[at] = xielu(x[at]);
  } else {
    out[at] = activate(x[at], p.act);
  }
}
#endif
