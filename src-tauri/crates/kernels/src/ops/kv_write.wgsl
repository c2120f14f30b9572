// store[position] = (k, v): one lane per LEN elements of a head, keys or values. Neighbouring slots of keys share words, so
// words are combined by bit operations, and each lane changes only its own bits. For `plan/rope_kv_write.wgsl` keys, and
// queries beside them, are rotated first; for `plan/norm_rope_kv_write.wgsl` also normed, with one workgroup per head.
#ifdef K_F32
#define HAS_F32
#endif
#ifdef V_F32
#define HAS_F32
#endif
#ifdef K_F16
#define HAS_F16
#endif
#ifdef V_F16
#define HAS_F16
#endif
#ifdef K_Q8_0
#define HAS_Q8_0
#define QUANTS
#endif
#ifdef V_Q8_0
#define HAS_Q8_0
#define QUANTS
#endif
#ifdef K_Q4_0
#define HAS_Q4_0
#define QUANTS
#endif
#ifdef V_Q4_0
#define HAS_Q4_0
#define QUANTS
#endif
#import batch
#ifdef NORMED
#define LANES 128u
#import dot
#endif
struct Params {
  n_heads: u32,
  head_dim: u32,
  // words of the keys and of the values of one head in one page
  key_words: u32,
  value_words: u32,
  page_words: u32,
  // PAGES or WINDOW_PAGES
  pages: u32,
#ifdef ROTATES
  // query heads; 0: no queries
  n_q_heads: u32,
  // rotated pairs of a head
  n_pairs: u32,
  // 1: pairs (2i, 2i + 1), 0: (i, i + n_pairs)
  interleaved: u32,
  // pairs of a row before those of this rotation
  first_angle: u32,
#endif
#ifdef NORMED
  eps: f32,
#endif
}
@group(0) @binding(1) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
// (tokens, n_heads, head_dim)
@group(0) @binding(3) var<storage, read> k: array<f32>;
@group(0) @binding(4) var<storage, read> v: array<f32>;
@group(0) @binding(5) var<storage, read_write> kv: array<atomic<u32>>;

#ifdef ROTATES
// (tokens, n_q_heads, head_dim)
@group(0) @binding(6) var<storage, read> q: array<f32>;
// (tokens, n_heads, head_dim) rotated
@group(0) @binding(7) var<storage, read_write> k_out: array<f32>;
@group(0) @binding(8) var<storage, read_write> q_out: array<f32>;

#ifdef NORMED
// (2, head_dim) norm weights including offsets: of queries, of keys
@group(0) @binding(9) var<storage, read> norms: array<f32>;
// 1 / √(mean(x²) + eps) of the workgroup's head
var<private> factor: f32;

fn key_at(origin: u32, d: u32) -> f32 {
  return k[origin + d] * factor * norms[p.head_dim + d];
}
fn query_at(origin: u32, d: u32) -> f32 {
  return q[origin + d] * factor * norms[d];
}
#else
fn key_at(origin: u32, d: u32) -> f32 {
  return k[origin + d];
}
fn query_at(origin: u32, d: u32) -> f32 {
  return q[origin + d];
}
#endif

// The pair of an element, and whether it is its second member. None: the element is not rotated.
fn is_turned(d: u32) -> bool {
  return d < 2u * p.n_pairs;
}
fn pair_of(d: u32) -> u32 {
  return select(d % p.n_pairs, d / 2u, p.interleaved == 1u);
}
fn one_of(pair: u32) -> u32 {
  return select(pair, 2u * pair, p.interleaved == 1u);
}
fn two_of(pair: u32) -> u32 {
  return one_of(pair) + select(p.n_pairs, 1u, p.interleaved == 1u);
}
fn angle_of(row: u32, pair: u32) -> vec2<f32> {
  // (tokens, n_pairs) cosine and sine
  let at = step.angles + 2u * (p.first_angle * step.n_tokens + row * p.n_pairs + pair);
  return vec2(bitcast<f32>(rows[at]), bitcast<f32>(rows[at + 1u]));
}
fn key(row: u32, origin: u32, d: u32) -> f32 {
  if (!is_turned(d)) {
    return key_at(origin, d);
  }
  let pair = pair_of(d);
  let turn = angle_of(row, pair);
  let a = key_at(origin, one_of(pair));
  let b = key_at(origin, two_of(pair));
  return select(a * turn.x - b * turn.y, a * turn.y + b * turn.x, d == two_of(pair));
}
// Rotates a pair of the query head at `origin`, or copies one of the elements after the pairs.
fn turn_query(row: u32, origin: u32, i: u32) {
  if (i >= p.n_pairs) {
    q_out[origin + p.n_pairs + i] = query_at(origin, p.n_pairs + i);
    return;
  }
  let turn = angle_of(row, i);
  let a = query_at(origin, one_of(i));
  let b = query_at(origin, two_of(i));
  q_out[origin + one_of(i)] = a * turn.x - b * turn.y;
  q_out[origin + two_of(i)] = a * turn.y + b * turn.x;
}
#else
fn key(row: u32, origin: u32, d: u32) -> f32 {
  return k[origin + d];
}
#endif

