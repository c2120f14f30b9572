// act(x · Gᵀ) · (x · Uᵀ) for one row, where the rows of U follow those of G in one matrix. Sums run as in
// `generic.wgsl`, so that gate and up, which are written too, equal the results of its kernels.
#ifdef HALVES
enable f16;
#endif
#import batch
#import activate
struct Params {
  k: u32,
  // rows of one of the two matrices
  n_out: u32,
  // vec4 loads in a row
  row_quads: u32,
  act: u32,
  limit: f32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (1, k)
#ifdef WHOLE
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(2) var<storage, read> x: array<f32>;
#endif
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
// (1, n_out) each
@group(0) @binding(4) var<storage, read_write> gate: array<f32>;
@group(0) @binding(5) var<storage, read_write> up: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
#import weight
#import partial_sums
#import staged_row

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  LANE_BUILTINS,
) {
  let lane = LANE;
  let partial = lane % PARTIAL_SUMS;
  let output = (flat(id, groups) * (LANES / PARTIAL_SUMS) + lane / PARTIAL_SUMS) * LANE_PAIRS;
  // beyond the end the last output is computed again, and not written
  let last = p.n_out - 1u;
  var sums: array<f32, SUMS>;
  // the weights of a stage are under way while x is brought
  var parts: array<Packed, STAGES * SUMS>;
  let last_block = (p.k + 31u) / 32u - 1u;
  for (var first = 0u; first <= last_block; first += STAGE_BLOCKS) {
#repeat S STAGES
#repeat O LANE_PAIRS
    {
      let block = min(first + S * PARTIAL_SUMS + partial, last_block);
      parts[S * SUMS + O * 2u] = packed32(min(output + O, last) * p.row_quads, block);
      parts[S * SUMS + O * 2u + 1u] = packed32((p.n_out + min(output + O, last)) * p.row_quads, block);
    }
#end
#end
    bring_stage(lane, 0u, first, last_block);
#repeat S STAGES
    if (first + S * PARTIAL_SUMS + partial <= last_block) {
#repeat O SUMS
      {
        let part = unpack32(parts[S * SUMS + O]);
#repeat Q 8
        sums[O] = multiply_add4(sums[O], operand(part[Q]), staged_quad(S * PARTIAL_SUMS + partial, Q));
#end
      }
#end
    }
#end
  }
  add_partial_sums(lane, &sums);
#repeat O LANE_PAIRS
  if (partial == O && output + O <= last) {
    let g = sums[O * 2u];
    let u = sums[O * 2u + 1u];
    gate[output + O] = g;
    up[output + O] = u;
    out[output + O] = gated(g, u, p.act, p.limit);
  }
#end
}
