// out = min(max(x, low), high)
#import batch
struct Params {
  width: u32,
  low: f32,
  high: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.width) {
    let at = id.z * p.width + id.x;
    let above = select(x[at], p.low, x[at] < p.low);
    out[at] = select(above, p.high, above > p.high);
  }
}
