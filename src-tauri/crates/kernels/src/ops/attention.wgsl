// softmax(q·kᵀ · scale) · v of one query head of one row: a workgroup. Positions are cut at absolute multiples of
// CHUNK, each chunk has a softmax of its own, and they are merged in rising order: what is computed depends on the
// row's position alone.
#define LANES 64u
#define CHUNK 256u
#define MAX_HEAD_DIM 512u
// elements of a head that a lane sums up
#define MAX_SUMS 8u
#import batch
#import dot
#import exp
struct Params {
  n_heads: u32,
  // query heads that share keys and values
  group: u32,
  head_dim: u32,
  n_kv_heads: u32,
  block_words: u32,
  page_words: u32,
  // TABLES or WINDOW_TABLES
  tables: u32,
  // 0: sees all positions
  window: u32,
  scale: f32,
  // 0: none
  cap: f32,
  // 1: each head has a sink
  has_sinks: u32,
  // 1: sees what comes after it too
  ahead: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, n_heads, head_dim)
@group(0) @binding(3) var<storage, read> q: array<f32>;
@group(0) @binding(4) var<storage, read> kv: array<u32>;
// (n_heads)
@group(0) @binding(5) var<storage, read> sinks: array<f32>;
// (tokens, n_heads, head_dim)
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
#import kv_rows

const HIDDEN = -3.4028234e38;
var<workgroup> query: array<f32, MAX_HEAD_DIM>;
var<workgroup> scores: array<f32, CHUNK>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = id.x;
  let row = id.z;
  let base = (row * p.n_heads + head) * p.head_dim;
  let key_block = head / p.group * p.block_words;
  let value_block = (p.n_kv_heads + head / p.group) * p.block_words;
  let position = rows[POSITIONS * step.stride + row];
  let table = rows[p.tables * step.stride + row];
  let first = select(0u, position + 1u - min(p.window, position + 1u), p.window > 0u);
  // of what is seen
  var last = position;
  if (p.ahead == 1u) {
    last = rows[ENDS * step.stride + row] - 1u;
    if (p.window > 0u) {
      last = min(last, position + min(p.window - 1u, last - position));
    }
  }
  for (var d = lane; d < p.head_dim; d += LANES) {
    query[d] = q[base + d];
  }
  var sums: array<f32, MAX_SUMS>;
  for (var i = 0u; i < MAX_SUMS; i++) {
    sums[i] = 0.0;
  }
  // of all chunks so far
  var most = HIDDEN;
  var total = 0.0;
  if (p.has_sinks == 1u) {
    most = sinks[head];
    total = 1.0;
  }
  workgroupBarrier();
  for (var chunk = first / CHUNK * CHUNK; chunk <= last; chunk += CHUNK) {
    var chunk_most = HIDDEN;
    for (var i = lane; i < CHUNK; i += LANES) {
      let j = chunk + i;
      var score = HIDDEN;
      if (j >= first && j <= last) {
        let block = rows[table + j / PAGE_LEN] * p.page_words + key_block;
        var sum = 0.0;
        for (var d = 0u; d < p.head_dim; d++) {
          sum = fma(query[d], key_at(block, p.head_dim, j % PAGE_LEN, d), sum);
        }
        score = sum * p.scale;
        if (p.cap > 0.0) {
          score = soft_cap(score, p.cap);
        }
      }
      scores[i] = score;
      chunk_most = max(chunk_most, score);
    }
    chunk_most = max_lanes(lane, chunk_most);
    var chunk_total = 0.0;
    for (var i = lane; i < CHUNK; i += LANES) {
      let j = chunk + i;
      let e = select(0.0, exp(scores[i] - chunk_most), j >= first && j <= last);
      scores[i] = e;
      chunk_total += e;
    }
    chunk_total = sum_lanes(lane, chunk_total);
    let now = max(most, chunk_most);
    let old = exp(most - now);
    let new_ = exp(chunk_most - now);
    total = fma(total, old, chunk_total * new_);
    most = now;
    let origin = max(first, chunk);
    let to = min(last + 1u, chunk + CHUNK);
    for (var i = 0u; i < MAX_SUMS; i++) {
      let d = lane + i * LANES;
      if (d < p.head_dim) {
        var sum = 0.0;
        for (var j = origin; j < to; j++) {
          let block = rows[table + j / PAGE_LEN] * p.page_words + value_block;
          sum = fma(scores[j - chunk], value_at(block, p.head_dim, j % PAGE_LEN, d), sum);
        }
        sums[i] = fma(sums[i], old, sum * new_);
      }
    }
    // the next chunk's scores wait until these have been read
    workgroupBarrier();
  }
  for (var i = 0u; i < MAX_SUMS; i++) {
    let d = lane + i * LANES;
    if (d < p.head_dim) {
      out[base + d] = sums[i] / total;
    }
  }
}
