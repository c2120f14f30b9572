// A tile of matrix products as in `tile.wgsl`, by cooperative matrices of 16 × 16. Each subgroup of 32 lanes computes 32
// rows by 32 outputs, two by two matrices; TILE_ROWS is 64, and LANES twice TILE_OUTPUTS. Two blocks of k are multiplied
// at a time, while the next two are read. The GPU chooses the order of additions.
const NOTHING = 0xffffffffu;
// blocks at a time, and quads of a row of them
const N_BLOCKS = 2u;
const N_QUADS = N_BLOCKS * 8u;
// quads of a tile row: two more, so that lanes use different memory banks
const PITCH = N_QUADS + 2u;
const N_SUBGROUPS = LANES / 32u;
const N_BESIDE = TILE_OUTPUTS / 32u;
var<workgroup> tile_w: array<vec4<f16>, TILE_OUTPUTS * PITCH>;
var<workgroup> tile_x: array<vec4<f16>, TILE_ROWS * PITCH>;
// one matrix of sums for each subgroup
var<workgroup> matrices: array<f32, N_SUBGROUPS * 256u>;
var<private> subgroup_: u32;

// Reads a block of a weight row, and quads of x. Zeros beyond the ends.
fn read_blocks(lane: u32, first: u32, w: ptr<function, array<vec4<f16>, 8>>, x: ptr<function, array<vec4<f16>, X_READS>>) {
  let block = first + lane / TILE_OUTPUTS;
  let row = weight_row(lane % TILE_OUTPUTS);
  var part: array<vec4<f32>, 8>;
  if (row != NOTHING && block * 32u < p.k) {
    part = weights32(row, block);
  }
#repeat Q 8
  (*w)[Q] = operand(part[Q]);
#end
#repeat I X_READS
  {
    let x_at = x_row(lane / N_QUADS + I * (LANES / N_QUADS));
    let quad = first * 8u + lane % N_QUADS;
    (*x)[I] = vec4<f16>();
    if (x_at != NOTHING && quad * 4u < p.k) {
      (*x)[I] = x_quad(x_at, quad);
    }
  }
#end
}

// Writes a matrix of each subgroup: `row` and `output` say which one.
fn put_matrices(lane: u32, row: u32, output: u32) {
  workgroupBarrier();
  for (var i = lane; i < N_SUBGROUPS * 256u; i += LANES) {
    let subgroup = i / 256u;
    let at = vec2(i % 256u / 16u, i % 16u);
    put(subgroup / N_BESIDE * 32u + row + at.x, subgroup % N_BESIDE * 32u + output + at.y, matrices[i]);
  }
  workgroupBarrier();
}

fn compute_tile(lane: u32) {
  let row = subgroup_ / N_BESIDE * 32u;
  let output = subgroup_ % N_BESIDE * 32u;
  var w: array<vec4<f16>, 8>;
  var x: array<vec4<f16>, X_READS>;
  var y00: coop_mat16x16<f32, C>;
  var y01: coop_mat16x16<f32, C>;
  var y10: coop_mat16x16<f32, C>;
  var y11: coop_mat16x16<f32, C>;
  read_blocks(lane, 0u, &w, &x);
  for (var block = 0u; block * 32u < p.k; block += N_BLOCKS) {
    workgroupBarrier();
#repeat Q 8
    tile_w[lane % TILE_OUTPUTS * PITCH + lane / TILE_OUTPUTS * 8u + Q] = w[Q];
#end
#repeat I X_READS
    tile_x[(lane / N_QUADS + I * (LANES / N_QUADS)) * PITCH + lane % N_QUADS] = x[I];
#end
    workgroupBarrier();
    if ((block + N_BLOCKS) * 32u < p.k) {
      read_blocks(lane, block + N_BLOCKS, &w, &x);
    }
#repeat K 4
    {
      let x0 = coopLoadT<coop_mat16x16<f16, A>>(&tile_x[row * PITCH + K * 4u], PITCH);
      let x1 = coopLoadT<coop_mat16x16<f16, A>>(&tile_x[(row + 16u) * PITCH + K * 4u], PITCH);
      let w0 = coopLoad<coop_mat16x16<f16, B>>(&tile_w[output * PITCH + K * 4u], PITCH);
      let w1 = coopLoad<coop_mat16x16<f16, B>>(&tile_w[(output + 16u) * PITCH + K * 4u], PITCH);
      y00 = coopMultiplyAdd(x0, w0, y00);
      y01 = coopMultiplyAdd(x0, w1, y01);
      y10 = coopMultiplyAdd(x1, w0, y10);
      y11 = coopMultiplyAdd(x1, w1, y11);
    }
#end
  }
  coopStoreT(y00, &matrices[subgroup_ * 256u], 16u);
  put_matrices(lane, 0u, 0u);
  coopStoreT(y01, &matrices[subgroup_ * 256u], 16u);
  put_matrices(lane, 0u, 16u);
  coopStoreT(y10, &matrices[subgroup_ * 256u], 16u);
  put_matrices(lane, 16u, 0u);
  coopStoreT(y11, &matrices[subgroup_ * 256u], 16u);
  put_matrices(lane, 16u, 16u);
}
