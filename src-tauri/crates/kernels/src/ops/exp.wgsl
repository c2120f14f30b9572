// Functions whose built-in versions have device-dependent errors, in a form that is accurate to a few units in the last
// place and never overflows in between.

// tanh z from e^−2|z|, which does not overflow.
fn tanh_(z: f32) -> f32 {
  let e = exp(-2.0 * abs(z));
  return sign(z) * (1.0 - e) / (1.0 + e);
}

// cap · tanh(x / cap)
fn soft_cap(x: f32, cap: f32) -> f32 {
  return cap * tanh_(x / cap);
}
