// norm(a + b), keeping the sum; one workgroup per row. Squares are summed in the order of `ops/rms_norm.wgsl`.
#define LANES 128u
#import batch
#import dot
struct Params {
  width: u32,
  eps: f32,
#ifdef BEFORE
  eps_before: f32,
#endif
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, width)
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
// (width) including its offset
@group(0) @binding(4) var<storage, read> weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> sum: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
#ifdef BEFORE
// (width) including its offset, of the norm of b
@group(0) @binding(7) var<storage, read> weight_before: array<f32>;
#endif

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let base = id.z * p.width;
#ifdef BEFORE
  var before = 0.0;
  for (var i = lane; i < p.width; i += LANES) {
    let v = b[base + i];
    before = fma(v, v, before);
  }
  let factor = 1.0 / sqrt(sum_lanes(lane, before) / f32(p.width) + p.eps_before);
#endif
  var square = 0.0;
  for (var i = lane; i < p.width; i += LANES) {
#ifdef BEFORE
    let v = a[base + i] + b[base + i] * factor * weight_before[i];
#else
    let v = a[base + i] + b[base + i];
#endif
    sum[base + i] = v;
    square = fma(v, v, square);
  }
  let scale = 1.0 / sqrt(sum_lanes(lane, square) / f32(p.width) + p.eps);
  for (var i = lane; i < p.width; i += LANES) {
    out[base + i] = sum[base + i] * scale * weight[i];
  }
}
