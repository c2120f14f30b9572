// softmax(q·kᵀ · scale) · v of prompts by cooperative matrices of 16 × 16, over pages of keys and values in f16. A workgroup
// takes N_ROWS rows of one head, each of its subgroups 16 of them. It goes over the pages twice, first for the largest
// score of each row and the sum of its weights. So the weighted sums of values stay in matrices, which can't be scaled by
// row. The GPU chooses the order of additions.
enable f16;
enable wgpu_cooperative_matrix;
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
  // 0: none
  cap: f32,
  // 1: each head has a sink
  has_sinks: u32,
  // index of the first workgroup of the third dimension
  first_group: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, n_heads, HEAD_DIM)
@group(0) @binding(3) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> kv: array<vec4<f16>>;
// (n_heads)
@group(0) @binding(5) var<storage, read> sinks: array<f32>;
// (tokens, n_heads, HEAD_DIM)
@group(0) @binding(6) var<storage, read_write> out: array<vec4<f32>>;
#import visible

const HIDDEN: f32 = -3.4028234e38;
// vectors of a row of q, of scores and of shares; some more, so that lanes use different memory banks
const QUADS = HEAD_DIM / 4u;
const Q_PITCH = QUADS + 2u;
const SCORE_PITCH = PAGE_LEN / 4u + 1u;
const SHARE_PITCH = PAGE_LEN / 4u + 2u;
var<workgroup> queries: array<vec4<f16>, N_ROWS * Q_PITCH>;
// q·k of a page; later sums of values
var<workgroup> scores: array<vec4<f32>, N_ROWS * SCORE_PITCH>;
// weights of a page
var<workgroup> shares: array<vec4<f16>, N_ROWS * SHARE_PITCH>;
// first and last visible position of each row; none if the last precedes the first
var<workgroup> spans: array<vec2<u32>, N_ROWS>;

// q·kᵀ of a subgroup's rows and a page
fn multiply_keys(subgroup: u32, keys: u32) {
  var sums: array<coop_mat16x16<f32, C>, 2>;
  let at = subgroup * 16u;
#repeat D D_STEPS
  {
    let a = coopLoadT<coop_mat16x16<f16, A>>(&queries[at * Q_PITCH + D * 4u], Q_PITCH);
#repeat S 2
    sums[S] = coopMultiplyAdd(a, coopLoadT<coop_mat16x16<f16, B>>(&kv[keys + D * 16u * (PAGE_LEN / 4u) + S * 4u], PAGE_LEN / 4u), sums[S]);
#end
  }
#end
#repeat S 2
  coopStoreT(sums[S], &scores[at * SCORE_PITCH + S * 4u], SCORE_PITCH);
#end
}

// Four scores of a row from `position` on.
fn four_scores(row: u32, quad: u32, position: u32, span: vec2<u32>) -> vec4<f32> {
  var score = scores[row * SCORE_PITCH + quad] * p.scale;
  if (p.cap > 0.0) {
    score = vec4(soft_cap(score.x, p.cap), soft_cap(score.y, p.cap), soft_cap(score.z, p.cap), soft_cap(score.w, p.cap));
  }
  let at = vec4(position) + vec4(0u, 1u, 2u, 3u);
  return select(vec4(HIDDEN), score, (at >= vec4(span.x)) & (at <= vec4(span.y)));
}

fn bring_queries(lane: u32, head: u32, first_row: u32) {
  for (var i = 0u; i < Q_READS; i++) {
    let at = lane + i * LANES;
    let row = first_row + at / QUADS;
    var quad = vec4<f32>();
    if (row < step.n_tokens) {
      quad = q[(row * p.n_heads + head) * QUADS + at % QUADS];
    }
    queries[at / QUADS * Q_PITCH + at % QUADS] = vec4<f16>(clamp(quad, vec4(-65504.0), vec4(65504.0)));
  }
  if (lane < N_ROWS) {
    spans[lane] = vec2(1u, 0u);
    if (first_row + lane < step.n_tokens) {
      spans[lane] = seen(first_row + lane);
    }
  }
}

