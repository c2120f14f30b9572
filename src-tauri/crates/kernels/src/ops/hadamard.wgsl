// Each group of columns times the orthonormal Hadamard matrix, in the host's order of additions; one workgroup per group and
// row.
#define LANES 64u
#import batch
struct Params {
  width: u32,
  n_groups: u32,
  scale: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, n_groups, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

var<workgroup> group: array<f32, 512>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let base = (id.z * p.n_groups + id.x) * p.width;
  for (var i = lane; i < p.width; i += LANES) {
    group[i] = x[base + i];
  }
  for (var half = 1u; half < p.width; half *= 2u) {
    workgroupBarrier();
    for (var pair = lane; pair < p.width / 2u; pair += LANES) {
      let i = pair / half * 2u * half + pair % half;
      let a = group[i];
      let b = group[i + half];
      group[i] = a + b;
      group[i + half] = a - b;
    }
  }
  workgroupBarrier();
  for (var i = lane; i < p.width; i += LANES) {
    out[base + i] = group[i] * p.scale;
  }
}
