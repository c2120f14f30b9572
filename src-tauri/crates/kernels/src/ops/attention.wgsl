// softmax(q·kᵀ · scale) · v over paged keys and values. A workgroup takes several queries of one KV head, in groups of
// four, through keys and values together. They are the query heads that share the KV head, of one row or of several.
//
// Positions are split at absolute multiples of CHUNK. Each chunk has its own softmax, and chunks are merged in rising
// order: here, or with one workgroup per chunk by `attention/merge.wgsl` in the same way. Within a chunk the order of
// sums depends on positions alone. So the result of a row depends only on its position.
#define LANES 128u
#define CHUNK 256u
// groups of four queries at a time
#ifdef EIGHT
#define FOURS 2u
#define N_QUERIES 8u
#else
#define FOURS 1u
#define N_QUERIES 4u
#endif
#import batch
#import exp
struct Params {
  n_heads: u32,
  // query heads that share keys and values
  group: u32,
  head_dim: u32,
  n_kv_heads: u32,
  // words of the keys and of the values of one head in one page
  key_words: u32,
  value_words: u32,
  page_words: u32,
  // TABLES or WINDOW_TABLES
  tables: u32,
  // 0: unlimited
  window: u32,
  scale: f32,
  // 0: none
  cap: f32,
  // 1: each head has a sink
  has_sinks: u32,
  // 1: rows see later positions too; 2: those of their image; 3: all earlier ones but the first
  ahead: u32,
  // query heads per workgroup, and workgroups per KV head
  heads: u32,
  blocks: u32,
  // rows per workgroup
  rows: u32,
  // positions whose values are summed in parallel: a power of two
  strands: u32,
  // 1: one chunk per workgroup, for `attention/merge.wgsl`
  is_part: u32,
  // first requantized page; its offset in words
  n_exact: u32,
  first_requantized: u32,
  requantized_block_words: u32,
  // index of the first workgroup of the third dimension
  first_group: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, n_heads, head_dim)
@group(0) @binding(3) var<storage, read> q: array<f32>;
@group(0) @binding(4) var<storage, read> kv: array<u32>;
// (n_heads)
@group(0) @binding(5) var<storage, read> sinks: array<f32>;
// (tokens, n_heads, head_dim); of partial results (tokens, n_heads, n_chunks, head_dim + 2): weighted sum, largest score, sum of weights
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
#import visible
#import kv_rows
#import attention_lanes

const HIDDEN: f32 = -3.4028234e38;
// head_dim · FOURS at most
var<workgroup> query: array<vec4<f32>, 512>;
// (FOURS, CHUNK); later sums passed between strands
var<workgroup> scores: array<vec4<f32>, FOURS * CHUNK>;

// position of the workgroup
var<private> kv_head: u32;
var<private> first_head: u32;
var<private> first_row: u32;
// visible positions of each query: none if the last precedes the first
var<private> firsts: array<vec4<u32>, FOURS>;
var<private> lasts: array<vec4<u32>, FOURS>;
// state of all chunks so far
var<private> most: array<vec4<f32>, FOURS>;
var<private> total: array<vec4<f32>, FOURS>;
// (FOURS, elements of this lane)
var<private> sums: array<vec4<f32>, N_QUERIES>;

fn row_of(i: u32) -> u32 {
  return first_row + i / p.heads;
}

fn head_of(i: u32) -> u32 {
  return first_head + i % p.heads;
}

fn is_query(i: u32) -> bool {
  return i < p.heads * p.rows && row_of(i) < step.n_tokens && head_of(i) < (kv_head + 1u) * p.group;
}

// The rows from `row` on that are consecutive in one sequence.
fn run_end(row: u32, end: u32) -> u32 {
  var next = row + 1u;
  while (next < end) {
    let follows = rows[POSITIONS * step.stride + next] == rows[POSITIONS * step.stride + next - 1u] + 1u;
    if (!follows || rows[p.tables * step.stride + next] != rows[p.tables * step.stride + row]) {
      break;
    }
    next++;
  }
  return next;
}

fn element(i: u32, d: u32) -> f32 {
  if (!is_query(i) || d >= p.head_dim) {
    return 0.0;
  }
  return q[(row_of(i) * p.n_heads + head_of(i)) * p.head_dim + d];
}

