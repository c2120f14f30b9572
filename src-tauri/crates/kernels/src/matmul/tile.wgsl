// A tile of matrix products: TILE_OUTPUTS rows of the matrix by TILE_ROWS rows of x. Each lane computes LANE_OUTPUTS
// outputs for four rows. Weights are decoded once for all rows of the tile. Additions run in the order of
// `partial_sums.rs`.
// The importing shader declares which rows belong to the tile (`weight_row`, `x_row`; NOTHING: none) and takes the sums
// (`put`).
const NOTHING = 0xffffffffu;
// lanes side by side, and rows of lanes
const N_BESIDE = TILE_OUTPUTS / LANE_OUTPUTS;
const N_BELOW = TILE_ROWS / 4u;
// quads of a tile row: eight, and one more so that lanes use different memory banks
const PITCH = 9u;
// partial sums that wait for their pair: one per level of the reduction, and the last
const WAITING = 6u;
var<workgroup> tile_w: array<Quad, TILE_OUTPUTS * PITCH>;
var<workgroup> tile_x: array<Quad, TILE_ROWS * PITCH>;

// Loads 32 elements of all rows into the tile.
fn load_tile(lane: u32, block: u32) {
  for (var o = lane; o < TILE_OUTPUTS; o += LANES) {
    let row = weight_row(o);
    var part: array<vec4<f32>, 8>;
    if (row != NOTHING) {
      part = weights32(row, block);
    }
#repeat Q 8
    tile_w[o * PITCH + Q] = operand(part[Q]);
#end
  }
  for (var i = lane; i < TILE_ROWS * 8u; i += LANES) {
    let row = x_row(i / 8u);
    var quad = Quad();
    if (row != NOTHING) {
      quad = x_quad(row, block * 8u + i % 8u);
    }
    tile_x[i / 8u * PITCH + i % 8u] = quad;
  }
}

fn x_in(row: u32, quad: u32) -> vec4<f32> {
  return vec4<f32>(tile_x[row * PITCH + quad]);
}

fn compute_tile(lane: u32) {
  let beside = lane % N_BESIDE;
  let below = lane / N_BESIDE;
  // for four rows each
  var sums: array<vec4<f32>, LANE_OUTPUTS>;
  var waiting: array<vec4<f32>, LANE_OUTPUTS * WAITING>;
  for (var partial = 0u; partial < PARTIAL_SUMS; partial++) {
#repeat O LANE_OUTPUTS
    sums[O] = vec4<f32>();
#end
    for (var block = partial; block * 32u < p.k; block += PARTIAL_SUMS) {
      workgroupBarrier();
      load_tile(lane, block);
      workgroupBarrier();
      for (var quad = 0u; quad < 8u; quad++) {
        let x = transpose(mat4x4<f32>(
          x_in(below, quad),
          x_in(below + N_BELOW, quad),
          x_in(below + N_BELOW * 2u, quad),
          x_in(below + N_BELOW * 3u, quad),
        ));
#repeat O LANE_OUTPUTS
        {
          let w = vec4<f32>(tile_w[(beside + O * N_BESIDE) * PITCH + quad]);
          let two = fma(vec4(w.y), x[1], fma(vec4(w.x), x[0], sums[O]));
          sums[O] = fma(vec4(w.w), x[3], fma(vec4(w.z), x[2], two));
        }
#end
      }
    }
    // add partial sums as lanes would: in pairs, pairs of pairs …
    var level = 0u;
    for (var n = partial; n % 2u == 1u; n /= 2u) {
#repeat O LANE_OUTPUTS
      sums[O] += waiting[level * LANE_OUTPUTS + O];
#end
      level++;
    }
#repeat O LANE_OUTPUTS
    waiting[level * LANE_OUTPUTS + O] = sums[O];
#end
  }
#repeat O LANE_OUTPUTS
#repeat R 4
  put(below + N_BELOW * R, beside + O * N_BESIDE, sums[O][R]);
#end
#end
}
