// out = x · factor, where the factor is a constant, of the column, a function of the row's position, or the row's gate.
#import batch
#import activate
struct Params {
  width: u32,
  // the constant, or the growth rate with the position
  factor: f32,
  original_context: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, width)
@group(0) @binding(2) var<storage, read> x: array<f32>;
#ifdef BY_POSITION
@group(0) @binding(3) var<storage, read> rows: array<u32>;
#else
// (rows, 1), or (width) by column; unused where the factor is constant
@group(0) @binding(3) var<storage, read> gate: array<f32>;
#endif
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.width) {
    return;
  }
  let at = id.z * p.width + id.x;
#ifdef BY_POSITION
  let position = rows[POSITIONS * step.stride + id.z];
  let factor = 1.0 + p.factor * log(1.0 + f32(position / p.original_context));
#else
#ifdef BY_GATE
  let factor = sigmoid(gate[id.z]);
#else
#ifdef BY_COLUMN
  let factor = gate[id.x];
#else
  let factor = p.factor;
#endif
#endif
#endif
  out[at] = x[at] * factor;
}
