// Operands of a product, and the reduction of the partial sums of neighbouring lanes: see `partial_sums.rs`.
#ifdef HALVES
alias Quad = vec4<f16>;

// Saturates to the range of f16. It must clamp after the conversion: NVIDIA's compiler drops a conversion to f16 that is
// only converted back. Few rows would be multiplied unrounded, and many rows, which pass through memory, rounded.
fn operand(x: vec4<f32>) -> Quad {
  return clamp(vec4<f16>(x), vec4<f16>(-65504.0h), vec4<f16>(65504.0h));
}
#else
alias Quad = vec4<f32>;

fn operand(x: vec4<f32>) -> Quad {
  return x;
}
#endif

// Returns four elements of a row of x, which has p.k of them.
#ifdef WHOLE
fn x_floats(row: u32, quad: u32) -> vec4<f32> {
  return x[row * (p.k / 4u) + quad];
}
#else
fn x_element(row: u32, at: u32) -> f32 {
  return select(0.0, x[row * p.k + min(at, p.k - 1u)], at < p.k);
}

fn x_floats(row: u32, quad: u32) -> vec4<f32> {
  let at = quad * 4u;
  return vec4(x_element(row, at), x_element(row, at + 1u), x_element(row, at + 2u), x_element(row, at + 3u));
}
#endif

fn x_quad(row: u32, quad: u32) -> Quad {
  return operand(x_floats(row, quad));
}

#ifndef TILED
fn multiply_add4(sum: f32, a: Quad, b: Quad) -> f32 {
  let w = vec4<f32>(a);
  let x = vec4<f32>(b);
  return fma(w.w, x.w, fma(w.z, x.z, fma(w.y, x.y, fma(w.x, x.x, sum))));
}

#ifdef PIECES
var<workgroup> shared_sums: array<f32, LANES * SUMS>;
#endif

// Adds the partial sums of PARTIAL_SUMS lanes; all of these lanes get the result. Every lane of the workgroup must
// call it.
fn add_partial_sums(lane: u32, sums: ptr<function, array<f32, SUMS>>) {
#ifdef SUBGROUPS
#repeat STEP SHUFFLES
#repeat S SUMS
  (*sums)[S] += subgroupShuffleXor((*sums)[S], 1u << STEP);
#end
#end
#endif
#ifdef PIECES
  for (var n = 1u << SHUFFLES; n < PARTIAL_SUMS; n *= 2u) {
#repeat S SUMS
    shared_sums[S * LANES + lane] = (*sums)[S];
#end
    workgroupBarrier();
#repeat S SUMS
    (*sums)[S] += shared_sums[S * LANES + (lane ^ n)];
#end
    workgroupBarrier();
  }
#endif
}
#endif
