// out = (x − mean) / √(variance + eps) · weight + bias; one workgroup per group of columns
// and row.
#define LANES 128u
#import batch
#import dot
struct Params {
  width: u32,
  n_groups: u32,
  eps: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, n_groups, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
// (n_groups, width)
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let first = id.x * p.width;
  let base = id.z * p.n_groups * p.width + first;
  var sum = 0.0;
  for (var i = lane; i < p.width; i += LANES) {
    sum += x[base + i];
  }
  let mean = sum_lanes(lane, sum) / f32(p.width);
  var square = 0.0;
  for (var i = lane; i < p.width; i += LANES) {
    let v = x[base + i] - mean;
    square = fma(v, v, square);
  }
  let scale = 1.0 / sqrt(sum_lanes(lane, square) / f32(p.width) + p.eps);
  for (var i = lane; i < p.width; i += LANES) {
    out[base + i] = fma((x[base + i] - mean) * scale, weight[first + i], bias[first + i]);
  }
}
