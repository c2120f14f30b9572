// Merges the partial results of chunks in rising order: weighted sums, largest scores and sums of weights. One workgroup
// per query head and row.
#import batch
struct Params {
  n_heads: u32,
  head_dim: u32,
  // 0: unlimited
  window: u32,
  // 1: each head has a sink
  has_sinks: u32,
  // 1: rows see later positions too
  ahead: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, n_heads, n_chunks, head_dim + 2)
@group(0) @binding(3) var<storage, read> parts: array<f32>;
// (n_heads)
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
// (tokens, n_heads, head_dim)
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

const LANES = 64u;
const CHUNK = 256u;
const HIDDEN: f32 = -3.4028234e38;

// The chunks with visible positions of a row.
fn n_chunks(row: u32) -> u32 {
  let position = rows[POSITIONS * step.stride + row];
  let first = select(0u, position + 1u - min(p.window, position + 1u), p.window > 0u);
  var last = position;
  if (p.ahead == 1u) {
    last = rows[ENDS * step.stride + row] - 1u;
    if (p.window > 0u) {
      last = min(last, position + min(p.window - 1u, last - position));
    }
  }
  return last / CHUNK + 1u - first / CHUNK;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = id.z * p.n_heads + id.x;
  let first = at * step.n_chunks * (p.head_dim + 2u);
  let end = n_chunks(id.z);
  for (var d = lane; d < p.head_dim; d += LANES) {
    var most = HIDDEN;
    var total = 0.0;
    var sum = 0.0;
    if (p.has_sinks == 1u) {
      most = sinks[id.x];
      total = 1.0;
    }
    for (var i = 0u; i < end; i++) {
      let part = first + i * (p.head_dim + 2u);
      let found = parts[part + p.head_dim];
      let share = parts[part + p.head_dim + 1u];
      let now = max(most, found);
      let old = exp(most - now);
      let new_ = exp(found - now);
      total = fma(total, old, share * new_);
      sum = fma(sum, old, parts[part + d] * new_);
      most = now;
    }
    out[at * p.head_dim + d] = sum / total;
  }
}