fn begin(lane: u32) {
  for (var at = lane; at < (p.head_dim + 3u) / 4u * 4u * FOURS; at += LANES) {
    let d = at / FOURS;
    let i = at % FOURS * 4u;
    query[at] = vec4(element(i, d), element(i + 1u, d), element(i + 2u, d), element(i + 3u, d));
  }
#repeat V FOURS
  {
    most[V] = vec4<f32>(HIDDEN);
    total[V] = vec4<f32>();
    if (p.has_sinks == 1u && p.is_part == 0u) {
#repeat C 4
      {
        most[V][C] = sinks[min(head_of(4u * V + C), p.n_heads - 1u)];
      }
#end
      total[V] = vec4<f32>(1.0);
    }
  }
#end
#repeat I N_QUERIES
  {
    sums[I] = vec4<f32>();
  }
#end
}

// Sets the visible positions of the queries of rows `row..end`; others see none.
fn look(row: u32, end: u32) {
#repeat I N_QUERIES
  {
    let its_row = row_of(I);
    var span = vec2<u32>(1u, 0u);
    if (is_query(I) && its_row >= row && its_row < end) {
      span = seen(its_row);
    }
    firsts[I / 4u][I % 4u] = span.x;
    lasts[I / 4u][I % 4u] = span.y;
  }
#end
}

fn is_seen(v: u32, position: u32) -> vec4<bool> {
  return (vec4<u32>(position) >= firsts[v]) & (vec4<u32>(position) <= lasts[v]);
}

fn scored(v: u32, position: u32, product: vec4<f32>) -> vec4<f32> {
  var score = product * p.scale;
  if (p.cap > 0.0) {
    score = vec4(soft_cap(score.x, p.cap), soft_cap(score.y, p.cap), soft_cap(score.z, p.cap), soft_cap(score.w, p.cap));
  }
  return select(vec4<f32>(HIDDEN), score, is_seen(v, position));
}

// The block of this KV head, keys or values, in the page of a position.
fn block_at(table: u32, position: u32, is_value: bool) -> u32 {
  let page = rows[table + position / PAGE_LEN];
#ifdef REQUANTIZED
  let block = kv_head + select(0u, p.n_kv_heads, is_value);
  if (page >= p.n_exact) {
    return p.first_requantized + ((page - p.n_exact) * 2u * p.n_kv_heads + block) * p.requantized_block_words;
  }
#endif
  let of_value = p.n_kv_heads * p.key_words + kv_head * p.value_words;
  return page * p.page_words + select(kv_head * p.key_words, of_value, is_value);
}

fn keys_of(block: u32, slot: u32, d: u32) -> Keys {
#ifdef REQUANTIZED
  if (block >= p.first_requantized) {
    return keys_of_bytes(block, p.head_dim, slot, d);
  }
#endif
  return keys_at(block, p.head_dim, slot, d);
}

fn values_of(block: u32, slot: u32, d: u32) -> vec4<f32> {
#ifdef REQUANTIZED
  if (block >= p.first_requantized) {
    return values_of_bytes(block, p.head_dim, slot, d);
  }
#endif
  return values_at(block, p.head_dim, slot, d);
}

// Computes the softmax weights of positions `low..high` of a chunk into `scores`. Returns the largest score and the sum of
// weights of each query.
fn weigh(lane: u32, table: u32, chunk: u32, low: u32, high: u32) -> array<vec4<f32>, 2u * FOURS> {
  let j = chunk + 2u * lane;
  var even: array<vec4<f32>, FOURS>;
  var odd: array<vec4<f32>, FOURS>;
#repeat V FOURS
  {
    even[V] = vec4<f32>();
    odd[V] = vec4<f32>();
  }
#end
  if (j + 1u >= low && j < high) {
    let block = block_at(table, j, false);
    for (var d = 0u; d < p.head_dim; d += 4u) {
      let keys = keys_of(block, j % PAGE_LEN, d);
#repeat V FOURS
      {
#repeat E 4
        {
          let four = query[(d + E) * FOURS + V];
          even[V] = fma(four, vec4<f32>(keys.even[E]), even[V]);
          odd[V] = fma(four, vec4<f32>(keys.odd[E]), odd[V]);
        }
#end
      }
#end
    }
  }
  var mine: array<vec4<f32>, FOURS>;
#repeat V FOURS
  {
    even[V] = scored(V, j, even[V]);
    odd[V] = scored(V, j + 1u, odd[V]);
    mine[V] = max(even[V], odd[V]);
  }
#end
  let largest = largest_of(lane, mine);
#repeat V FOURS
  {
    let one = select(vec4<f32>(), exp(even[V] - largest[V]), is_seen(V, j));
    let two = select(vec4<f32>(), exp(odd[V] - largest[V]), is_seen(V, j + 1u));
    scores[V * CHUNK + 2u * lane] = one;
    scores[V * CHUNK + 2u * lane + 1u] = two;
    mine[V] = one + two;
  }
#end
  let sum = sum_of(lane, mine);
  var found: array<vec4<f32>, 2u * FOURS>;
#repeat V FOURS
  {
    found[V] = largest[V];
    found[FOURS + V] = sum[V];
  }
#end
  return found;
}

