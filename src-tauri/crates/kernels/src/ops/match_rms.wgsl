// out = x · √(mean(of²)) / √(max(mean(x²), least)); one workgroup of LANES per group of columns and row.
#import batch
#import dot
struct Params {
  width: u32,
  n_groups: u32,
  least: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, n_groups, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
// (rows, width)
@group(0) @binding(3) var<storage, read> wanted: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let base = (id.z * p.n_groups + id.x) * p.width;
  let other = id.z * p.width;
  var sum = 0.0;
  var wanted_sum = 0.0;
  for (var i = lane; i < p.width; i += LANES) {
    sum = fma(x[base + i], x[base + i], sum);
    wanted_sum = fma(wanted[other + i], wanted[other + i], wanted_sum);
  }
  let square = max(sum_lanes(lane, sum) / f32(p.width), p.least);
  let factor = sqrt(sum_lanes(lane, wanted_sum) / f32(p.width)) / sqrt(square);
  for (var i = lane; i < p.width; i += LANES) {
    out[base + i] = x[base + i] * factor;
  }
}
