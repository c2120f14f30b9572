// out = x / √(mean(x²) + eps) · weight; one workgroup of LANES per group of columns and row.
// A lane reads READS elements together, so that it waits for memory once.
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
// (width) including its offset
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let base = (id.z * p.n_groups + id.x) * p.width;
  let last = p.width - 1u;
  var v: array<f32, READS>;
  var w: array<f32, READS>;
  var sum = 0.0;
  for (var first = lane; first < p.width; first += LANES * READS) {
#repeat I READS
    v[I] = x[base + min(first + I * LANES, last)];
    w[I] = weight[min(first + I * LANES, last)];
#end
#repeat I READS
    if (first + I * LANES <= last) {
      sum = fma(v[I], v[I], sum);
    }
#end
  }
  let scale = 1.0 / sqrt(sum_lanes(lane, sum) / f32(p.width) + p.eps);
  for (var first = lane; first < p.width; first += LANES * READS) {
    // otherwise all elements are held already
    if (p.width > LANES * READS) {
#repeat I READS
      v[I] = x[base + min(first + I * LANES, last)];
      w[I] = weight[min(first + I * LANES, last)];
#end
    }
#repeat I READS
    if (first + I * LANES <= last) {
      out[base + first + I * LANES] = v[I] * scale * w[I];
    }
#end
  }
}
