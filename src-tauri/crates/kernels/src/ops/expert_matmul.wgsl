// x · W[expert]ᵀ + bias[expert] for each expert that a token goes to. Sums run as in `generic.wgsl`.
#define STRANDS 16u
#define N_OUTPUTS 4u
#import batch
struct Params {
  k: u32,
  n_out: u32,
  row_words: u32,
  n_experts: u32,
  n_used: u32,
  // rows of all experts' matrices, one after another, that are in this part
  first: u32,
  n_rows: u32,
  has_bias: u32,
  // 1: x has a part for each slot
  parted: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, in) or (tokens, n_used, in)
@group(0) @binding(2) var<storage, read> x: array<f32>;
// (tokens, 2, n_used)
@group(0) @binding(3) var<storage, read> route: array<f32>;
@group(0) @binding(4) var<storage, read> w: array<u32>;
// (n_experts, out)
@group(0) @binding(5) var<storage, read> bias: array<f32>;
// (tokens, n_used, out)
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
#import weight

var<workgroup> pieces: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let strand = lane % STRANDS;
  let token = id.z;
  let slot = id.y;
  let output = id.x * N_OUTPUTS + lane / STRANDS;
  let wanted = route[token * 2u * p.n_used + slot];
  // what is no expert becomes one: a comparison that fails for what is no number
  let expert = select(0u, min(u32(clamp(wanted, 0.0, 65535.0)), p.n_experts - 1u), wanted >= 0.0);
  let row = expert * p.n_out + output;
  let is_here = output < p.n_out && row >= p.first && row - p.first < p.n_rows;
  var sum = 0.0;
  if (is_here) {
    let origin = select(token, token * p.n_used + slot, p.parted == 1u) * p.k;
    for (var segment = strand; segment * 16u < p.k; segment += STRANDS) {
      var part = weights16((row - p.first) * p.row_words, segment);
      let n = min(16u, p.k - segment * 16u);
      for (var i = 0u; i < n; i++) {
        sum = fma(part[i / 4u][i % 4u], x[origin + segment * 16u + i], sum);
      }
    }
  }
  pieces[lane] = sum;
  workgroupBarrier();
  for (var n = STRANDS / 2u; n > 0u; n /= 2u) {
    if (strand < n) {
      pieces[lane] += pieces[lane + n];
    }
    workgroupBarrier();
  }
  if (is_here && strand == 0u) {
    var y = pieces[lane];
    if (p.has_bias == 1u) {
      y += bias[row];
    }
    out[(token * p.n_used + slot) * p.n_out + output] = y;
  }
}
