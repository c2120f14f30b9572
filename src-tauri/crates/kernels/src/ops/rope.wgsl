// Rotates each pair of a head by the angle of its row. Angles come from the host, which is exact for large positions.
#import batch
struct Params {
  n_heads: u32,
  head_dim: u32,
  // rotated pairs
  n_pairs: u32,
  // 1: pairs (2i, 2i + 1), 0: (i, i + n_pairs)
  interleaved: u32,
  // pairs of a row before those of this rotation
  first: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, n_heads, head_dim)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> rows: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

// One lane per pair of a head, then one per element that is not rotated.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let per_head = p.head_dim - p.n_pairs;
  if (id.x >= p.n_heads * per_head) {
    return;
  }
  let head = (id.z * p.n_heads + id.x / per_head) * p.head_dim;
  let i = id.x % per_head;
  if (i >= p.n_pairs) {
    let at = head + p.n_pairs + i;
    out[at] = x[at];
    return;
  }
  // (tokens, n_pairs) cosine and sine
  let at = step.angles + 2u * (p.first * step.n_tokens + id.z * p.n_pairs + i);
  let turn = vec2(bitcast<f32>(rows[at]), bitcast<f32>(rows[at + 1u]));
  let one = head + select(i, 2u * i, p.interleaved == 1u);
  let two = one + select(p.n_pairs, 1u, p.interleaved == 1u);
  let a = x[one];
  let b = x[two];
  out[one] = a * turn.x - b * turn.y;
  out[two] = a * turn.y + b * turn.x;
}
