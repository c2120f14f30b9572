// The state space of Mamba-2: one workgroup per head processes rows in order and advances the state.
#define LANES 64u
#import batch
#import softplus
struct Params {
  n_heads: u32,
  head_dim: u32,
  n_groups: u32,
  d_state: u32,
  least_step: f32,
  largest_step: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, n_heads · head_dim + 2 · n_groups · d_state)
@group(0) @binding(3) var<storage, read> xbc: array<f32>;
// (tokens, n_heads)
@group(0) @binding(4) var<storage, read> dt: array<f32>;
// (3, n_heads): decay, skip, dt_bias
@group(0) @binding(5) var<storage, read> heads: array<f32>;
// (slots, n_heads, d_state, head_dim)
@group(0) @binding(6) var<storage, read_write> states: array<f32>;
// (tokens, n_heads, head_dim)
@group(0) @binding(7) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = id.x;
  let group = head / (p.n_heads / p.n_groups);
  let inner = p.n_heads * p.head_dim;
  let width = inner + 2u * p.n_groups * p.d_state;
  for (var row = 0u; row < step.n_tokens; row++) {
    let state = (rows[STATES * step.stride + row] * p.n_heads + head) * p.d_state * p.head_dim;
    let fresh = rows[POSITIONS * step.stride + row] == 0u;
    let b = row * width + inner + group * p.d_state;
    let c = b + p.n_groups * p.d_state;
    let raw = softplus(dt[row * p.n_heads + head] + heads[2u * p.n_heads + head]);
    let least = select(raw, p.least_step, raw < p.least_step);
    let dt_head = select(least, p.largest_step, least > p.largest_step);
    let keep = exp(dt_head * heads[head]);
    for (var j = lane; j < p.head_dim; j += LANES) {
      let x = xbc[row * width + head * p.head_dim + j];
      let stepped = dt_head * x;
      var sum = 0.0;
      for (var i = 0u; i < p.d_state; i++) {
        let at = state + i * p.head_dim + j;
        let s = fma(xbc[b + i], stepped, select(states[at], 0.0, fresh) * keep);
        states[at] = s;
        sum = fma(s, xbc[c + i], sum);
      }
      out[row * inner + head * p.head_dim + j] = fma(heads[p.n_heads + head], x, sum);
    }
  }
}
