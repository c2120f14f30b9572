// Joins the columns of two values group by group: (rows, n_groups, w) and (rows, n_groups, v) → (rows, n_groups, w + v).
#import batch
struct Params {
  width: u32,
  n_groups: u32,
  a_width: u32,
  b_width: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.width) {
    return;
  }
  let joined = p.a_width + p.b_width;
  let group = id.z * p.n_groups + id.x / joined;
  let i = id.x % joined;
  let at = id.z * p.width + id.x;
  if (i < p.a_width) {
    out[at] = a[group * p.a_width + i];
  } else {
    out[at] = b[group * p.b_width + i - p.a_width];
  }
}
