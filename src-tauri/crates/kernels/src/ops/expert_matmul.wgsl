// x · W[expert]ᵀ + bias[expert] for each expert of a token: slot by slot, or for many tokens in tiles of rows with one
// expert. Sums run as `matmul/partial_sums.rs` says.
#ifdef HALVES
enable f16;
#endif
#ifdef COOPERATIVE
enable f16;
enable wgpu_cooperative_matrix;
#endif
#import batch
#import expert_groups
struct Params {
  k: u32,
  n_out: u32,
  // row length in groups of four words
  row_quads: u32,
  n_experts: u32,
  n_used: u32,
  // rows in this slice, of all experts' matrices one after another
  first: u32,
  n_rows: u32,
  has_bias: u32,
  // 1: x has a separate input for each slot
  parted: u32,
  // index of the first workgroup of the third dimension
  first_group: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, in) or (tokens, n_used, in)
#ifdef WHOLE
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(2) var<storage, read> x: array<f32>;
#endif
#ifdef TILED
// the output of `expert_groups.wgsl`
@group(0) @binding(3) var<storage, read> groups: array<u32>;
#else
// (tokens, 2, n_used)
@group(0) @binding(3) var<storage, read> route: array<f32>;
#endif
@group(0) @binding(4) var<storage, read> w: array<vec4<u32>>;
// (n_experts, out)
@group(0) @binding(5) var<storage, read> bias: array<f32>;
// (tokens, n_used, out)
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
#import weight
#import partial_sums

// Whether this slice has the row of an expert's output.
fn is_here(output: u32, row: u32) -> bool {
  return output < p.n_out && row >= p.first && row - p.first < p.n_rows;
}

// `slot` counts over all tokens.
fn write(slot: u32, output: u32, row: u32, sum: f32) {
  var y = sum;
  if (p.has_bias == 1u) {
    y += bias[row];
  }
  out[slot * p.n_out + output] = y;
}

fn x_of(slot: u32) -> u32 {
  return select(slot / p.n_used, slot, p.parted == 1u);
}

#ifdef TILED
#ifdef COOPERATIVE
#import cooperative
#else
#import tile
#endif
var<private> first_output: u32;
var<private> expert: u32;
var<private> list: u32;
var<private> n_slots: u32;

fn weight_row(o: u32) -> u32 {
  let row = expert * p.n_out + first_output + o;
  return select(NOTHING, (row - p.first) * p.row_quads, is_here(first_output + o, row));
}

fn x_row(r: u32) -> u32 {
  if (r >= n_slots) {
    return NOTHING;
  }
  return x_of(groups[list + r]);
}

fn put(r: u32, o: u32, sum: f32) {
  let output = first_output + o;
  let row = expert * p.n_out + output;
  if (r < n_slots && is_here(output, row)) {
    write(groups[list + r], output, row, sum);
  }
}

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
#ifdef COOPERATIVE
  @builtin(subgroup_id) subgroup: u32,
#endif
  @builtin(local_invocation_index) lane: u32,
) {
  let at = id.z + p.first_group;
  if (at >= groups[0]) {
    return;
  }
  let tile = TILES + at * WORDS_OF_TILE;
  expert = groups[tile];
  list = groups[tile + 1u];
  n_slots = groups[tile + 2u];
  first_output = id.x * TILE_OUTPUTS;
#ifdef COOPERATIVE
  subgroup_ = subgroup;
#endif
  compute_tile(lane);
}
#else
@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  LANE_BUILTINS,
) {
  let lane = LANE;
  let partial = lane % PARTIAL_SUMS;
  let output = (id.x * (LANES / PARTIAL_SUMS) + lane / PARTIAL_SUMS) * LANE_OUTPUTS;
  let token = id.z + p.first_group;
  let slot = token * p.n_used + id.y;
  let row = expert_of(route[token * 2u * p.n_used + id.y], p.n_experts) * p.n_out + output;
  let x_at = x_of(slot);
  var sums: array<f32, SUMS>;
  var parts: array<array<vec4<f32>, 8>, LANE_OUTPUTS>;
  for (var block = partial; block * 32u < p.k; block += PARTIAL_SUMS) {
#repeat O LANE_OUTPUTS
    if (is_here(output + O, row + O)) {
      parts[O] = weights32((row + O - p.first) * p.row_quads, block);
    }
#end
#repeat Q 8
    {
      let x = x_quad(x_at, block * 8u + Q);
#repeat O LANE_OUTPUTS
      sums[O] = multiply_add4(sums[O], operand(parts[O][Q]), x);
#end
    }
#end
  }
  add_partial_sums(lane, &sums);
#repeat O LANE_OUTPUTS
  if (partial == O && is_here(output + O, row + O)) {
    write(slot, output + O, row + O, sums[O]);
  }
#end
}
#endif
