// Experts chosen by scores with a bias, within the best groups, or by SparseMixer.
#define LANES 64u
#import batch
#import dot
struct Params {
  n_experts: u32,
  n_used: u32,
  renormalize: u32,
  // 1: the weight of each expert has a factor
  scaled: u32,
  // 0: softmax, 1: sigmoid, 2: SparseMixer
  scoring: u32,
  biased: u32,
  n_groups: u32,
  n_groups_used: u32,
  // 1: a group's score is the sum of its two best, 0: its best
  top_two: u32,
  jitter: f32,
  sum_epsilon: f32,
  scale: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, n_experts)
@group(0) @binding(2) var<storage, read> logits: array<f32>;
// (n_experts)
@group(0) @binding(3) var<storage, read> factors: array<f32>;
// (n_experts)
@group(0) @binding(4) var<storage, read> bias: array<f32>;
// (tokens, 2, n_used): expert indices, then weights
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

const NONE = 0xffffffffu;
const SIGMOID = 1u;
const SPARSE_MIXER = 2u;
const LOWEST = -3.4028234e38;
var<workgroup> best: array<u32, LANES>;
// at most one group per lane
var<workgroup> group_score: array<f32, LANES>;
var<workgroup> group_remains: array<u32, LANES>;

struct Row {
  base: u32,
  most: f32,
  sum: f32,
}

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn score(row: Row, e: u32) -> f32 {
  let logit = logits[row.base + e];
  if (p.scoring == SIGMOID) {
    let small = exp(-abs(logit));
    return select(small, 1.0, logit >= 0.0) / (1.0 + small);
  }
  return exp(logit - row.most) / row.sum;
}

// What experts are chosen by: the largest first.
fn key(row: Row, e: u32) -> f32 {
  if (p.scoring == SPARSE_MIXER) {
    return logits[row.base + e];
  }
  return score(row, e) + select(0.0, bias[e * p.biased], p.biased == 1u);
}

// Whether key x of expert a comes before key y of expert b; on ties the first, NaN last.
fn is_before(x: f32, a: u32, y: f32, b: u32) -> bool {
  if (is_nan(x) || is_nan(y)) {
    return select(is_nan(y) && !is_nan(x), a < b, is_nan(x) && is_nan(y));
  }
  return x > y || (x == y && a < b);
}

fn precedes(row: Row, a: u32, b: u32) -> bool {
  return is_before(key(row, a), a, key(row, b), b);
}

fn first_of(row: Row, a: u32, b: u32) -> u32 {
  if (a == NONE || b == NONE) {
    return min(a, b);
  }
  return select(b, a, precedes(row, a, b));
}

fn score_group(row: Row, group: u32) -> f32 {
  let n_each = p.n_experts / p.n_groups;
  var first = LOWEST;
  var second = LOWEST;
  for (var i = 0u; i < n_each; i++) {
    let k = key(row, group * n_each + i);
    if (k > first) {
      second = first;
      first = k;
    } else if (k > second) {
      second = k;
    }
  }
  return first + select(0.0, second, p.top_two == 1u && n_each > 1u);
}

fn rank_groups(row: Row, lane: u32) {
  if (lane < p.n_groups) {
    group_score[lane] = score_group(row, lane);
  }
  workgroupBarrier();
  if (lane < p.n_groups) {
    var n_before = 0u;
    for (var other = 0u; other < p.n_groups; other++) {
      if (other != lane && is_before(group_score[other], other, group_score[lane], lane)) {
        n_before++;
      }
    }
    group_remains[lane] = select(0u, 1u, n_before < p.n_groups_used);
  }
  workgroupBarrier();
}

// The chosen expert's softmax among those left that are near it.
fn mixer_weight(row: Row, to: u32, slot: u32, lane: u32, chosen: u32) -> f32 {
  let most = logits[row.base + chosen];
  var sum = 0.0;
  for (var e = lane; e < p.n_experts; e += LANES) {
    var is_left = true;
    for (var before = 0u; before < slot; before++) {
      is_left = is_left && u32(out[to + before]) != e;
    }
    let logit = logits[row.base + e];
    let bound = max(abs(logit), most);
    let is_far = bound != 0.0 && (most - logit) / bound > 2.0 * p.jitter;
    if (is_left && !is_far) {
      sum += exp(logit - most);
    }
  }
  return 1.0 / sum_lanes(lane, sum);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  var row = Row(id.z * p.n_experts, LOWEST, 0.0);
  let to = id.z * 2u * p.n_used;
  for (var e = lane; e < p.n_experts; e += LANES) {
    row.most = max(row.most, logits[row.base + e]);
  }
  row.most = max_lanes(lane, row.most);
  for (var e = lane; e < p.n_experts; e += LANES) {
    row.sum += exp(logits[row.base + e] - row.most);
  }
  row.sum = sum_lanes(lane, row.sum);
  rank_groups(row, lane);
  var last = NONE;
  for (var slot = 0u; slot < p.n_used; slot++) {
    var mine = NONE;
    for (var e = lane; e < p.n_experts; e += LANES) {
      let counts = group_remains[e * p.n_groups / p.n_experts] == 1u;
      if (counts && (last == NONE || precedes(row, last, e))) {
        mine = first_of(row, mine, e);
      }
    }
    best[lane] = mine;
    workgroupBarrier();
    for (var n = LANES / 2u; n > 0u; n /= 2u) {
      if (lane < n) {
        best[lane] = first_of(row, best[lane], best[lane + n]);
      }
      workgroupBarrier();
    }
    last = best[0];
    workgroupBarrier();
    var weight = 0.0;
    if (p.scoring == SPARSE_MIXER) {
      weight = mixer_weight(row, to, slot, lane, last);
    } else {
      weight = score(row, last);
    }
    if (lane == 0u) {
      out[to + slot] = f32(last);
      out[to + p.n_used + slot] = weight;
    }
    storageBarrier();
  }
  if (lane > 0u) {
    return;
  }
  var chosen = p.sum_epsilon;
  for (var slot = 0u; slot < p.n_used; slot++) {
    chosen += out[to + p.n_used + slot];
  }
  for (var slot = 0u; slot < p.n_used; slot++) {
    let at = to + p.n_used + slot;
    let share = select(out[at], out[at] / chosen, p.renormalize == 1u);
    out[at] = share * p.scale * select(1.0, factors[u32(out[to + slot]) * p.scaled], p.scaled == 1u);
  }
}
