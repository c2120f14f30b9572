// out[i] = x[outputs[i]]
#import batch
struct Params {
  width: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> rows: array<u32>;
// (outputs, width)
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.width) {
    let row = rows[OUTPUTS * step.stride + id.z];
    out[id.z * p.width + id.x] = x[row * p.width + id.x];
  }
}
