// The n_used largest logits of a row, on ties the first, and their softmax.
#define LANES 64u
#import batch
#import dot
struct Params {
  n_experts: u32,
  n_used: u32,
  renormalize: u32,
  // 1: the weight of each expert has a factor
  scaled: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, n_experts)
@group(0) @binding(2) var<storage, read> logits: array<f32>;
// (n_experts)
@group(0) @binding(3) var<storage, read> factors: array<f32>;
// (tokens, 2, n_used): expert indices, then weights
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

const NONE = 0xffffffffu;
var<workgroup> best: array<u32, LANES>;

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Whether expert a is chosen before b: by logit, on ties the first; NaN comes last.
fn precedes(base: u32, a: u32, b: u32) -> bool {
  let x = logits[base + a];
  let y = logits[base + b];
  if (is_nan(x) || is_nan(y)) {
    return select(is_nan(y) && !is_nan(x), a < b, is_nan(x) && is_nan(y));
  }
  return x > y || (x == y && a < b);
}

fn first_of(base: u32, a: u32, b: u32) -> u32 {
  if (a == NONE || b == NONE) {
    return min(a, b);
  }
  return select(b, a, precedes(base, a, b));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let base = id.z * p.n_experts;
  let to = id.z * 2u * p.n_used;
  var most = -3.4028234e38;
  for (var e = lane; e < p.n_experts; e += LANES) {
    most = max(most, logits[base + e]);
  }
  most = max_lanes(lane, most);
  var sum = 0.0;
  for (var e = lane; e < p.n_experts; e += LANES) {
    sum += exp(logits[base + e] - most);
  }
  sum = sum_lanes(lane, sum);
  var last = NONE;
  for (var slot = 0u; slot < p.n_used; slot++) {
    var mine = NONE;
    for (var e = lane; e < p.n_experts; e += LANES) {
      if (last == NONE || precedes(base, last, e)) {
        mine = first_of(base, mine, e);
      }
    }
    best[lane] = mine;
    workgroupBarrier();
    for (var n = LANES / 2u; n > 0u; n /= 2u) {
      if (lane < n) {
        best[lane] = first_of(base, best[lane], best[lane + n]);
      }
      workgroupBarrier();
    }
    last = best[0];
    workgroupBarrier();
    if (lane == 0u) {
      out[to + slot] = f32(last);
      out[to + p.n_used + slot] = exp(logits[base + last] - most) / sum;
    }
  }
  if (lane > 0u) {
    return;
  }
  var chosen = 0.0;
  for (var slot = 0u; slot < p.n_used; slot++) {
    chosen += out[to + p.n_used + slot];
  }
  for (var slot = 0u; slot < p.n_used; slot++) {
    let at = to + p.n_used + slot;
    let share = select(out[at], out[at] / chosen, p.renormalize == 1u);
    out[at] = share * select(1.0, factors[u32(out[to + slot]) * p.scaled], p.scaled == 1u);
  }
}
