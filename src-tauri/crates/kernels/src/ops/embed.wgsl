// Rows of a table times a factor; one lane per 32 elements.
#import batch
struct Params {
  k: u32,
  // row length in groups of four words
  row_quads: u32,
  // rows of the table in this slice
  first: u32,
  n_rows: u32,
  // TOKENS, POSITIONS or KINDS
  by: u32,
  scale: f32,
  // rows of the whole table, after which the first one is meant; the largest number: all rows are in it
  n_table: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
// (tokens, k)
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
#import weight

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let of_token = rows[p.by * step.stride + id.z];
  let row = select(0u, of_token, of_token < p.n_table);
  if (id.x * 32u >= p.k || row < p.first || row - p.first >= p.n_rows) {
    return;
  }
  var part = weights32((row - p.first) * p.row_quads, id.x);
  for (var i = 0u; i < 32u; i++) {
    let at = id.x * 32u + i;
    if (at < p.k) {
      out[id.z * p.k + at] = part[i / 4u][i % 4u] * p.scale;
    }
  }
}
