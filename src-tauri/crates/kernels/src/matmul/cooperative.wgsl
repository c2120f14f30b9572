// A tile of matrix products as in `tile.wgsl`, by cooperative matrices of 16 × 16. Each subgroup of 32 lanes computes
// SUB_ROWS by SUB_OUTPUTS of them. N_BLOCKS blocks of k are multiplied at a time. The next ones are under way meanwhile,
// as they are stored: converting them earlier would wait for them. The GPU chooses the order of additions.
const NOTHING = 0xffffffffu;
// quads of a row of these blocks
const N_QUADS = N_BLOCKS * 8u;
// quads of a tile row: two more, so that lanes use different memory banks
const PITCH = N_QUADS + 2u;
const N_SUBGROUPS = LANES / 32u;
// subgroups side by side
const N_BESIDE = TILE_OUTPUTS / (SUB_OUTPUTS * 16u);
var<workgroup> tile_w: array<vec4<f16>, TILE_OUTPUTS * PITCH>;
var<workgroup> tile_x: array<vec4<f16>, TILE_ROWS * PITCH>;
// one matrix of sums for each subgroup
var<workgroup> matrices: array<f32, N_SUBGROUPS * 256u>;
var<private> subgroup_: u32;

// Saturates to the range of f16.
fn halved(x: vec4<f32>) -> vec4<f16> {
  return vec4<f16>(clamp(x, vec4(-65504.0), vec4(65504.0)));
}

// Loads blocks of weight rows, and quads of x. Zeros beyond the ends.
fn load(lane: u32, first: u32, w: ptr<function, array<Packed, W_READS>>, quads: ptr<function, array<vec4<f32>, X_READS>>) {
#repeat I W_READS
  {
    let at = lane + I * LANES;
    let block = first + at % N_BLOCKS;
    let row = weight_row(at / N_BLOCKS);
    (*w)[I] = Packed();
    if (row != NOTHING && block * 32u < p.k) {
      (*w)[I] = packed32(row, block);
    }
  }
#end
#repeat I X_READS
  {
    let at = lane + I * LANES;
    let row = x_row(at / N_QUADS);
    let quad = first * 8u + at % N_QUADS;
    (*quads)[I] = vec4<f32>();
    if (row != NOTHING && quad * 4u < p.k) {
      (*quads)[I] = x_floats(row, quad);
    }
  }
#end
}

// Writes a matrix of each subgroup: `row` and `output` say which one.
fn put_matrices(lane: u32, row: u32, output: u32) {
  workgroupBarrier();
  for (var i = lane; i < N_SUBGROUPS * 256u; i += LANES) {
    let subgroup = i / 256u;
    let first = vec2(subgroup / N_BESIDE * SUB_ROWS + row, subgroup % N_BESIDE * SUB_OUTPUTS + output) * 16u;
    put(first.x + i % 256u / 16u, first.y + i % 16u, matrices[i]);
  }
  workgroupBarrier();
}

fn compute_tile(lane: u32) {
  let row = subgroup_ / N_BESIDE * SUB_ROWS * 16u;
  let output = subgroup_ % N_BESIDE * SUB_OUTPUTS * 16u;
  var w: array<Packed, W_READS>;
  var quads: array<vec4<f32>, X_READS>;
  // (SUB_ROWS, SUB_OUTPUTS)
  var sums: array<coop_mat16x16<f32, C>, SUB_ROWS * SUB_OUTPUTS>;
  load(lane, 0u, &w, &quads);
  for (var block = 0u; block * 32u < p.k; block += N_BLOCKS) {
    workgroupBarrier();
#repeat I W_READS
    {
      let part = unpack32(w[I]);
      let at = (lane + I * LANES) / N_BLOCKS * PITCH + (lane + I * LANES) % N_BLOCKS * 8u;
#repeat Q 8
      tile_w[at + Q] = halved(part[Q]);
#end
    }
#end
#repeat I X_READS
    tile_x[(lane + I * LANES) / N_QUADS * PITCH + (lane + I * LANES) % N_QUADS] = halved(quads[I]);
#end
    workgroupBarrier();
    if ((block + N_BLOCKS) * 32u < p.k) {
      load(lane, block + N_BLOCKS, &w, &quads);
    }
#repeat K K_STEPS
    {
      var a: array<coop_mat16x16<f16, A>, SUB_ROWS>;
#repeat R SUB_ROWS
      a[R] = coopLoadT<coop_mat16x16<f16, A>>(&tile_x[(row + R * 16u) * PITCH + K * 4u], PITCH);
#end
#repeat O SUB_OUTPUTS
      {
        let b = coopLoad<coop_mat16x16<f16, B>>(&tile_w[(output + O * 16u) * PITCH + K * 4u], PITCH);
#repeat R SUB_ROWS
        sums[R * SUB_OUTPUTS + O] = coopMultiplyAdd(a[R], b, sums[R * SUB_OUTPUTS + O]);
#end
      }
#end
    }
#end
  }
#repeat R SUB_ROWS
#repeat O SUB_OUTPUTS
  coopStoreT(sums[R * SUB_OUTPUTS + O], &matrices[subgroup_ * 256u], 16u);
  put_matrices(lane, R, O);
#end
#end
}
