// Selects columns of every group: (rows, n_groups · stride) → (rows, n_groups · width).
#import batch
struct Params {
  n_groups: u32,
  stride: u32,
  start: u32,
  width: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let n = p.n_groups * p.width;
  if (id.x < n) {
    let origin = (id.z * p.n_groups + id.x / p.width) * p.stride + p.start + id.x % p.width;
    out[id.z * n + id.x] = x[origin];
  }
}
