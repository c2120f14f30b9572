// norm(a + b), with the sum kept: a workgroup for each row. The sums of squares run as in `ops/rms_norm.wgsl`.
#define LANES 128u
#import batch
#import dot
struct Params {
  width: u32,
  eps: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, width)
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
// (width) with its offset
@group(0) @binding(4) var<storage, read> weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> sum: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let base = id.z * p.width;
  var square = 0.0;
  for (var i = lane; i < p.width; i += LANES) {
    let v = a[base + i] + b[base + i];
    sum[base + i] = v;
    square = fma(v, v, square);
  }
  let scale = 1.0 / sqrt(sum_lanes(lane, square) / f32(p.width) + p.eps);
  for (var i = lane; i < p.width; i += LANES) {
    out[base + i] = sum[base + i] * scale * weight[i];
  }
}
