// A causal convolution over time: one lane per channel processes rows in order and advances the state.
#import batch
#import activate
struct Params {
  n: u32,
  kernel: u32,
  act: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, channels)
@group(0) @binding(3) var<storage, read> x: array<f32>;
// (kernel, channels)
@group(0) @binding(4) var<storage, read> taps: array<f32>;
// (channels)
@group(0) @binding(5) var<storage, read> bias: array<f32>;
// (slots, kernel − 1, channels)
@group(0) @binding(6) var<storage, read_write> states: array<f32>;
// (tokens, channels)
@group(0) @binding(7) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let c = id.x;
  if (c >= p.n) {
    return;
  }
  let kept = p.kernel - 1u;
  for (var row = 0u; row < step.n_tokens; row++) {
    let state = rows[STATES * step.stride + row] * kept * p.n + c;
    let fresh = rows[POSITIONS * step.stride + row] == 0u;
    let now = x[row * p.n + c];
    var sum = bias[c];
    for (var j = 0u; j < kept; j++) {
      let before = select(states[state + j * p.n], 0.0, fresh);
      sum = fma(taps[j * p.n + c], before, sum);
      if (j > 0u) {
        states[state + (j - 1u) * p.n] = before;
      }
    }
    states[state + (kept - 1u) * p.n] = now;
    out[row * p.n + c] = activate(fma(taps[kept * p.n + c], now, sum), p.act);
  }
}