fn element(is_value: bool, row: u32, origin: u32, d: u32) -> f32 {
  if (is_value) {
    return v[origin + d];
  }
  let x = key(row, origin, d);
#ifdef ROTATES
  k_out[origin + d] = x;
#endif
  return x;
}

#ifdef QUANTS
const LEN = 32u;
#else
const LEN = 2u;
#endif

fn put(word: u32, shift: u32, n_bits: u32, bits: u32) {
  let mask = ((1u << n_bits) - 1u) << shift;
  atomicAnd(&kv[word], ~mask);
  atomicOr(&kv[word], (bits << shift) & mask);
}

fn put_half(block: u32, half: u32, bits: u32) {
  put(block + half / 2u, half % 2u * 16u, 16u, bits);
}

// The f16 nearest to x, ties to even. (The rounding of `pack2x16float` depends on the device.)
fn half_of(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size >= 0x7f800000u) {
    return sign | select(0x7c00u, 0x7e00u, size > 0x7f800000u);
  }
  if (size >= 0x477ff000u) {
    return sign | 0x7c00u;
  }
  if (size < 0x38800000u) {
    // subnormal: round to a multiple of 2^−24 by adding a number with that last place
    let counted = bitcast<u32>(bitcast<f32>(size) + 0.5) - 0x3f000000u;
    return sign | counted;
  }
  let even = (size >> 13u) & 1u;
  return sign | ((size - 0x38000000u + 0xfffu + even) >> 13u);
}

var<private> x: array<f32, LEN>;

#ifdef QUANTS
fn inverse_of(scale: f32) -> f32 {
  return select(0.0, 1.0 / scale, scale != 0.0);
}
#endif

#ifdef QUANTS
fn largest_size() -> f32 {
  var largest = 0.0;
  for (var i = 0u; i < LEN; i++) {
    largest = max(largest, abs(x[i]));
  }
  return largest;
}
#endif

// Below, `slot` is the row's slot of its page, and `first` the head's element that x begins with.
#ifdef HAS_F32
fn store_f32(block: u32, slot: u32, first: u32, is_value: bool) {
  for (var i = 0u; i < min(LEN, p.head_dim - first); i++) {
    let d = first + i;
    let at = select(d * PAGE_LEN + slot, slot * p.head_dim + d, is_value);
    atomicStore(&kv[block + at], bitcast<u32>(x[i]));
  }
}
#endif

#ifdef HAS_F16
fn store_f16(block: u32, slot: u32, first: u32, is_value: bool) {
  for (var i = 0u; i < min(LEN, p.head_dim - first); i++) {
    let d = first + i;
    put_half(block, select(d * PAGE_LEN + slot, slot * p.head_dim + d, is_value), half_of(x[i]));
  }
}
#endif

#ifdef HAS_Q8_0
fn store_q8_0(block: u32, slot: u32, first: u32, is_value: bool) {
  let exact = largest_size() / 127.0;
  put_half(block + p.head_dim * PAGE_LEN / 4u, first / LEN * PAGE_LEN + slot, half_of(exact));
  let inverse = inverse_of(exact);
  for (var i = 0u; i < LEN; i++) {
    let d = first + i;
    let y = x[i] * inverse;
    // ties round away from zero
    let q = bitcast<u32>(i32(sign(y) * floor(abs(y) + 0.5)));
    let at = select((d / 2u * PAGE_LEN + slot) * 2u + d % 2u, slot * p.head_dim + d, is_value);
    put(block + at / 4u, at % 4u * 8u, 8u, q);
  }
}
#endif

#ifdef HAS_Q4_0
fn nearest(x: f32) -> f32 {
  return round(clamp(x, -8.0, 7.0));
}

// Σxq and Σqq for a scale, in the host's order of addition
fn sums(scale: f32) -> vec2<f32> {
  let inverse = inverse_of(scale);
  var xq = vec4<f32>();
  var qq = vec4<f32>();
  for (var i = 0u; i < LEN; i += 4u) {
    let four = vec4(x[i], x[i + 1u], x[i + 2u], x[i + 3u]);
    let q = vec4(nearest(four.x * inverse), nearest(four.y * inverse), nearest(four.z * inverse), nearest(four.w * inverse));
    xq += four * q;
    qq += q * q;
  }
  return vec2(xq.x + xq.y + (xq.z + xq.w), qq.x + qq.y + (qq.z + qq.w));
}

var<private> gain: f32;
var<private> best: f32;

fn refine(scale: f32, rounds: u32) {
  var at = scale;
  for (var i = 0u; i < rounds; i++) {
    let sum = sums(at);
    if (sum.y <= 0.0) {
      return;
    }
    at = sum.x / sum.y;
    if (sum.x * at > gain) {
      gain = sum.x * at;
      best = at;
    }
  }
}

