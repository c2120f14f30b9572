// Groups rows by expert, in tiles of up to `tile_rows` rows of one expert each. A row is one expert slot of a token.
const TILES = 4u;
const WORDS_OF_TILE = 4u;

// Clamps to a valid expert; the comparison is also false for NaN.
fn expert_of(wanted: f32, n_experts: u32) -> u32 {
  return select(0u, min(u32(clamp(wanted, 0.0, 65535.0)), n_experts - 1u), wanted >= 0.0);
}

#ifdef MAIN
#import batch
struct Params {
  n_experts: u32,
  n_used: u32,
  tile_rows: u32,
  // offsets in `groups`: the list of rows, and the first row of each expert
  list: u32,
  starts: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (tokens, 2, n_used)
@group(0) @binding(2) var<storage, read> route: array<f32>;
// number of tiles; from TILES on, for each tile its expert, first row in the list and number of rows; the list; the first
// row of each expert
@group(0) @binding(3) var<storage, read_write> groups: array<u32>;

fn expert_at(row: u32) -> u32 {
  return expert_of(route[row / p.n_used * 2u * p.n_used + row % p.n_used], p.n_experts);
}

// A single workgroup: each lane handles some experts.
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
  let n = step.n_tokens * p.n_used;
  for (var e = lane; e < p.n_experts; e += 256u) {
    var count = 0u;
    for (var row = 0u; row < n; row++) {
      count += u32(expert_at(row) == e);
    }
    groups[p.starts + e] = count;
  }
  storageBarrier();
  if (lane == 0u) {
    var at = p.list;
    var tile = 0u;
    for (var e = 0u; e < p.n_experts; e++) {
      let count = groups[p.starts + e];
      groups[p.starts + e] = at;
      for (var done = 0u; done < count; done += p.tile_rows) {
        let to = TILES + tile * WORDS_OF_TILE;
        groups[to] = e;
        groups[to + 1u] = at + done;
        groups[to + 2u] = min(count - done, p.tile_rows);
        tile++;
      }
      at += count;
    }
    groups[0] = tile;
  }
  storageBarrier();
  for (var e = lane; e < p.n_experts; e += 256u) {
    var at = groups[p.starts + e];
    for (var row = 0u; row < n; row++) {
      if (expert_at(row) == e) {
        groups[at] = row;
        at++;
      }
    }
  }
}
#endif