// Sums the values of a chunk by the weights in `scores`. The lanes of the first strand return the result.
fn sum_up(lane: u32, table: u32, chunk: u32, low: u32, high: u32) -> array<vec4<f32>, N_QUERIES> {
  var part: array<vec4<f32>, N_QUERIES>;
#repeat I N_QUERIES
  {
    part[I] = vec4<f32>();
  }
#end
  let n_lanes = (p.head_dim + 3u) / 4u;
  let strand = lane / n_lanes;
  let d = lane % n_lanes * 4u;
  if (strand < p.strands) {
    let ahead = (strand + p.strands - (low - chunk) % p.strands) % p.strands;
    for (var j = low + ahead; j < high; j += p.strands) {
      let value = values_of(block_at(table, j, true), j % PAGE_LEN, d);
#repeat V FOURS
      {
        let share = scores[V * CHUNK + j - chunk];
#repeat E 4
        {
          part[4u * V + E] = fma(share, vec4<f32>(value[E]), part[4u * V + E]);
        }
#end
      }
#end
    }
  }
  for (var half = p.strands / 2u; half > 0u; half /= 2u) {
    // weights, or an earlier half, have been read
    workgroupBarrier();
    if (strand >= half && strand < 2u * half) {
#repeat I N_QUERIES
      {
        scores[I * (LANES / 2u) + lane - half * n_lanes] = part[I];
      }
#end
    }
    workgroupBarrier();
    if (strand < half) {
#repeat I N_QUERIES
      {
        part[I] += scores[I * (LANES / 2u) + lane];
      }
#end
    }
  }
  return part;
}

fn attend(lane: u32, table: u32, chunk: u32, low: u32, high: u32) {
  let found = weigh(lane, table, chunk, low, high);
  let part = sum_up(lane, table, chunk, low, high);
#repeat V FOURS
  {
    // queries that see nothing of the chunk are unchanged
    let stays = found[FOURS + V] == vec4<f32>();
    let now = max(most[V], found[V]);
    let old = exp(most[V] - now);
    let new_ = exp(found[V] - now);
    total[V] = select(fma(total[V], old, found[FOURS + V] * new_), total[V], stays);
#repeat E 4
    {
      sums[4u * V + E] =
        select(fma(sums[4u * V + E], old, part[4u * V + E] * new_), sums[4u * V + E], stays);
    }
#end
    most[V] = select(now, most[V], stays);
  }
#end
}

fn finish(lane: u32, part: u32) {
#repeat I N_QUERIES
  if (is_query(I)) {
    let at = row_of(I) * p.n_heads + head_of(I);
    let base = select(at * p.head_dim, (at * step.n_chunks + part) * (p.head_dim + 2u), p.is_part == 1u);
    let all = total[I / 4u][I % 4u];
#repeat E 4
    if (4u * lane + E < p.head_dim) {
      let sum = sums[I / 4u * 4u + E][I % 4u];
      out[base + 4u * lane + E] = select(sum / all, sum, p.is_part == 1u);
    }
#end
    if (p.is_part == 1u && lane == 0u) {
      out[base + p.head_dim] = most[I / 4u][I % 4u];
      out[base + p.head_dim + 1u] = all;
    }
  }
#end
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  kv_head = id.x / p.blocks;
  first_head = kv_head * p.group + id.x % p.blocks * p.heads;
  first_row = (id.z + p.first_group) * p.rows;
  begin(lane);
  workgroupBarrier();
  let end = min(first_row + p.rows, step.n_tokens);
  var is_empty = true;
  for (var row = first_row; row < end;) {
    let next = run_end(row, end);
    look(row, next);
    let first = seen(row).x;
    let last = seen(next - 1u).y;
    let table = rows[p.tables * step.stride + row];
    var chunk = first / CHUNK;
    var until = last / CHUNK + 1u;
    if (p.is_part == 1u) {
      chunk += id.y;
      until = min(until, chunk + 1u);
    }
    for (; chunk < until; chunk++) {
      let start = chunk * CHUNK;
      attend(lane, table, start, max(first, start), min(last + 1u, start + CHUNK));
      is_empty = false;
    }
    row = next;
  }
  if (!is_empty && lane < (p.head_dim + 3u) / 4u) {
    finish(lane, id.y);
  }
}
