// out = Σ weight[slot] · x[slot]
#import batch
struct Params {
  width: u32,
  n_used: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, n_used, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
// (tokens, 2, n_used)
@group(0) @binding(3) var<storage, read> route: array<f32>;
// (tokens, width)
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.width) {
    return;
  }
  var sum = 0.0;
  for (var slot = 0u; slot < p.n_used; slot++) {
    let weight = route[(2u * id.z + 1u) * p.n_used + slot];
    sum = fma(weight, x[(id.z * p.n_used + slot) * p.width + id.x], sum);
  }
  out[id.z * p.width + id.x] = sum;
}
