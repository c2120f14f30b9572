// x · Wᵀ, or x · W (BACKWARD), for training: see `product.rs`. A workgroup computes a tile of the result, and each of its
// lanes four rows by four columns of it. STEP terms of every sum are in workgroup memory at a time.
struct Params {
  // elements in a row of W
  k: u32,
  // vec4 loads in a row of W
  row_quads: u32,
  // rows of x from `first_row` on
  first_row: u32,
  n_rows: u32,
  // elements in a row of x; the first that is multiplied, and how many are
  x_width: u32,
  first_term: u32,
  n_terms: u32,
  // elements in a row of the result; the first that is computed, and how many are
  out_width: u32,
  first_column: u32,
  n_columns: u32,
  // 1: adds to the result
  adds: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
// (rows, x_width)
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
// (rows, out_width)
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
#import weight

const LANES = 256u;
// lanes beside and below each other
const SIDE = 16u;
// rows and columns of a tile: four for each lane
const TILE = 64u;
const STEP = 32u;
// (STEP, TILE)
var<workgroup> tile_x: array<f32, STEP * TILE>;
var<workgroup> tile_w: array<f32, STEP * TILE>;

// Where term `t` of a row or column of the tile is. Neighbours in either direction are in different memory banks.
fn place(t: u32, i: u32) -> u32 {
  return t * TILE + (i ^ t);
}

fn load_x(lane: u32, first_row: u32, first: u32) {
  for (var i = lane; i < STEP * TILE; i += LANES) {
    let t = i % STEP;
    let row = first_row + i / STEP;
    var term = 0.0;
    if (row < p.n_rows && first + t < p.n_terms) {
      term = x[(p.first_row + row) * p.x_width + p.first_term + first + t];
    }
    tile_x[place(t, i / STEP)] = term;
  }
}

// Each of TILE lanes decodes a block of STEP weights.
fn load_w(lane: u32, first_column: u32, first: u32) {
  if (lane >= TILE) {
    return;
  }
#ifdef BACKWARD
  // terms are rows of W; a tile has two blocks of each
  let t = lane % STEP;
  let column = lane / STEP * STEP;
  let row = first + t;
  var part: array<vec4<f32>, 8>;
  if (row < p.n_terms && first_column + column < p.n_columns) {
    part = weights32(row * p.row_quads, (first_column + column) / STEP);
  }
#repeat Q 8
#repeat I 4
  tile_w[place(t, column + Q * 4u + I)] = part[Q][I];
#end
#end
#else
  // columns are rows of W
  let column = first_column + lane;
  var part: array<vec4<f32>, 8>;
  if (column < p.n_columns) {
    part = weights32(column * p.row_quads, first / STEP);
  }
#repeat Q 8
#repeat I 4
  tile_w[place(Q * 4u + I, lane)] = part[Q][I];
#end
#end
#endif
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_column = id.x * TILE;
  let first_row = id.y * TILE;
  let beside = lane % SIDE;
  let below = lane / SIDE;
  // of four rows, for four columns each
  var sums: array<vec4<f32>, 4>;
  for (var first = 0u; first < p.n_terms; first += STEP) {
    workgroupBarrier();
    load_x(lane, first_row, first);
    load_w(lane, first_column, first);
    workgroupBarrier();
    // sums of a step by themselves: rounding errors then grow with the number of steps alone
    var step_sums: array<vec4<f32>, 4>;
    for (var t = 0u; t < STEP; t++) {
      let columns = vec4(
        tile_w[place(t, beside)],
        tile_w[place(t, beside + SIDE)],
        tile_w[place(t, beside + SIDE * 2u)],
        tile_w[place(t, beside + SIDE * 3u)],
      );
#repeat R 4
      step_sums[R] = fma(vec4(tile_x[place(t, below + SIDE * R)]), columns, step_sums[R]);
#end
    }
#repeat R 4
    sums[R] += step_sums[R];
#end
  }
#repeat R 4
#repeat C 4
  {
    let row = first_row + below + SIDE * R;
    let column = first_column + beside + SIDE * C;
    if (row < p.n_rows && column < p.n_columns) {
      let at = (p.first_row + row) * p.out_width + p.first_column + column;
      var sum = sums[R][C];
      if (p.adds == 1u) {
        sum += out[at];
      }
      out[at] = sum;
    }
  }
#end
#end
}
