// out[j] = base[j] + Σ factors[j, i] · x[i], for groups of columns
#import batch
struct Params {
  // columns of a row of the result
  n: u32,
  width: u32,
  // groups of x
  m: u32,
  // from one row's factors to the next; 0: all rows have the same
  stride: u32,
}
@group(0) @binding(1) var<uniform> p: Params;
// (rows, n)
@group(0) @binding(2) var<storage, read> base: array<f32>;
// (rows, m, width)
@group(0) @binding(3) var<storage, read> x: array<f32>;
// (rows or 1, n / width, m)
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.n) {
    return;
  }
  let at = id.z * p.n + id.x;
  let first = id.z * p.stride + id.x / p.width * p.m;
  let column = id.z * p.m * p.width + id.x % p.width;
  var sum = base[at];
  for (var i = 0u; i < p.m; i++) {
    sum = fma(factors[first + i], x[column + i * p.width], sum);
  }
  out[at] = sum;
}