// The scale with the least squared error, as the crate `weights` computes it.
fn scale_of_q4_0() -> f32 {
  let largest = largest_size();
  gain = 0.0;
  best = 0.0;
  if (!(largest > 0.0 && largest < 3.4e38)) {
    return 0.0;
  }
  for (var candidate = -6; candidate <= 6; candidate++) {
    let scale = largest / (8.0 + f32(candidate) * 0.2);
    refine(-scale, 1u);
    refine(scale, 1u);
  }
  refine(best, 3u);
  return best;
}

fn store_q4_0(block: u32, slot: u32, first: u32, is_value: bool) {
  let scale = half_of(scale_of_q4_0());
  put_half(block + p.head_dim * PAGE_LEN / 8u, first / LEN * PAGE_LEN + slot, scale);
  let inverse = inverse_of(unpack2x16float(scale).x);
  for (var i = 0u; i < LEN; i++) {
    let d = first + i;
    let q = u32(nearest(x[i] * inverse) + 8.0);
    let key = (d / 4u * PAGE_LEN + slot) * 2u + d % 2u;
    let value = (slot * p.head_dim + d / 32u * 32u) / 2u + d % 16u;
    let shift = select(d / 2u % 2u * 4u, d / 16u % 2u * 4u, is_value);
    let at = select(key, value, is_value);
    put(block + at / 4u, at % 4u * 8u + shift, 4u, q);
  }
}
#endif

// Stores LEN elements of a head from `first` on, keys or values.
fn store(row: u32, head: u32, is_value: bool, first: u32) {
  let slot = rows[POSITIONS * step.stride + row] % PAGE_LEN;
  let page = rows[p.pages * step.stride + row] * p.page_words;
  let origin = (row * p.n_heads + head) * p.head_dim;
  for (var i = 0u; i < min(LEN, p.head_dim - first); i++) {
    x[i] = element(is_value, row, origin, first + i);
  }
  if (is_value) {
    let block = page + p.n_heads * p.key_words + head * p.value_words;
#ifdef V_F32
    store_f32(block, slot, first, true);
#endif
#ifdef V_F16
    store_f16(block, slot, first, true);
#endif
#ifdef V_Q8_0
    store_q8_0(block, slot, first, true);
#endif
#ifdef V_Q4_0
    store_q4_0(block, slot, first, true);
#endif
    return;
  }
  let block = page + head * p.key_words;
#ifdef K_F32
  store_f32(block, slot, first, false);
#endif
#ifdef K_F16
  store_f16(block, slot, first, false);
#endif
#ifdef K_Q8_0
  store_q8_0(block, slot, first, false);
#endif
#ifdef K_Q4_0
  store_q4_0(block, slot, first, false);
#endif
}

fn n_pieces() -> u32 {
  return (p.head_dim + LEN - 1u) / LEN;
}

#ifdef NORMED
// The norm factor of an element of queries or keys; values are not normed.
fn element_of(is_query: bool, origin: u32, d: u32) -> f32 {
  if (is_query) {
    return q[origin + d];
  }
  return k[origin + d];
}

// Heads of queries, then of keys, then of values. Squares are summed in the order of `ops/rms_norm.wgsl`.
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) id: vec3<u32>, LANE_BUILTINS) {
  let lane = LANE;
  let row = id.z;
  let is_query = id.x < p.n_q_heads;
  let is_value = id.x >= p.n_q_heads + p.n_heads;
  let of_store = (id.x - p.n_q_heads) % p.n_heads;
  let head = select(of_store, id.x, is_query);
  let origin = (row * select(p.n_heads, p.n_q_heads, is_query) + head) * p.head_dim;
  var sum = 0.0;
  if (!is_value) {
    for (var d = lane; d < p.head_dim; d += LANES) {
      let v = element_of(is_query, origin, d);
      sum = fma(v, v, sum);
    }
  }
  factor = 1.0 / sqrt(sum_lanes(lane, sum) / f32(p.head_dim) + p.eps);
  if (is_query) {
    for (var i = lane; i < p.head_dim - p.n_pairs; i += LANES) {
      turn_query(row, origin, i);
    }
    return;
  }
  for (var piece = lane; piece < n_pieces(); piece += LANES) {
    store(row, head, is_value, piece * LEN);
  }
}
#else
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let n_lanes = 2u * p.n_heads * n_pieces();
  if (id.x >= n_lanes) {
#ifdef ROTATES
    let at = id.x - n_lanes;
    let per_head = p.head_dim - p.n_pairs;
    if (at < p.n_q_heads * per_head) {
      turn_query(id.z, (id.z * p.n_q_heads + at / per_head) * p.head_dim, at % per_head);
    }
#endif
    return;
  }
  let piece = id.x / 2u;
  store(id.z, piece / n_pieces(), id.x % 2u == 1u, piece % n_pieces() * LEN);
}
#endif
