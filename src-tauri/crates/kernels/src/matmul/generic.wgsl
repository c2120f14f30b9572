// x · Wᵀ + bias, for every format: the order of additions of an output depends on `k` alone. Element e of a row
// belongs to strand (e / 16) % STRANDS; a strand adds its elements up in rising order, then strands are added in
// pairs, half of them at a distance from the other half. Every kernel of products keeps to that order, so that a row
// gets the same bits alone (ONE_ROW) and among others, eight of which share a decoded weight.
#define STRANDS 16u
#define N_OUTPUTS 4u
#define N_ROWS 8u
// of a workgroup of one row: STRANDS for each of N_OUTPUTS
#define LANES 64
#ifdef LANES_128
#define LANES 128
#define N_OUTPUTS 8u
#endif
#ifdef LANES_256
#define LANES 256
#define N_OUTPUTS 16u
#endif
#import batch
struct Params {
  k: u32,
  // of all parts together
  n_out: u32,
  row_words: u32,
  // rows of the matrix that are in this part
  first: u32,
  n_rows: u32,
  has_bias: u32,
  // 1: rows of x are outputs, 0: tokens
  of_outputs: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, k)
#ifdef WHOLE
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
#else
@group(0) @binding(2) var<storage, read> x: array<f32>;
#endif
@group(0) @binding(3) var<storage, read> w: array<u32>;
// (n_out)
@group(0) @binding(4) var<storage, read> bias: array<f32>;
// (rows, n_out)
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
#import weight

#ifdef ONE_ROW
// Each lane has two outputs, for which it reads x once.
var<workgroup> pieces: array<vec2<f32>, LANES>;

fn four(sum: vec2<f32>, a: vec4<f32>, b: vec4<f32>, x: vec4<f32>) -> vec2<f32> {
  var s = fma(vec2(a.x, b.x), vec2(x.x), sum);
  s = fma(vec2(a.y, b.y), vec2(x.y), s);
  s = fma(vec2(a.z, b.z), vec2(x.z), s);
  return fma(vec2(a.w, b.w), vec2(x.w), s);
}

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let strand = lane % STRANDS;
  let output = (flat(id, groups) * N_OUTPUTS + lane / STRANDS) * 2u;
  var sum = vec2<f32>();
  if (output < p.n_rows) {
    let one = output * p.row_words;
    let two = min(output + 1u, p.n_rows - 1u) * p.row_words;
    for (var segment = strand; segment * 16u < p.k; segment += STRANDS) {
      let a = weights16(one, segment);
      let b = weights16(two, segment);
      sum = four(sum, a[0], b[0], x[segment * 4u]);
      sum = four(sum, a[1], b[1], x[segment * 4u + 1u]);
      sum = four(sum, a[2], b[2], x[segment * 4u + 2u]);
      sum = four(sum, a[3], b[3], x[segment * 4u + 3u]);
    }
  }
  pieces[lane] = sum;
  workgroupBarrier();
  for (var n = STRANDS / 2u; n > 0u; n /= 2u) {
    if (strand < n) {
      pieces[lane] += pieces[lane + n];
    }
    workgroupBarrier();
  }
  if (strand < 2u && output + strand < p.n_rows) {
    let at = p.first + output + strand;
    var y = pieces[lane - strand][strand];
    if (p.has_bias == 1u) {
      y += bias[at];
    }
    out[at] = y;
  }
}
#else
struct Sums {
  // of rows 0 to 3, and 4 to 7
  a: vec4<f32>,
  b: vec4<f32>,
}
var<workgroup> low: array<vec4<f32>, 64>;
var<workgroup> high: array<vec4<f32>, 64>;

#ifdef WHOLE
// The next four elements of all rows: those of x begin at `a` and `b`, counted in fours.
fn four(sums: Sums, w: vec4<f32>, a: vec4<u32>, b: vec4<u32>) -> Sums {
  let x0 = x[a.x];
  let x1 = x[a.y];
  let x2 = x[a.z];
  let x3 = x[a.w];
  let x4 = x[b.x];
  let x5 = x[b.y];
  let x6 = x[b.z];
  let x7 = x[b.w];
  var s = sums;
  s.a = fma(vec4(w.x), vec4(x0.x, x1.x, x2.x, x3.x), s.a);
  s.b = fma(vec4(w.x), vec4(x4.x, x5.x, x6.x, x7.x), s.b);
  s.a = fma(vec4(w.y), vec4(x0.y, x1.y, x2.y, x3.y), s.a);
  s.b = fma(vec4(w.y), vec4(x4.y, x5.y, x6.y, x7.y), s.b);
  s.a = fma(vec4(w.z), vec4(x0.z, x1.z, x2.z, x3.z), s.a);
  s.b = fma(vec4(w.z), vec4(x4.z, x5.z, x6.z, x7.z), s.b);
  s.a = fma(vec4(w.w), vec4(x0.w, x1.w, x2.w, x3.w), s.a);
  s.b = fma(vec4(w.w), vec4(x4.w, x5.w, x6.w, x7.w), s.b);
  return s;
}
#endif

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let strand = lane % STRANDS;
  let output = flat(id, groups) * N_OUTPUTS + lane / STRANDS;
  let n_rows = select(step.n_tokens, step.n_outputs, p.of_outputs == 1u);
  let row = id.z * N_ROWS;
  // rows that are not there are computed as the last one is, and not written
  let last = vec4(n_rows - 1u);
  let one = min(vec4(row) + vec4(0u, 1u, 2u, 3u), last) * p.k;
  let two = min(vec4(row) + vec4(4u, 5u, 6u, 7u), last) * p.k;
  var sums = Sums(vec4<f32>(), vec4<f32>());
  if (output < p.n_rows) {
    for (var segment = strand; segment * 16u < p.k; segment += STRANDS) {
#ifdef WHOLE
      let part = weights16(output * p.row_words, segment);
      let a = one / 4u + segment * 4u;
      let b = two / 4u + segment * 4u;
      sums = four(sums, part[0], a, b);
      sums = four(sums, part[1], a + 1u, b + 1u);
      sums = four(sums, part[2], a + 2u, b + 2u);
      sums = four(sums, part[3], a + 3u, b + 3u);
#else
      var part = weights16(output * p.row_words, segment);
      let first = segment * 16u;
      let n = min(16u, p.k - first);
      for (var i = 0u; i < n; i++) {
        let a = one + first + i;
        let b = two + first + i;
        let weight = vec4(part[i / 4u][i % 4u]);
        sums.a = fma(weight, vec4(x[a.x], x[a.y], x[a.z], x[a.w]), sums.a);
        sums.b = fma(weight, vec4(x[b.x], x[b.y], x[b.z], x[b.w]), sums.b);
      }
#endif
    }
  }
  low[lane] = sums.a;
  high[lane] = sums.b;
  workgroupBarrier();
  for (var n = STRANDS / 2u; n > 0u; n /= 2u) {
    if (strand < n) {
      low[lane] += low[lane + n];
      high[lane] += high[lane + n];
    }
    workgroupBarrier();
  }
  if (output < p.n_rows && strand < N_ROWS && row + strand < n_rows) {
    let at = p.first + output;
    var y = select(high[lane - strand][strand % 4u], low[lane - strand][strand % 4u], strand < 4u);
    if (p.has_bias == 1u) {
      y += bias[at];
    }
    out[(row + strand) * p.n_out + at] = y;
  }
}
#endif
