// out = max(x − mean(x) − deviations · √(variance(x)), 0); one workgroup of LANES per row.
#import batch
#import dot
struct Params {
  width: u32,
  deviations: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let base = id.z * p.width;
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
  let deviation = sqrt(sum_lanes(lane, square) / f32(p.width));
  let cutoff = fma(p.deviations, deviation, mean);
  for (var i = lane; i < p.width; i += LANES) {
    out[base + i] = max(x[base + i] - cutoff, 0.0);
  }
}
