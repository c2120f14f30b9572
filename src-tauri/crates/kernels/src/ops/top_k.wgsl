// Selects the largest numbers of each segment of a row, largest first, on ties the first column, in the ranking of
// `top_k.rs`. Each stage leaves fewer segments, until one is left.
#define LANES 256u
#define SEGMENT 1024u
#import batch
struct Params {
  n_columns: u32,
  // stages before this one
  stage: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// first stage: (rows, n_columns) bits of floats; later stages: (rows, entries, 2) ranks and columns
@group(0) @binding(2) var<storage, read> x: array<u32>;
// (rows, segments · n_selected, 2) ranks and columns
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

var<workgroup> ranks: array<u32, SEGMENT>;
var<workgroup> columns: array<u32, SEGMENT>;

// A quarter of the largest number, to which larger ones are clamped.
const LARGEST = 0x7e7fffffu;

// Larger numbers have larger ranks; NaN and infinities come first.
fn rank(bits: u32) -> u32 {
  let size = bits & 0x7fffffffu;
  if (size >= 0x7f800000u) {
    return select(0xfffffffeu, 0xffffffffu, size > 0x7f800000u);
  }
  if (bits >= 0x80000000u) {
    return ~bits;
  }
  return min(bits, LARGEST) | 0x80000000u;
}

// Entries of a row before this stage.
fn n_entries() -> u32 {
  var n = p.n_columns;
  for (var i = 0u; i < p.stage; i++) {
    n = (n + SEGMENT - 1u) / SEGMENT * step.n_selected;
  }
  return n;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = n_entries();
  for (var i = lane; i < SEGMENT; i += LANES) {
    let at = id.x * SEGMENT + i;
    // ranks after all real entries
    var entry = vec2(0u, 0xffffffffu);
    if (at < n && p.stage == 0u) {
      entry = vec2(rank(x[id.z * n + at]), at);
    } else if (at < n) {
      entry = vec2(x[2u * (id.z * n + at)], x[2u * (id.z * n + at) + 1u]);
    }
    ranks[i] = entry.x;
    columns[i] = entry.y;
  }
  for (var size = 2u; size <= SEGMENT; size *= 2u) {
    for (var half = size / 2u; half > 0u; half /= 2u) {
      workgroupBarrier();
      for (var i = lane; i < SEGMENT / 2u; i += LANES) {
        let a = i / half * 2u * half + i % half;
        let b = a + half;
        let one = vec2(ranks[a], columns[a]);
        let two = vec2(ranks[b], columns[b]);
        let is_before = one.x > two.x || (one.x == two.x && one.y < two.y);
        if (is_before != ((a & size) == 0u)) {
          ranks[a] = two.x;
          columns[a] = two.y;
          ranks[b] = one.x;
          columns[b] = one.y;
        }
      }
    }
  }
  workgroupBarrier();
  let first = (id.z * groups.x + id.x) * step.n_selected;
  for (var i = lane; i < step.n_selected; i += LANES) {
    out[2u * (first + i)] = ranks[i];
    out[2u * (first + i) + 1u] = columns[i];
  }
}
