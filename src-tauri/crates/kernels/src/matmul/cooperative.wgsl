// A tile of matrix products as in `tile.wgsl`, by cooperative matrices of 16 × 16. Four subgroups of 32 lanes compute a
// quarter each: TILE_ROWS and TILE_OUTPUTS are 64. The GPU chooses the order of additions.
const NOTHING = 0xffffffffu;
// f16 numbers of a tile row: a block, and eight more so that lanes use different memory banks
const PITCH = 40u;
var<workgroup> tile_w: array<f16, TILE_OUTPUTS * PITCH>;
var<workgroup> tile_x: array<f16, TILE_ROWS * PITCH>;
var<workgroup> tile_y: array<f32, TILE_ROWS * TILE_OUTPUTS>;
var<private> subgroup_: u32;

// Loads 32 elements of all rows into the tile.
fn load_tile(lane: u32, block: u32) {
  for (var o = lane; o < TILE_OUTPUTS; o += LANES) {
    let row = weight_row(o);
    var part: array<vec4<f32>, 8>;
    if (row != NOTHING) {
      part = weights32(row, block);
    }
#repeat Q 8
#repeat C 4
    tile_w[o * PITCH + Q * 4u + C] = operand(part[Q])[C];
#end
#end
  }
  for (var i = lane; i < TILE_ROWS * 8u; i += LANES) {
    let row = x_row(i / 8u);
    var quad = Quad();
    if (row != NOTHING) {
      quad = x_quad(row, block * 8u + i % 8u);
    }
#repeat C 4
    tile_x[i / 8u * PITCH + i % 8u * 4u + C] = quad[C];
#end
  }
}

fn compute_tile(lane: u32) {
  let row = subgroup_ / 2u * 32u;
  let output = subgroup_ % 2u * 32u;
  var y00: coop_mat16x16<f32, C>;
  var y01: coop_mat16x16<f32, C>;
  var y10: coop_mat16x16<f32, C>;
  var y11: coop_mat16x16<f32, C>;
  for (var block = 0u; block * 32u < p.k; block++) {
    workgroupBarrier();
    load_tile(lane, block);
    workgroupBarrier();
    for (var k = 0u; k < 32u; k += 16u) {
      let x0 = coopLoadT<coop_mat16x16<f16, A>>(&tile_x[row * PITCH + k], PITCH);
      let x1 = coopLoadT<coop_mat16x16<f16, A>>(&tile_x[(row + 16u) * PITCH + k], PITCH);
      let w0 = coopLoad<coop_mat16x16<f16, B>>(&tile_w[output * PITCH + k], PITCH);
      let w1 = coopLoad<coop_mat16x16<f16, B>>(&tile_w[(output + 16u) * PITCH + k], PITCH);
      y00 = coopMultiplyAdd(x0, w0, y00);
      y01 = coopMultiplyAdd(x0, w1, y01);
      y10 = coopMultiplyAdd(x1, w0, y10);
      y11 = coopMultiplyAdd(x1, w1, y11);
    }
  }
  coopStoreT(y00, &tile_y[row * TILE_OUTPUTS + output], TILE_OUTPUTS);
  coopStoreT(y01, &tile_y[row * TILE_OUTPUTS + output + 16u], TILE_OUTPUTS);
  coopStoreT(y10, &tile_y[(row + 16u) * TILE_OUTPUTS + output], TILE_OUTPUTS);
  coopStoreT(y11, &tile_y[(row + 16u) * TILE_OUTPUTS + output + 16u], TILE_OUTPUTS);
  workgroupBarrier();
  for (var i = lane; i < TILE_ROWS * TILE_OUTPUTS; i += LANES) {
    put(i / TILE_OUTPUTS, i % TILE_OUTPUTS, tile_y[i]);
  }
}
