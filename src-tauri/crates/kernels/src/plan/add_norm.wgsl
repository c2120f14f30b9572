// norm(a + b), keeping the sum; one workgroup of LANES per row. Squares are summed in the order of `ops/rms_norm.wgsl`.
// A lane reads READS elements together, so that it waits for memory once.
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

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let base = id.z * p.width;
  let last = p.width - 1u;
  var v: array<f32, READS>;
  var w: array<f32, READS>;
#ifdef BEFORE
  var before = 0.0;
  for (var first = lane; first < p.width; first += LANES * READS) {
#repeat I READS
    v[I] = b[base + min(first + I * LANES, last)];
#end
#repeat I READS
    if (first + I * LANES <= last) {
      before = fma(v[I], v[I], before);
    }
#end
  }
  let factor = 1.0 / sqrt(sum_lanes(lane, before) / f32(p.width) + p.eps_before);
#endif
  var square = 0.0;
  for (var first = lane; first < p.width; first += LANES * READS) {
#repeat I READS
    {
      let i = min(first + I * LANES, last);
#ifdef BEFORE
      v[I] = a[base + i] + b[base + i] * factor * weight_before[i];
#else
      v[I] = a[base + i] + b[base + i];
#endif
      w[I] = weight[i];
    }
#end
#repeat I READS
    if (first + I * LANES <= last) {
      sum[base + first + I * LANES] = v[I];
      square = fma(v[I], v[I], square);
    }
#end
  }
  let scale = 1.0 / sqrt(sum_lanes(lane, square) / f32(p.width) + p.eps);
  for (var first = lane; first < p.width; first += LANES * READS) {
    // otherwise all elements are held already
    if (p.width > LANES * READS) {
#repeat I READS
      v[I] = sum[base + min(first + I * LANES, last)];
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
