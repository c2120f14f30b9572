// Columns of the rows that the batch gives; other rows are x, or 0.
#import batch
struct Params {
  width: u32,
  // first column
  start: u32,
  // length of a given row
  row_len: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, width)
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.width) {
    return;
  }
  let at = id.z * p.width + id.x;
  // 0: not given
  let number = rows[GIVEN * step.stride + id.z];
  if (number > 0u) {
    out[at] = bitcast<f32>(rows[step.given + (number - 1u) * p.row_len + p.start + id.x]);
    return;
  }
#ifdef REPLACE
  out[at] = x[at];
#else
  out[at] = 0.0;
#endif
}