// The positions that any of the rows sees.
fn all_seen() -> vec2<u32> {
  var all = vec2(0xffffffffu, 0u);
  for (var i = 0u; i < N_ROWS; i++) {
    let span = spans[i];
    if (span.x <= span.y) {
      all = vec2(min(all.x, span.x), max(all.y, span.y));
    }
  }
  return all;
}

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) member: u32,
) {
  let lane = subgroup * 32u + member;
  let head = id.x;
  let first_row = (id.z + p.first_group) * N_ROWS;
  bring_queries(lane, head, first_row);
  workgroupBarrier();
  // two lanes share a row of scores
  let row = lane / 2u;
  let part = lane % 2u * 4u;
  let span = spans[row];
  let all = all_seen();
  let table = rows[p.tables * step.stride + first_row];
  let kv_head = head / p.group;
  let key_at = kv_head * p.key_words;
  let value_at = p.n_kv_heads * p.key_words + kv_head * p.value_words;
  var most = HIDDEN;
  var total = 0.0;
  if (p.has_sinks == 1u && part == 0u) {
    most = sinks[head];
    total = 1.0;
  }
  for (var page = all.x / PAGE_LEN; page <= all.y / PAGE_LEN; page++) {
    multiply_keys(subgroup, (rows[table + page] * p.page_words + key_at) / 2u);
    workgroupBarrier();
    var four: array<vec4<f32>, 4>;
    var largest = vec4(HIDDEN);
#repeat I 4
    four[I] = four_scores(row, part + I, page * PAGE_LEN + (part + I) * 4u, span);
    largest = max(largest, four[I]);
#end
    let now = max(most, max(max(largest.x, largest.y), max(largest.z, largest.w)));
    total *= exp(most - now);
#repeat I 4
    {
      let share = select(vec4<f32>(), exp(four[I] - now), four[I] > vec4(HIDDEN));
      total += share.x + share.y + share.z + share.w;
    }
#end
    most = now;
    workgroupBarrier();
  }
  let other = vec2(subgroupShuffleXor(most, 1u), subgroupShuffleXor(total, 1u));
  let largest = max(most, other.x);
  total = total * exp(most - largest) + other.y * exp(other.x - largest);
  var sums: array<coop_mat16x16<f32, C>, D_STEPS>;
  for (var page = all.x / PAGE_LEN; page <= all.y / PAGE_LEN; page++) {
    let at = rows[table + page] * p.page_words;
    multiply_keys(subgroup, (at + key_at) / 2u);
    workgroupBarrier();
#repeat I 4
    {
      let score = four_scores(row, part + I, page * PAGE_LEN + (part + I) * 4u, span);
      let share = select(vec4<f32>(), exp(score - largest), score > vec4(HIDDEN));
      shares[row * SHARE_PITCH + part + I] = vec4<f16>(share);
    }
#end
    workgroupBarrier();
    let values = (at + value_at) / 2u;
#repeat S 2
    {
      let a = coopLoadT<coop_mat16x16<f16, A>>(&shares[subgroup * 16u * SHARE_PITCH + S * 4u], SHARE_PITCH);
#repeat D D_STEPS
      sums[D] = coopMultiplyAdd(a, coopLoadT<coop_mat16x16<f16, B>>(&kv[values + S * 16u * QUADS + D * 4u], QUADS), sums[D]);
#end
    }
#end
  }
#repeat D D_STEPS
  workgroupBarrier();
  coopStoreT(sums[D], &scores[subgroup * 16u * SCORE_PITCH], SCORE_PITCH);
  workgroupBarrier();
  if (first_row + row < step.n_tokens) {
    let at = ((first_row + row) * p.n_heads + head) * QUADS + D * 4u + part / 2u;
    // a row that sees nothing gets zeros
    let factor = select(1.0 / total, 0.0, total == 0.0);
    out[at] = scores[row * SCORE_PITCH + part / 2u] * factor;
    out[at + 1u] = scores[row * SCORE_PITCH + part / 2u + 1u] * factor;
  }
#end
}
