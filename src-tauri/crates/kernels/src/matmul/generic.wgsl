// x · Wᵀ + bias for every format. For few rows, lanes share the sum of an output. For many rows, each lane computes some
// outputs of a tile by itself. A row gets the same bits either way: see `partial_sums.rs`.
#ifdef HALVES
enable f16;
#endif
#ifdef COOPERATIVE
enable f16;
enable wgpu_cooperative_matrix;
#endif
#import batch
struct Params {
  k: u32,
  // outputs of all parts together
  n_out: u32,
  // vec4 loads in a row
  row_quads: u32,
  // range of matrix rows in this part
  first: u32,
  n_rows: u32,
  has_bias: u32,
  // 1: rows of x are outputs, 0: tokens
  of_outputs: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, k)
#ifdef WHOLE
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(2) var<storage, read> x: array<f32>;
#endif
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
// (n_out)
@group(0) @binding(4) var<storage, read> bias: array<f32>;
// (rows, n_out)
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
#import weight
#import partial_sums
#ifdef STAGES
#import staged_row
#endif

fn n_rows_of_x() -> u32 {
  return select(step.n_tokens, step.n_outputs, p.of_outputs == 1u);
}

fn write(row: u32, output: u32, sum: f32) {
  let at = p.first + output;
  var y = sum;
  if (p.has_bias == 1u) {
    y += bias[at];
  }
  out[row * p.n_out + at] = y;
}

#ifdef TILED
#ifdef COOPERATIVE
#import cooperative
#else
#import tile
#endif
var<private> first_output: u32;
var<private> first_row: u32;

fn weight_row(o: u32) -> u32 {
  return select(NOTHING, (first_output + o) * p.row_quads, first_output + o < p.n_rows);
}

fn x_row(r: u32) -> u32 {
  return select(NOTHING, first_row + r, first_row + r < n_rows_of_x());
}

fn put(r: u32, o: u32, sum: f32) {
  if (first_row + r < n_rows_of_x() && first_output + o < p.n_rows) {
    write(first_row + r, first_output + o, sum);
  }
}

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
#ifdef COOPERATIVE
  @builtin(subgroup_id) subgroup: u32,
#endif
  @builtin(local_invocation_index) lane: u32,
) {
  first_output = flat(id, groups) * TILE_OUTPUTS;
  first_row = id.z * TILE_ROWS;
#ifdef COOPERATIVE
  subgroup_ = subgroup;
#endif
  compute_tile(lane);
}
#else
@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  LANE_BUILTINS,
) {
  let lane = LANE;
  let partial = lane % PARTIAL_SUMS;
  let output = (flat(id, groups) * (LANES / PARTIAL_SUMS) + lane / PARTIAL_SUMS) * LANE_OUTPUTS;
  let row = id.z * LANE_ROWS;
  // beyond the end the last row is computed again, and not written
  let last_output = p.n_rows - 1u;
  let last_row = n_rows_of_x() - 1u;
  var sums: array<f32, SUMS>;
#ifdef STAGES
  // one row; the weights of a stage are under way while x is brought
  var parts: array<Packed, STAGES * LANE_OUTPUTS>;
  let last_block = (p.k + 31u) / 32u - 1u;
  for (var first = 0u; first <= last_block; first += STAGE_BLOCKS) {
#repeat S STAGES
#repeat O LANE_OUTPUTS
    parts[S * LANE_OUTPUTS + O] = packed32(
      min(output + O, last_output) * p.row_quads,
      min(first + S * PARTIAL_SUMS + partial, last_block),
    );
#end
#end
    bring_stage(lane, row, first, last_block);
#repeat S STAGES
    if (first + S * PARTIAL_SUMS + partial <= last_block) {
#repeat O LANE_OUTPUTS
      {
        let part = unpack32(parts[S * LANE_OUTPUTS + O]);
#repeat Q 8
        sums[O] = multiply_add4(sums[O], operand(part[Q]), staged_quad(S * PARTIAL_SUMS + partial, Q));
#end
      }
#end
    }
#end
  }
#else
  var parts: array<array<vec4<f32>, 8>, LANE_OUTPUTS>;
  for (var block = partial; block * 32u < p.k; block += PARTIAL_SUMS) {
#repeat O LANE_OUTPUTS
    parts[O] = weights32(min(output + O, last_output) * p.row_quads, block);
#end
#repeat R LANE_ROWS
    {
      let x_at = min(row + R, last_row);
#repeat Q 8
      {
        let x = x_quad(x_at, block * 8u + Q);
#repeat O LANE_OUTPUTS
        sums[O * LANE_ROWS + R] = multiply_add4(sums[O * LANE_ROWS + R], operand(parts[O][Q]), x);
#end
      }
#end
    }
#end
  }
#endif
  add_partial_sums(lane, &sums);
#repeat O LANE_OUTPUTS
#repeat R LANE_ROWS
  if (partial == O * LANE_ROWS + R && output + O <= last_output && row + R <= last_row) {
    write(row + R, output + O, sums[O * LANE_ROWS + R]);
  }
#end
#end
}
#endif
