// Each output row and the n - 1 rows after it: their mean, or one after another.
#import batch
struct Params {
  // width of the output
  width: u32,
  // width of x
  x_width: u32,
  n: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, x_width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> rows: array<u32>;
// (outputs, width)
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.width) {
    return;
  }
  let first = rows[OUTPUTS * step.stride + id.z] * p.x_width;
#ifdef MEAN
  var sum = 0.0;
  for (var i = 0u; i < p.n; i++) {
    sum += x[first + i * p.x_width + id.x];
  }
  out[id.z * p.width + id.x] = sum / f32(p.n);
#else
  out[id.z * p.width + id.x] = x[first + id.x];
#endif
}
