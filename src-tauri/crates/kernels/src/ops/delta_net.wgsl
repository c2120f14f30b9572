// The gated delta rule: one workgroup per value head processes rows in order and advances the state.
#define LANES 64u
#define MAX_DIM 512u
#import batch
#import dot
#import activate
#import softplus
struct Params {
  n_k_heads: u32,
  n_v_heads: u32,
  k_dim: u32,
  v_dim: u32,
  // 1: value head j goes with key head j % n_k_heads, 0: with j / (n_v_heads / n_k_heads)
  tiled: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, 2 · n_k_heads · k_dim + n_v_heads · v_dim)
@group(0) @binding(3) var<storage, read> qkv: array<f32>;
// (tokens, n_v_heads)
@group(0) @binding(4) var<storage, read> beta: array<f32>;
// (tokens, n_v_heads)
@group(0) @binding(5) var<storage, read> alpha: array<f32>;
// (2, n_v_heads): decay, then dt_bias
@group(0) @binding(6) var<storage, read> gates: array<f32>;
// (slots, n_v_heads, k_dim, v_dim)
@group(0) @binding(7) var<storage, read_write> states: array<f32>;
// (tokens, n_v_heads, v_dim)
@group(0) @binding(8) var<storage, read_write> out: array<f32>;

var<workgroup> q: array<f32, MAX_DIM>;
var<workgroup> k: array<f32, MAX_DIM>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let head = id.x;
  let k_head = select(head / (p.n_v_heads / p.n_k_heads), head % p.n_k_heads, p.tiled == 1u);
  let n_keys = p.n_k_heads * p.k_dim;
  let width = 2u * n_keys + p.n_v_heads * p.v_dim;
  for (var row = 0u; row < step.n_tokens; row++) {
    let state = (rows[STATES * step.stride + row] * p.n_v_heads + head) * p.k_dim * p.v_dim;
    let fresh = rows[POSITIONS * step.stride + row] == 0u;
    let token = row * width;
    var q_square = 0.0;
    var k_square = 0.0;
    for (var i = lane; i < p.k_dim; i += LANES) {
      let a = qkv[token + k_head * p.k_dim + i];
      let b = qkv[token + n_keys + k_head * p.k_dim + i];
      q[i] = a;
      k[i] = b;
      q_square = fma(a, a, q_square);
      k_square = fma(b, b, k_square);
    }
    let q_scale = 1.0 / sqrt(sum_lanes(lane, q_square) + 1e-6) / sqrt(f32(p.k_dim));
    let k_scale = 1.0 / sqrt(sum_lanes(lane, k_square) + 1e-6);
    let gate = row * p.n_v_heads + head;
    let keep = exp(gates[head] * softplus(alpha[gate] + gates[p.n_v_heads + head]));
    let learnt = sigmoid(beta[gate]);
    for (var j = lane; j < p.v_dim; j += LANES) {
      var recalled = 0.0;
      for (var i = 0u; i < p.k_dim; i++) {
        let s = select(states[state + i * p.v_dim + j], 0.0, fresh) * keep;
        states[state + i * p.v_dim + j] = s;
        recalled = fma(s, k[i] * k_scale, recalled);
      }
      let d = learnt * (qkv[token + 2u * n_keys + head * p.v_dim + j] - recalled);
      var sum = 0.0;
      for (var i = 0u; i < p.k_dim; i++) {
        let s = fma(k[i] * k_scale, d, states[state + i * p.v_dim + j]);
        states[state + i * p.v_dim + j] = s;
        sum = fma(s, q[i] * q_scale, sum);
      }
      out[(row * p.n_v_heads + head) * p.v_dim + j] = sum;
    }
    // all lanes have read the keys before the next row overwrites them
    workgroupBarrier();
  }
}
