// softmax(q·kᵀ · scale) · v over paged keys and values. A workgroup takes several queries of one KV head, in groups of
// four, through keys and values together. They are the query heads that share the KV head, of one row or of several.
//
// Positions are split at absolute multiples of CHUNK. Each chunk has its own softmax, and chunks are merged in rising
// order: here, or with one workgroup per chunk by `attention/merge.wgsl` in the same way. Within a chunk the order of
// sums depends on positions alone. So the result of a row depends only on its position.
//
// Few workgroups run for one row, and each executes its code once: it waits for instructions more than for anything else.
// Therefore the constants of `lanes.rs` leave out what a model has no use for, and work that is small is spread over lanes
// instead of being repeated for every query.
#define LANES 256u
#define CHUNK 256u
// groups of four queries at a time
#ifdef EIGHT
#define FOURS 2u
#define N_QUERIES 8u
#define HALF_OF_QUERIES 4u
#else
#define FOURS 1u
#define N_QUERIES 4u
#define HALF_OF_QUERIES 2u
#endif
#import batch
#import exp
struct Params {
  n_heads: u32,
  // query heads that share keys and values
  group: u32,
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
  // where CAPPED is 1
  cap: f32,
  // query heads per workgroup, and workgroups per KV head
  heads: u32,
  blocks: u32,
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
const NOTHING = 0xffffffffu;
const PAGES_OF_CHUNK = CHUNK / PAGE_LEN;
const N_PAIRS = CHUNK / 2u;
const N_QUADS = (HEAD_DIM + 3u) / 4u;
// (4 · N_QUADS, FOURS)
var<workgroup> query: array<vec4<f32>, N_QUADS * N_QUERIES>;
// (FOURS, CHUNK); also sums passed between lanes
var<workgroup> scores: array<vec4<f32>, FOURS * CHUNK>;
// row, head and offset in q of each query; NOTHING: no query
var<workgroup> row_of: array<u32, N_QUERIES>;
var<workgroup> head_of: array<u32, N_QUERIES>;
var<workgroup> offset_of: array<u32, N_QUERIES>;
// visible positions of each query, first and last: none if the last precedes the first
var<workgroup> firsts: array<u32, N_QUERIES>;
var<workgroup> lasts: array<u32, N_QUERIES>;
// largest score, then sum of weights of each query
var<workgroup> states: array<vec4<f32>, 2u * FOURS>;
// blocks of this KV head in the pages of a chunk: keys, then values
var<workgroup> blocks: array<u32, 2u * PAGES_OF_CHUNK>;

// state of all chunks so far
var<private> most: array<vec4<f32>, FOURS>;
var<private> total: array<vec4<f32>, FOURS>;
// (FOURS, elements of this lane)
var<private> sums: array<vec4<f32>, N_QUERIES>;

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

// Returns element d of query i; 0 where there is none.
fn element(i: u32, d: u32) -> f32 {
  if (offset_of[i] == NOTHING || d >= HEAD_DIM) {
    return 0.0;
  }
  return q[offset_of[i] + d];
}

fn begin(lane: u32, id: vec3<u32>) {
  if (lane < N_QUERIES) {
    let kv_head = id.x / p.blocks;
    let head = kv_head * p.group + id.x % p.blocks * p.heads + lane % p.heads;
    let row = (id.z + p.first_group) * N_ROWS + lane / p.heads;
    let is_query = lane < p.heads * N_ROWS && row < step.n_tokens && head < (kv_head + 1u) * p.group;
    row_of[lane] = row;
    head_of[lane] = min(head, p.n_heads - 1u);
    offset_of[lane] = select(NOTHING, (row * p.n_heads + head) * HEAD_DIM, is_query);
  }
  workgroupBarrier();
  for (var at = lane; at < N_QUADS * N_QUERIES; at += LANES) {
    let d = at / FOURS;
    let i = at % FOURS * 4u;
    query[at] = vec4(element(i, d), element(i + 1u, d), element(i + 2u, d), element(i + 3u, d));
  }
#repeat V FOURS
  {
    most[V] = vec4<f32>(HIDDEN);
    total[V] = vec4<f32>();
    if (HAS_SINKS == 1u && IS_PART == 0u) {
#repeat C 4
      {
        most[V][C] = sinks[head_of[4u * V + C]];
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
fn look(lane: u32, row: u32, end: u32) {
  // the positions of earlier rows have been read
  workgroupBarrier();
  if (lane < N_QUERIES) {
    var span = vec2<u32>(1u, 0u);
    if (offset_of[lane] != NOTHING && row_of[lane] >= row && row_of[lane] < end) {
      span = seen(row_of[lane]);
    }
    firsts[lane] = span.x;
    lasts[lane] = span.y;
  }
}

fn is_seen(v: u32, position: u32) -> vec4<bool> {
  let i = 4u * v;
  let first = vec4(firsts[i], firsts[i + 1u], firsts[i + 2u], firsts[i + 3u]);
  let last = vec4(lasts[i], lasts[i + 1u], lasts[i + 2u], lasts[i + 3u]);
  return (vec4(position) >= first) & (vec4(position) <= last);
}

fn scored(v: u32, position: u32, product: vec4<f32>) -> vec4<f32> {
  var score = product * p.scale;
  if (CAPPED == 1u) {
    score = vec4(soft_cap(score.x, p.cap), soft_cap(score.y, p.cap), soft_cap(score.z, p.cap), soft_cap(score.w, p.cap));
  }
  return select(vec4<f32>(HIDDEN), score, is_seen(v, position));
}

// Finds the blocks of a KV head in the pages of a chunk up to position `high`.
fn find_blocks(lane: u32, kv_head: u32, table: u32, chunk: u32, high: u32) {
  // those of an earlier chunk have been read
  workgroupBarrier();
  let number = lane % PAGES_OF_CHUNK;
  if (lane < 2u * PAGES_OF_CHUNK && chunk + number * PAGE_LEN < high) {
    let is_value = lane >= PAGES_OF_CHUNK;
    let page = rows[table + chunk / PAGE_LEN + number];
    let of_value = p.n_kv_heads * p.key_words + kv_head * p.value_words;
    var block = page * p.page_words + select(kv_head * p.key_words, of_value, is_value);
#ifdef REQUANTIZED
    if (page >= p.n_exact) {
      let nth = kv_head + select(0u, p.n_kv_heads, is_value);
      block = p.first_requantized + ((page - p.n_exact) * 2u * p.n_kv_heads + nth) * p.requantized_block_words;
    }
#endif
    blocks[lane] = block;
  }
  workgroupBarrier();
}

fn keys_of(block: u32, slot: u32, d: u32) -> Keys {
#ifdef REQUANTIZED
  if (block >= p.first_requantized) {
    return keys_of_bytes(block, HEAD_DIM, slot, d);
  }
#endif
  return keys_at(block, HEAD_DIM, slot, d);
}

fn values_of(block: u32, slot: u32, d: u32) -> vec4<f32> {
#ifdef REQUANTIZED
  if (block >= p.first_requantized) {
    return values_of_bytes(block, HEAD_DIM, slot, d);
  }
#endif
  return values_at(block, HEAD_DIM, slot, d);
}

// Computes the softmax weights of positions `low..high` of a chunk into `scores`. Returns the largest score and the sum of
// weights of each query. Two lanes share a pair of positions: each multiplies half of the elements by both, and then takes
// one of them.
fn weigh(lane: u32, chunk: u32, low: u32, high: u32) -> array<vec4<f32>, 2u * FOURS> {
  let pair = lane % N_PAIRS;
  let second = lane / N_PAIRS;
  let j = chunk + 2u * pair;
  var even: array<vec4<f32>, FOURS>;
  var odd: array<vec4<f32>, FOURS>;
#repeat V FOURS
  {
    even[V] = vec4<f32>();
    odd[V] = vec4<f32>();
  }
#end
  if (j + 1u >= low && j < high) {
    let block = blocks[2u * pair / PAGE_LEN];
    let middle = (N_QUADS + 1u) / 2u * 4u;
    let end = select(middle, HEAD_DIM, second == 1u);
    for (var d = middle * second; d < end; d += 4u) {
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
#repeat V FOURS
  scores[V * CHUNK + lane] = select(odd[V], even[V], second == 1u);
#end
  workgroupBarrier();
  var mine: array<vec4<f32>, FOURS>;
  let position = j + second;
#repeat V FOURS
  {
    let other = scores[V * CHUNK + (lane ^ N_PAIRS)];
    mine[V] = scored(V, position, other + select(even[V], odd[V], second == 1u));
  }
#end
  let largest = largest_of(lane, mine);
#repeat V FOURS
  {
    mine[V] = select(vec4<f32>(), exp(mine[V] - largest[V]), is_seen(V, position));
    scores[V * CHUNK + 2u * pair + second] = mine[V];
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
fn sum_up(lane: u32, chunk: u32, low: u32, high: u32) -> array<vec4<f32>, N_QUERIES> {
  var part: array<vec4<f32>, N_QUERIES>;
#repeat I N_QUERIES
  {
    part[I] = vec4<f32>();
  }
#end
  let strand = lane / N_QUADS;
  let d = lane % N_QUADS * 4u;
  if (strand < STRANDS) {
    let ahead = (strand + STRANDS - (low - chunk) % STRANDS) % STRANDS;
    for (var j = low - chunk + ahead; j < high - chunk; j += STRANDS) {
      let value = values_of(blocks[PAGES_OF_CHUNK + j / PAGE_LEN], j % PAGE_LEN, d);
#repeat V FOURS
      {
        let share = scores[V * CHUNK + j];
#repeat E 4
        {
          part[4u * V + E] = fma(share, vec4<f32>(value[E]), part[4u * V + E]);
        }
#end
      }
#end
    }
  }
  for (var half = STRANDS / 2u; half > 0u; half /= 2u) {
    // memory holds the sums of half of the queries
#repeat H 2
    // weights, or earlier sums, have been read
    workgroupBarrier();
    if (strand >= half && strand < 2u * half) {
#repeat I HALF_OF_QUERIES
      {
        scores[I * (LANES / 2u) + lane - half * N_QUADS] = part[H * HALF_OF_QUERIES + I];
      }
#end
    }
    workgroupBarrier();
    if (strand < half) {
#repeat I HALF_OF_QUERIES
      {
        part[H * HALF_OF_QUERIES + I] += scores[I * (LANES / 2u) + lane];
      }
#end
    }
#end
  }
  return part;
}

fn attend(lane: u32, chunk: u32, low: u32, high: u32) {
  let found = weigh(lane, chunk, low, high);
  let part = sum_up(lane, chunk, low, high);
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

// Writes the results of all queries: of the chunk `part`, or of all chunks.
fn finish(lane: u32, part: u32) {
  if (lane < N_QUADS) {
#repeat V FOURS
#repeat E 4
    query[(4u * lane + E) * FOURS + V] = sums[4u * V + E];
#end
#end
  }
  if (lane == 0u) {
#repeat V FOURS
    states[V] = most[V];
    states[FOURS + V] = total[V];
#end
  }
  workgroupBarrier();
  let width = HEAD_DIM + IS_PART * 2u;
  for (var at = lane; at < N_QUERIES * width; at += LANES) {
    let i = at / width;
    let d = at % width;
    if (offset_of[i] == NOTHING) {
      continue;
    }
    let all = states[FOURS + i / 4u][i % 4u];
    if (IS_PART == 0u) {
      out[offset_of[i] + d] = query[d * FOURS + i / 4u][i % 4u] / all;
    } else {
      var value = select(all, states[i / 4u][i % 4u], d == HEAD_DIM);
      if (d < HEAD_DIM) {
        value = query[d * FOURS + i / 4u][i % 4u];
      }
      out[(offset_of[i] / HEAD_DIM * step.n_chunks + part) * width + d] = value;
    }
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  begin(lane, id);
  let first_row = (id.z + p.first_group) * N_ROWS;
  let end = min(first_row + N_ROWS, step.n_tokens);
  var is_empty = true;
  for (var row = first_row; row < end;) {
    let next = run_end(row, end);
    look(lane, row, next);
    let first = seen(row).x;
    let last = seen(next - 1u).y;
    let table = rows[p.tables * step.stride + row];
    var chunk = first / CHUNK;
    var until = last / CHUNK + 1u;
    if (IS_PART == 1u) {
      chunk += id.y;
      until = min(until, chunk + 1u);
    }
    for (; chunk < until; chunk++) {
      let start = chunk * CHUNK;
      let low = max(first, start);
      let high = min(last + 1u, start + CHUNK);
      find_blocks(lane, id.x / p.blocks, table, start, high);
      attend(lane, start, low, high);
      is_empty = false;
    }
    row = next;
  }
  if (!is_empty) {
    finish(lane, id.y);
  }
}
